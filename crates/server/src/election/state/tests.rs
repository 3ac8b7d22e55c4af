//! Tests of the state of a server that is alone.

use lessor_client::internals::holding::Proof;
use lessor_proto::message::Order;
use lessor_proto::{Amount, ResourceId};

use super::*;

const DATE: u64 = 1_790_000_000_000;

fn resource(name: &str) -> ResourceId {
    ResourceId::new(name, 256).unwrap()
}

fn clock(boot: &str, nanos: u64) -> Clock {
    Clock { boot: Some(boot.to_owned()), at: Time::from_nanos(nanos) }
}

fn state() -> State {
    let mut state = State::begin("a/b", 99, DATE);
    let proof = Proof { order: Order { epoch: Epoch(5), seq: 7 }, token: vec![5, 0xc1].into() };
    state.apply(&RecordChange {
        terms: Some(Terms { longest_lease: Duration::from_secs(60), ..Terms::default() }),
        marks: [(resource("queries per second"), Amount::from_units(70)), (resource("gone"), Amount::ZERO)]
            .into(),
        proofs: [(resource("queries per second"), proof)].into(),
        ..RecordChange::default()
    });
    state.apply(&RecordChange { deletes: [resource("gone")].into(), ..RecordChange::default() });
    state
}

#[test]
fn what_is_written_is_read() {
    let (state, at) = (state(), clock("b1 4026531834", 77));
    let (read, written) = State::decode(&state.encode(&at), "a/b").unwrap();
    assert_eq!((written, read.epoch(), read.line()), (at, Epoch(DATE << 16), 99));
    let record = read.read().unwrap();
    assert_eq!(record, state.read().unwrap());
    assert_eq!(record.marks, [(resource("queries per second"), Amount::from_units(70))].into());
    assert_eq!(
        (record.longest_lease, record.closed, record.unknown),
        (Duration::from_secs(60), false, Unknown::Nothing)
    );
    assert_eq!(record.proofs.len(), 1);
}

#[test]
fn a_header_is_above_all_before_it_wherever_the_date_went() {
    let mut state = state();
    state.close();
    assert!(state.read().unwrap().closed);
    state.succeed(DATE + 5, Vec::new());
    assert_eq!((state.epoch(), state.read().unwrap().closed), (Epoch((DATE + 5) << 16), false));
    state.succeed(3, Vec::new());
    assert_eq!(state.epoch(), Epoch(((DATE + 5) << 16) + 1), "the date was set back");
}

#[test]
fn nothing_is_known_of_before_the_first_header() {
    let record = State::begin("root", 99, DATE).read().unwrap();
    assert!(record.unknown == Unknown::All && !record.is_first(), "{record:?}");
}

#[test]
fn a_file_that_was_touched_is_damaged_wherever_that_was() {
    let text = state().encode(&clock("b", 1));
    for at in 0..text.len() {
        let mut touched = text.clone().into_bytes();
        touched[at] ^= 1;
        let touched = String::from_utf8(touched).unwrap();
        assert!(State::decode(&touched, "a/b").is_err(), "byte {at}: {touched}");
        assert!(State::decode(&text[..at], "a/b").is_err(), "{at} bytes of it");
    }
    let bad = State::decode("", "a/b").unwrap_err().to_string();
    assert_eq!(bad, "it is damaged: it is cut off");
}

#[test]
fn a_file_of_a_later_form_is_told_by_its_number_however_it_is_sealed() {
    let text = state().encode(&clock("b", 1));
    let bad = State::decode(&text.replace("lessor state 1", "lessor state 3"), "a/b").unwrap_err();
    assert_eq!(bad.to_string(), "a later version has written it: form 3, and this one reads form 2");
    assert!(bad.is_later());
    let (body, _) = text.trim_end().rsplit_once('\n').unwrap();
    let body = format!("{}\n", body.replace("1 millionths", "3 millionths"));
    let sealed = format!("{body}blake3 {}\n", blake3::hash(body.as_bytes()).to_hex());
    let bad = State::decode(&sealed, "a/b").unwrap_err();
    assert!(bad.is_later() && bad.to_string().contains("form 3"), "{bad}");
}

#[test]
fn a_file_of_another_node_is_told_by_its_name() {
    let bad = State::decode(&state().encode(&clock("b", 1)), "root").unwrap_err();
    assert_eq!(bad.to_string(), "it is of node \"a/b\", and this is node \"root\"");
}

#[test]
fn a_clock_has_gone_on_only_in_one_start_of_the_machine_and_never_back() {
    let unknown = |nanos| Clock { boot: None, ..clock("", nanos) };
    assert!(clock("a", 5).has_gone_on_since(&clock("a", 5)));
    assert!(!clock("a", 4).has_gone_on_since(&clock("a", 5)));
    assert!(!clock("b", 9).has_gone_on_since(&clock("a", 5)));
    assert!(!unknown(9).has_gone_on_since(&unknown(5)));
}
