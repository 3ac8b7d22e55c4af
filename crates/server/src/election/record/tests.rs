//! Tests of the keys and values of the record.

use std::time::Duration;

use lessor_client::internals::holding::Proof;
use lessor_proto::message::Order;
use lessor_proto::{Amount, ResourceId, Time};
use proptest::prelude::*;

use super::*;
use crate::record::{RestOver, Terms, Unknown};
use crate::repository::Kind;

fn stored(key: &str, value: &str) -> Stored {
    Stored { key: key.into(), value: value.into(), create_revision: 1, mod_revision: 5, lease: None }
}

fn resource(name: &str) -> ResourceId {
    ResourceId::new(name, 256).unwrap()
}

const HEADER: &str = "1 epoch 7 write 2 longest_lease_ns 60 authority_ns 4 closed no config_version 3";

#[test]
fn keys_of_nodes_do_not_begin_like_each_other() {
    let (outer, inner) = (RecordKeys::new("lessor", "a"), RecordKeys::new("lessor/", "a/mark"));
    assert_eq!(outer.mark(&resource("b/leader")), "lessor/a/mark/b/leader");
    assert_eq!(inner.leader, "lessor/a%2Fmark/leader");
    assert_ne!(RecordKeys::new("p", "a%2Fb"), RecordKeys::new("p", "a/b"));
}

#[test]
fn a_record_that_makes_no_sense_is_shown() {
    let keys = RecordKeys::new("lessor", "root");
    let decode = |stored: &[Stored]| Record::decode(&keys, stored).unwrap_err().to_string();
    let mark = stored("lessor/root/mark/db", "1 something else");
    assert_eq!(
        decode(&[mark]),
        "key \"lessor/root/mark/db\" holds \"1 something else\", and not 1 millionths _ [kind rate|gauge] [rest _ in_epoch _] \
         [of_epoch _ of_seq _ token _] (numbers for _, of the token hex or \"-\")"
    );
    let lonely = decode(&[stored("lessor/root/mark/db", "1 millionths 5")]);
    assert!(lonely.starts_with("key \"lessor/root/reign\" holds \"nothing, though"), "{lonely}");
    for value in [
        "",
        "1",
        "1 epoch x",
        &HEADER.replace("no", "perhaps"),
        &format!("{HEADER} more"),
        &HEADER.replace("60", "60 longest_safe_lease_ns x"),
    ] {
        assert!(decode(&[stored("lessor/root/reign", value)]).contains("lessor/root/reign"), "{value}");
    }
}

#[test]
fn a_value_of_a_later_form_is_refused_by_its_number() {
    let keys = RecordKeys::new("lessor", "root");
    let later = "which a later version has written: form 2, and this one reads form 1";
    for key in [&keys.epoch, &keys.stop, &keys.earlier, &keys.mark(&resource("db"))] {
        let read = Record::decode(&keys, &[stored(key, "2 what a later version knows")]);
        let said = format!("key {key:?} holds \"2 what a later version knows\", {later}");
        assert_eq!(read.unwrap_err().to_string(), said);
    }
    let holder = KeyHolder::decode(&stored(&keys.leader, "2 nonce 1 address a:1")).unwrap_err();
    assert!(holder.to_string().ends_with(later), "{holder}");
}

#[test]
fn what_is_not_of_the_record_is_passed_over() {
    let keys = RecordKeys::new("lessor", "root");
    let leader = stored(&keys.leader, "anything");
    assert_eq!(Record::decode(&keys, &[leader]).unwrap(), (Record::default(), 0));
    let (read, mod_revision) = Record::decode(&keys, &[stored(&keys.epoch, HEADER)]).unwrap();
    assert_eq!((read.epoch, read.config_version, mod_revision, read.is_first()), (Epoch(7), 3, 5, false));
    assert_eq!(read.longest_safe_lease, Duration::ZERO);
    let floors = HEADER.replace("60 auth", "60 longest_safe_lease_ns 900 auth");
    let (read, _) = Record::decode(&keys, &[stored(&keys.epoch, &floors)]).unwrap();
    assert_eq!(read.longest_safe_lease, Duration::from_nanos(900));
}

