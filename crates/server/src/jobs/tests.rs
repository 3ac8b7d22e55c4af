//! Stories of a board.

use super::*;

/// More words than there are in any of these stories.
const MANY: usize = 1_000;

fn below(number: u64) -> JobParty {
    JobParty::Below(Peer::new(number, u32::try_from(number).expect("a small number")))
}

fn at(millis: u64) -> Time {
    Time::from_nanos(millis * 1_000_000)
}

/// A and B, and a board of them and of the node above.
fn board() -> (JobParty, JobParty, JobBoard) {
    let (a, b) = (below(1), below(2));
    (a, b, JobBoard::new([a, b, JobParty::Above], Rules::default()))
}

#[test]
fn who_waits_is_told_once_and_who_works_is_asked_once() {
    let (a, b, mut board) = board();
    board.hear(a, Some(at(5)), None);
    assert_eq!(board.take_words(MANY), [], "nobody waits, and nobody was asked");
    board.hear(b, None, Some(at(10)));
    let asks = JobWord::Asks(at(10));
    assert_eq!(board.take_words(MANY), [(JobParty::Above, asks), (a, asks)], "B itself is not asked");
    board.hear(b, None, Some(at(11)));
    assert_eq!(board.take_words(MANY), [], "they were asked");
    board.hear(a, Some(at(20)), None);
    assert_eq!(board.take_words(MANY), [(b, JobWord::Done(at(20)))]);
    board.hear(a, Some(at(30)), None);
    board.hear(JobParty::Above, Some(at(31)), None);
    assert_eq!(board.take_words(MANY), [], "B waits no more");
    board.hear(b, None, Some(at(25)));
    assert_eq!(
        board.take_words(MANY)[0],
        (b, JobWord::Done(at(31))),
        "what the node above was asked for was heard"
    );
}

#[test]
fn a_job_of_before_the_wait_is_not_told_and_its_party_is_asked_again() {
    let (a, b, mut board) = board();
    board.hear(b, None, Some(at(10)));
    board.take_words(MANY);
    board.hear(a, Some(at(9)), None);
    assert_eq!(board.take_words(MANY), [(a, JobWord::Asks(at(10)))]);
    board.hear(a, Some(at(12)), Some(at(12)));
    let words = board.take_words(MANY);
    assert!(words.contains(&(b, JobWord::Done(at(12)))), "{words:?}");
    assert!(!words.contains(&(a, JobWord::Done(at(12)))), "its own job is no news to it: {words:?}");
}

#[test]
fn who_comes_late_is_asked_and_who_is_gone_is_not_told() {
    let (a, b, mut board) = board();
    board.hear(b, None, Some(at(10)));
    board.take_words(MANY);
    let c = below(3);
    board.join(c);
    assert_eq!(board.take_words(MANY), [(c, JobWord::Asks(at(10)))]);
    assert!(!board.leave(b));
    board.hear(c, Some(at(20)), None);
    assert_eq!(board.take_words(MANY), []);
    assert!(!board.leave(a));
    board.hear(JobParty::Above, None, Some(at(30)));
    assert!(!board.leave(c), "the node above wants to hear of those that come");
    board.take_words(MANY);
    board.join(a);
    assert_eq!(board.take_words(MANY), [(a, JobWord::Asks(at(30)))]);
    board.hear(a, Some(at(40)), None);
    assert_eq!(board.take_words(MANY), [(JobParty::Above, JobWord::Done(at(40)))]);
    assert!(board.leave(a), "the node above is not below");
}

#[test]
fn no_number_is_too_large_and_none_leads_to_more_than_a_word_for_each() {
    let (a, b, mut board) = board();
    // It has waited for ever, and all has just been done; and again.
    board.hear(b, None, Some(Time::ZERO));
    board.hear(a, Some(Time::MAX), None);
    board.take_words(MANY);
    for _ in 0..100 {
        board.hear(b, None, Some(Time::ZERO));
    }
    let words = board.take_words(MANY);
    assert_eq!(words, [(a, JobWord::Asks(Time::ZERO))], "it was told of that job");
    for party in [a, b].into_iter().cycle().take(100) {
        board.hear(party, Some(Time::MAX), Some(Time::ZERO));
        let words = board.take_words(MANY);
        assert!(words.len() <= 3, "one for each party: {words:?}");
    }
    let stranger = below(77);
    board.hear(stranger, Some(Time::MAX), Some(Time::ZERO));
    assert!(board.take_words(MANY).iter().all(|(party, _)| *party != stranger), "it is no party");
}

#[test]
fn what_is_to_be_said_to_many_is_said_a_slice_at_a_time() {
    let parties: Vec<JobParty> = (0..500).map(below).collect();
    let mut board = JobBoard::new(parties.clone(), Rules::default());
    board.hear(parties[0], None, Some(at(1)));
    let first = board.take_words(200);
    assert!(first.len() == 200 && board.is_speaking());
    // What comes meanwhile is said behind it.
    board.hear(parties[1], Some(at(2)), None);
    let (second, third) = (board.take_words(200), board.take_words(200));
    assert!(second.len() == 200 && third.len() == 100 && !board.is_speaking());
    assert_eq!(third.last(), Some(&(parties[0], JobWord::Done(at(2)))));
}
