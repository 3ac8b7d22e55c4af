//! Time that the clock of a leader did not show.

use std::time::Duration;

use lessor_proto::Time;
use lessor_server::election::call::{Action, Answer, Call, LeaseId};
use lessor_server::election::{Candidate, ElectionConfig, Event};

const TTL: Duration = Duration::from_secs(10);

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Does what the candidate says at an etcd of which nobody else knows, except what is kept back. Gives back what was.
fn obey(candidate: &mut Candidate, now: Time, keeps_back: bool) -> Vec<(u64, Answer)> {
    let mut kept = Vec::new();
    while let Some(action) = candidate.poll(now) {
        let Action::Call { id, call } = action else { panic!("{action:?} is for those who wait") };
        let answer = match call {
            // Before the campaign there is nobody; afterwards it is ours.
            Call::Read { key } => {
                let stored = candidate.epoch().map(|epoch| lessor_server::election::call::Stored {
                    key: key.into_bytes(),
                    value: Vec::new(),
                    create_revision: epoch.0,
                    mod_revision: epoch.0,
                    lease: Some(LeaseId(5)),
                });
                Answer::Read { stored, revision: 9 }
            }
            Call::GrantLease { .. } => Answer::Granted { lease: LeaseId(5), ttl: TTL },
            Call::Campaign { .. } => Answer::Won { revision: 2 },
            Call::ReadRecord { .. } => Answer::Record { stored: vec![], more: false, cluster: None },
            Call::Write(_) => Answer::Written { revision: 3 },
            Call::KeepAlive { .. } => Answer::KeptAlive { ttl: TTL },
            other => panic!("{other:?} comes later"),
        };
        match keeps_back {
            true => kept.push((id, answer)),
            false => candidate.on_answer(now, id, Ok(answer)),
        }
    }
    kept
}

/// A leader, and the moment at which it came to lead.
fn leader() -> (Candidate, Time) {
    leader_from(Time::ZERO + seconds(100))
}

/// The same of a candidate that stands from then on.
fn leader_from(mut now: Time) -> (Candidate, Time) {
    let mut candidate =
        Candidate::new(now, ElectionConfig::new("root", "10.0.0.7:5101", 0xa1)).expect("it can work");
    for _ in 0..100 {
        obey(&mut candidate, now, false);
        if candidate.authority_until().is_some() {
            while candidate.next_event().is_some() {}
            return (candidate, now);
        }
        now = candidate.next_deadline();
    }
    panic!("nobody is elected");
}

#[test]
fn authority_ends_earlier_by_time_that_was_lost() {
    let (mut candidate, now) = leader();
    let until = candidate.authority_until().expect("it leads");
    candidate.lose_time(now, seconds(1));
    assert_eq!(candidate.authority_until(), Some(until.earlier(seconds(1))));
    candidate.lose_time(now, seconds(60));
    assert_eq!(candidate.authority_until(), None);
    let lapsed = std::iter::from_fn(|| candidate.next_event()).any(|event| event == Event::Lapsed);
    assert!(lapsed, "it is told of");
    obey(&mut candidate, now, false);
    assert!(candidate.authority_until() > Some(now), "it has authority again when etcd has confirmed it");
}

#[test]
fn a_machine_that_stood_still_for_longer_than_its_clock_goes_has_no_authority() {
    let (mut candidate, now) = leader_from(Time::ZERO);
    let answers = obey(&mut candidate, now, true);
    assert!(candidate.authority_until().is_some() && now < Time::ZERO + seconds(4), "{now:?}");
    candidate.lose_time(now, seconds(60));
    assert_eq!(candidate.authority_until(), None);
    for (id, answer) in answers {
        candidate.on_answer(now, id, Ok(answer));
    }
    assert_eq!(candidate.authority_until(), None, "that was asked before");
    let now = candidate.next_deadline().max(now);
    obey(&mut candidate, now, false);
    assert!(candidate.authority_until() > Some(now), "it has authority again when etcd has confirmed it");
}

#[test]
fn what_was_asked_before_a_pause_gives_no_authority_after_it() {
    let (mut candidate, mut now) = leader();
    now = now.max(candidate.next_deadline());
    let answers = obey(&mut candidate, now, true);
    assert!(!answers.is_empty(), "it asks for more time");
    // The machine stands still for a minute, in which the key goes to another; then what was under way arrives.
    candidate.lose_time(now, seconds(60));
    for (id, answer) in answers {
        candidate.on_answer(now, id, Ok(answer));
    }
    assert_eq!(candidate.authority_until(), None);
}