#[test]
fn what_is_left_from_before_is_that_of_the_leader_that_wrote_last() {
    let keys = RecordKeys::new("lessor", "root");
    let mark = |epoch| stored("lessor/root/mark/db", &format!("1 millionths 9 rest 4 in_epoch {epoch}"));
    let read =
        |header: &str, epoch| Record::decode(&keys, &[stored(&keys.epoch, header), mark(epoch)]).unwrap().0;
    let over = format!("{HEADER} rest_over_ns 30 safe_rest_over_ns 50");
    let found = read(&over, 7);
    assert_eq!(found.rests, [(resource("db"), Amount::from_micros(4))].into());
    assert_eq!(found.rest_over.lease, Duration::from_nanos(30));
    assert_eq!(found.rest_over.safe_lease, Duration::from_nanos(50));
    assert_eq!(found.marks, [(resource("db"), Amount::from_micros(9))].into());
    assert!(read(&over, 6).rests.is_empty(), "an earlier leader wrote it");
    assert!(read(HEADER, 7).rests.is_empty(), "how long that lasts is not said");
}

#[test]
fn a_stop_is_that_of_the_write_beside_which_it_stands() {
    let keys = RecordKeys::new("lessor", "root");
    let closed = HEADER.replace("closed no", "closed yes");
    let read = |header: &str, stop: &str| {
        let stored = [stored(&keys.epoch, header), stored(&keys.stop, stop)];
        Record::decode(&keys, &stored).unwrap().0.stopped
    };
    let header = RecordHeader::decode(&stored("k", &closed)).unwrap();
    let RecordHeader { epoch, write, .. } = header;
    let stop = |write| Stop { epoch, write, clock: Time::from_nanos(77) }.encode();
    assert_eq!(read(&closed, &stop(write)), Some(Time::from_nanos(77)));
    assert_eq!(read(&closed, &stop(write + 1)), None);
    assert_eq!(read(HEADER, &stop(write)), None);
    let bad = Record::decode(&keys, &[stored(&keys.stop, "1 epoch 2")]).unwrap_err().to_string();
    assert!(bad.contains("lessor/root/stop"), "{bad}");
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        epoch in any::<u64>().prop_map(Epoch), write: u64, longest_lease: u64, longest_safe_lease: u64, authority: u64, closed: bool, config_version: u64, micros: u64,
        unknown in 0..3_u8, line: u64, first_epoch: u64, rest_over: Option<(u64, u64)>, rest: Option<(u64, u64)>,
        kind in 0..3_u8, nonce: u64, address in "[a-z0-9:. -]{1,40}", token in prop::collection::vec(any::<u8>(), 0..50),
    ) {
        let terms = Terms {
            longest_lease: Duration::from_nanos(longest_lease),
            longest_safe_lease: Duration::from_nanos(longest_safe_lease),
            authority: Duration::from_nanos(authority),
            config_version,
            unknown: [Unknown::Nothing, Unknown::Floors, Unknown::All][usize::from(unknown)],
            rest_over: rest_over.map(|(lease, safe_lease)| RestOver {
                lease: Duration::from_nanos(lease),
                safe_lease: Duration::from_nanos(safe_lease),
            }),
        };
        // Only a line has a first epoch.
        let first_epoch = Epoch(if line == 0 { 0 } else { first_epoch });
        let header = RecordHeader { epoch, write, closed, terms, line, first_epoch };
        prop_assert_eq!(RecordHeader::decode(&stored("k", &header.encode())).unwrap(), header);
        let holder = KeyHolder { nonce, address };
        prop_assert_eq!(KeyHolder::decode(&stored("k", &holder.encode())).unwrap(), holder);
        let rest = rest.map(|(amount, epoch)| Rest { amount: Amount::from_micros(amount), epoch: Epoch(epoch) });
        let kind = [None, Some(Kind::Rate), Some(Kind::Gauge)][usize::from(kind)];
        let lone = Mark { amount: Amount::from_micros(micros), kind, rest, proof: None };
        prop_assert_eq!(Mark::decode(&stored("k", &lone.encode())).unwrap(), lone.clone());
        let proof = Proof { order: Order { epoch, seq: write }, token: token.into() };
        let shown = Mark { proof: Some(proof), ..lone };
        prop_assert_eq!(Mark::decode(&stored("k", &shown.encode())).unwrap(), shown);
    }
}
