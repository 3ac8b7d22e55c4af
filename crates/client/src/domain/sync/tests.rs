//! The times at which deltas are sent, and the deltas that an acknowledgement ends.

use lessor_algorithms::tiers::Domain;

use super::*;

const MILLI: Duration = Duration::from_millis(1);

fn at(millis: u32) -> Time {
    Time::ZERO + Duration::from_secs(1_000) + MILLI * millis
}

fn resource() -> ResourceId {
    ResourceId::new("db", 256).unwrap()
}

fn delta() -> Outgoing {
    Outgoing::new(&Domain::new(), false)
}

fn update(now: Time, acks: u64, begins: bool) -> DomainNews {
    DomainNews {
        resource: resource(),
        version: 1,
        now,
        heard: acks,
        heard_at: now,
        members: 2,
        nodes: 0,
        begins,
        hot: Vec::new(),
        calm: Vec::new(),
        domains: Vec::new(),
    }
}

/// The message that is sent at `now`, with nothing filled in but names.
fn message(sync: &mut DomainSync, now: Time) -> Option<DomainReport> {
    let mut draft = sync.draft()?;
    while let Some(domain) = draft.next_name() {
        draft.add(DomainHits { domain, all: true, others: 0, entries: Vec::new() });
    }
    sync.next_message(now, &resource(), 1, draft)
}

/// On stream 1, whose first question is acknowledged at 0 ms.
fn begun() -> DomainSync {
    let mut sync = DomainSync::default();
    sync.attend(Some(1));
    let question = message(&mut sync, at(0)).expect("it asks first");
    assert_eq!((question.id, question.ask), (1, true));
    sync.on_update(at(0), &update(at(0), 1, true)).expect("it is about this stream");
    sync.on_ack(1);
    sync
}

#[test]
fn a_delta_is_sent_at_the_cadence_and_an_urgent_one_at_once() {
    let mut sync = begun();
    assert_eq!(sync.next_deadline(), None);
    let (mut first, mut second) = (delta(), delta());
    assert!(sync.queue_delta("a", &mut first, false));
    assert!(!sync.queue_delta("a", &mut first, false), "it is queued once");
    assert_eq!(sync.next_deadline(), Some(at(0) + CADENCE));
    assert!(sync.queue_delta("b", &mut second, true));
    assert!(!sync.queue_delta("b", &mut second, true));
    assert_eq!(sync.next_deadline(), Some(at(5)));
    let sent = message(&mut sync, at(5)).expect("there are deltas");
    let names: Vec<_> = sent.domains.iter().map(|hits| &*hits.domain).collect();
    assert_eq!((sent.id, sent.ask, names), (2, false, vec!["a", "b"]));
    assert_eq!((sync.next_deadline(), message(&mut sync, at(6))), (None, None));
}

#[test]
fn what_does_not_fit_is_the_first_of_the_next_message() {
    let mut sync = begun();
    ["a", "b", "c"].iter().for_each(|name| _ = sync.queue_delta(name, &mut delta(), false));
    let mut draft = sync.draft().expect("there is a stream");
    let domain = draft.next_name().expect("there are deltas");
    let entry =
        lessor_proto::message::DomainEntry { policy: 0, tier: 1, at: at(0), hits: 1, is_entered: false };
    let entries = vec![entry; MOST_ENTRIES / 2 + 1];
    draft.add(DomainHits { domain, all: true, others: 0, entries });
    assert_eq!(draft.next_name(), None, "it is full");
    assert!(sync.next_message(at(100), &resource(), 1, draft).is_some());
    let rest = message(&mut sync, at(200)).expect("there are deltas");
    assert_eq!(rest.domains.iter().map(|hits| &*hits.domain).collect::<Vec<_>>(), ["b", "c"]);
}

#[test]
fn before_an_update_of_the_stream_nothing_is_sent_but_the_question() {
    let mut sync = begun();
    sync.queue_delta("a", &mut delta(), false);
    sync.attend(Some(2)).expect("it is another stream");
    assert!(sync.on_update(at(1), &update(at(1), 9, false)).is_none(), "it is about the stream before");
    let question = message(&mut sync, at(10)).expect("it asks first");
    assert_eq!((question.id, question.ask, question.domains), (1, true, vec![]));
    assert_eq!(sync.next_deadline(), None);
    assert!(sync.on_update(at(11), &update(at(11), 1, true)).is_some());
    assert_eq!(message(&mut sync, at(110)).expect("it is queued still").domains.len(), 1);
}

#[test]
fn a_question_is_acknowledged_when_its_update_is_taken_up_or_the_stream_ends() {
    let mut sync = begun();
    // Each `Waker::noop()` may be another one.
    let waker = Waker::noop().clone();
    let question = sync.ask().expect("there is a stream");
    assert!(!sync.poll_acked(question, &waker) && !sync.poll_acked(question, &waker));
    assert_eq!(message(&mut sync, at(7)).map(|sent| (sent.id, sent.ask)), Some((question, true)));
    sync.on_update(at(8), &update(at(8), question, false)).expect("it is about this stream");
    assert!(!sync.is_acked(question), "what came with it is not known yet");
    assert_eq!((sync.on_ack(question).len(), sync.is_acked(question)), (1, true));
    let second = sync.ask().expect("there is a stream");
    assert!(!sync.poll_acked(second, &waker));
    assert_eq!(sync.attend(None).map(|waiting| waiting.len()), Some(1));
    assert!(sync.is_acked(second) && sync.ask().is_none() && sync.next_deadline().is_none());
}

/// The hits of a message are placed while none of the locks is held that an update waits for.
#[test]
fn hits_that_were_placed_before_a_quicker_update_came_are_said_again() {
    let early = at(0);
    for (comes_between, is_again) in [(true, true), (false, false)] {
        let mut sync = DomainSync::default();
        sync.attend(Some(1));
        message(&mut sync, early).expect("it asks first");
        // All that has come was three seconds on its way.
        let slow = at(3_000);
        sync.on_update(slow, &update(early, 1, true)).expect("it is about this stream");
        sync.queue_delta("a", &mut delta(), true);
        let mut draft = sync.draft().expect("there is a stream");
        let domain = draft.next_name().expect("there are deltas");
        draft.add(DomainHits { domain, all: true, others: 0, entries: Vec::new() });
        let quick = DomainNews { now: slow, ..update(early, 1, false) };
        if comes_between {
            sync.on_update(slow, &quick).expect("it is about this stream");
            assert!(!sync.take_misplaced(slow), "nothing was said");
        }
        assert!(sync.next_message(slow, &resource(), 1, draft).is_some());
        assert_eq!(sync.take_misplaced(slow), is_again);
        assert!(!sync.take_misplaced(slow), "that is told once");
    }
}
