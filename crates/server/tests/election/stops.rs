//! Stops of leaders, as those after them know and write them: with the beginning of their epochs, so that they may die as soon as
//! they like.

use std::time::Duration;

use lessor_proto::{Drift, Epoch, Time};
use lessor_server::election::call::Stored;
use lessor_server::election::{Candidate, ElectionConfig};
use lessor_server::record::Record;

use super::line::elect;

const RUNNING: &str = "1 epoch 55 write 9 longest_lease_ns 60000000000 authority_ns 1000000000 closed no config_version 3 line 99";

fn second(second: u64) -> Time {
    Time::ZERO + Duration::from_secs(second)
}

fn stored(key: &str, value: &str) -> Stored {
    Stored {
        key: key.as_bytes().to_vec(),
        value: value.into(),
        create_revision: 3,
        mod_revision: 9,
        lease: None,
    }
}

/// The leader of epoch 55 wrote that the one of epoch 54 had stopped at 7 s, and that its leases count until 65 s. Both by the
/// clock of that leader.
fn record() -> Vec<Stored> {
    let earlier = "1 epoch 55 stopped 54 clock_ns 7000000000 until_ns 65000000000";
    vec![stored("lessor/root/earlier", earlier), stored("lessor/root/reign", RUNNING)]
}

/// A leader that found `stored`, with its epoch, what it found and what it wrote first. It has heard the clock of the leader of
/// `heard`, which showed ten seconds when this one began.
fn leader(heard: Option<Epoch>, stored: &[Stored], has_parent: bool) -> (Epoch, Record, Vec<Stored>) {
    let config = ElectionConfig { has_parent, drift: Drift::NONE, ..ElectionConfig::new("root", "a:1", 7) };
    let mut candidate = Candidate::new(Time::ZERO, config).expect("it can work");
    if let Some(epoch) = heard {
        candidate.hear_clock(epoch, Time::ZERO, second(10));
    }
    let (epoch, record, written) = elect(&mut candidate, 60, stored, None);
    let put = |(key, value): (String, String)| self::stored(&key, &value);
    (epoch, record, written.into_iter().map(put).collect())
}

#[test]
fn a_leader_that_dies_before_it_has_written_anything_else_has_said_when_those_before_it_had_stopped() {
    let (epoch, found, written) = leader(Some(Epoch(55)), &record(), false);
    let known: Vec<Epoch> = found.stops.keys().copied().collect();
    assert_eq!((known, found.stops[&Epoch(54)]), (vec![Epoch(54), Epoch(55)], second(7)));
    // Its key had gone when this one was elected, and it acts for a second longer.
    let stop = found.stops[&Epoch(55)];
    assert!(stop >= second(11) && stop < second(13), "{stop}");

    let (_, found_next, _) = leader(Some(epoch), &written, false);
    let next: Vec<(Epoch, Time)> = found_next.stops.iter().map(|(&epoch, &stop)| (epoch, stop)).collect();
    assert_eq!(next[..2], [(Epoch(54), second(7)), (Epoch(55), stop)]);
    assert_eq!(next[2].0, epoch);
    // Of a leader whose clock nobody has heard it is not known when it stopped, so not what counted then.
    let (_, found_next, _) = leader(None, &written, false);
    assert!(found_next.stops.is_empty(), "{:?}", found_next.stops);
}

#[test]
fn below_another_node_it_does_not_say_so() {
    let (_, found, written) = leader(Some(Epoch(55)), &record(), true);
    assert_eq!(found.stops.len(), 2);
    assert!(written.iter().all(|stored| stored.key != b"lessor/root/earlier"), "{written:?}");
}

#[test]
fn what_no_longer_counted_when_the_last_leader_stopped_is_forgotten() {
    let over = "1 epoch 55 stopped 54 clock_ns 7000000000 until_ns 9000000000";
    let stored = [stored("lessor/root/earlier", over), stored("lessor/root/reign", RUNNING)];
    let (_, found, written) = leader(Some(Epoch(55)), &stored, false);
    assert_eq!(found.stops.keys().collect::<Vec<_>>(), [&Epoch(55)]);
    let earlier = written.iter().find(|stored| stored.key == b"lessor/root/earlier").expect("it is said");
    assert!(!String::from_utf8_lossy(&earlier.value).contains("stopped 54"), "{earlier:?}");
}
