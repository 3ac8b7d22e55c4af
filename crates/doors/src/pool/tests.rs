//! Lines and what is answered to them, row by row of what PoolCounter's own daemon does, and what is our own.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use lessor_proto::Time;

use super::*;

/// Units of gauges: so many of each name as its workers are, here at once.
#[derive(Clone, Default)]
struct Store {
    out: Rc<RefCell<BTreeMap<Box<str>, u32>>>,
    /// Whether nothing is leased.
    is_cut_off: Rc<Cell<bool>>,
    /// The gauges of jobs that were done.
    jobs: Rc<RefCell<Vec<Box<str>>>>,
}

struct Token(Store, Box<str>);

impl Drop for Token {
    fn drop(&mut self) {
        *self.0.out.borrow_mut().get_mut(&self.1).unwrap() -= 1;
    }
}

impl PoolUnits for Store {
    type Permit = Token;

    fn take(&mut self, gauge: &Arc<PoolGauge>) -> Result<Token, NoUnit> {
        if self.is_cut_off.get() {
            return Err(NoUnit::NotHere);
        }
        let mut out = self.out.borrow_mut();
        let count = out.entry(gauge.name.clone()).or_default();
        if *count >= gauge.workers {
            return Err(NoUnit::NotHere);
        }
        *count += 1;
        Ok(Token(self.clone(), gauge.name.clone()))
    }

    fn job_done(&mut self, gauge: &PoolGauge, _now: Time) {
        // Its unit, if it has one, is not given back yet.
        self.jobs.borrow_mut().push(gauge.name.clone());
    }

    fn is_leased(&self, _gauge: &PoolGauge) -> bool {
        !self.is_cut_off.get()
    }
}

/// A door with a clock that is moved.
struct Door {
    table: PoolTable<Token>,
    store: Store,
    now: Time,
    callers: Vec<CallerId>,
}

impl Door {
    fn new(callers: usize) -> Door {
        Door::with(PoolRules { workers: 500, wait: Duration::from_millis(100), is_open: false }, callers)
    }

    fn with(rules: PoolRules, callers: usize) -> Door {
        let mut table = PoolTable::new(rules, Time::ZERO);
        let callers = (0..callers).map(|_| table.enter()).collect();
        Door { table, store: Store::default(), now: Time::ZERO, callers }
    }

    /// The answer to a line, without its end; a dash where there is none yet.
    fn say(&mut self, caller: usize, line: &str) -> String {
        let answer = self.table.hear(self.callers[caller], line.as_bytes(), self.now, &mut self.store);
        self.feed();
        answer.map_or("-".to_owned(), |answer| answer.text().trim_end().to_owned())
    }

    /// Brings units to those who wait, as long as there are any.
    fn feed(&mut self) {
        for gauge in self.table.touched() {
            while self.table.need(&gauge).1 > 0 {
                let Ok(unit) = self.store.take(&gauge) else { break };
                assert!(self.table.serve(&gauge, unit, self.now).is_none());
            }
        }
    }

    /// The answers to those who waited, as the number of the caller and the answer.
    fn heard(&mut self) -> String {
        let said = self.table.said().into_iter().map(|(caller, answer)| {
            let place = self.callers.iter().position(|&known| known == caller).unwrap();
            format!("{place} {}", answer.text().trim_end())
        });
        said.collect::<Vec<_>>().join(", ")
    }

    /// Lets time pass up to the next decision about a caller.
    fn expire(&mut self, caller: usize) -> String {
        self.now = self.table.due(self.callers[caller]).expect("it waits");
        let answer = self.table.expire(self.callers[caller], self.now, &self.store);
        self.feed();
        answer.map_or("-".to_owned(), |answer| answer.text().trim_end().to_owned())
    }

    fn leave(&mut self, caller: usize) {
        self.table.leave(self.callers[caller], self.now);
        self.feed();
    }
}

#[test]
fn lines_end_in_a_newline_and_may_come_in_parts() {
    let mut lines = PoolLines::default();
    let whole = |text: &str| Some(PoolLine::Whole(text.into()));
    let mut rest: &[u8] = b"STATS FULL\r\nREL";
    assert_eq!((lines.next(&mut rest), lines.next(&mut rest)), (whole("STATS FULL"), None));
    let mut rest: &[u8] = b"EASE\n\nx\ry\n";
    assert_eq!((lines.next(&mut rest), lines.next(&mut rest)), (whole("RELEASE"), whole("")));
    assert_eq!((lines.next(&mut rest), lines.next(&mut rest)), (whole("x\ry"), None));
}

#[test]
fn a_line_that_is_too_long_is_said_once_and_its_rest_passed_over() {
    let mut lines = PoolLines::default();
    let mut longest = vec![b'a'; LONGEST_LINE];
    longest.push(b'\n');
    assert!(
        matches!(lines.next(&mut &longest[..]), Some(PoolLine::Whole(line)) if line.len() == LONGEST_LINE)
    );
    longest.insert(0, b'a');
    let mut rest = [&longest[..], b"RELEASE\n"].concat();
    let mut at = &rest[..];
    assert_eq!(lines.next(&mut at), Some(PoolLine::TooLong));
    assert_eq!(lines.next(&mut at), Some(PoolLine::Whole(b"RELEASE".to_vec())));
    // In parts it is said as soon as it is known, and what comes of it later is nothing.
    rest = vec![b'a'; 600];
    assert_eq!(lines.next(&mut &rest[..]), None);
    assert_eq!((lines.next(&mut &rest[..]), lines.next(&mut &rest[..])), (Some(PoolLine::TooLong), None));
    let mut at: &[u8] = b"more\nSTATS UPTIME\n";
    assert_eq!(lines.next(&mut at), Some(PoolLine::Whole(b"STATS UPTIME".to_vec())));
}

#[test]
fn words_are_read_as_the_daemon_reads_them() {
    let mut door = Door::new(1);
    for (line, answer) in [
        ("ACQ4ME key 1 2 0", "LOCKED"),
        ("RELEASE", "RELEASED"),
        ("ACQ4ANY   key    1   2    15", "LOCKED"),
        ("RELEASEkey", "RELEASED"),
        ("ACQ4ME key 1 2", "LOCKED"),
        ("RELEASE key and more", "RELEASED"),
        ("ACQ4ME key 1 2 5 more words", "LOCKED"),
        ("RELEASE", "RELEASED"),
        ("RELEASE", "NOT_LOCKED"),
        ("release", "ERROR BAD_COMMAND"),
        ("acq4me key 1 2 0", "ERROR BAD_COMMAND"),
        ("ACQ4ME", "ERROR BAD_COMMAND"),
        ("ACQ4ME ", "ERROR BAD_SYNTAX"),
        ("ACQ4ME key", "ERROR BAD_SYNTAX"),
        ("ACQ4ME key 0 2 0", "ERROR BAD_SYNTAX"),
        ("ACQ4ME key 1 0 0", "ERROR BAD_SYNTAX"),
        ("ACQ4ME key 1.5 2 0", "ERROR BAD_SYNTAX"),
        ("ACQ4ME key -1 2 0", "ERROR BAD_SYNTAX"),
        ("ACQ4ME key +1 2 0", "ERROR BAD_SYNTAX"),
        ("ACQ4ME key 500 2 0", "LOCKED"),
        ("RELEASE", "RELEASED"),
        ("ACQ4ME key 501 2 0", "ERROR BAD_SYNTAX"),
        ("ACQ4ME key 99999999999 2 0", "ERROR BAD_SYNTAX"),
        ("", "ERROR BAD_COMMAND"),
        (" ACQ4ME key 1 2 0", "ERROR BAD_COMMAND"),
        ("STATS", "ERROR BAD_COMMAND"),
        ("STATS nonsense", "ERROR WRONG_STAT"),
        ("STATS  FULL", "ERROR WRONG_STAT"),
        ("STATS Processed_Count", "processed_count: 5"),
        ("stats FULL", "ERROR BAD_COMMAND"),
    ] {
        assert_eq!(door.say(0, line), answer, "{line:?}");
    }
}

#[test]
fn a_request_is_checked_in_order() {
    let mut door = Door::new(3);
    for _ in 0..3 {
        assert_eq!(door.say(0, "ACQ4ME key 3 9 0"), "LOCKED");
    }
    assert_eq!(door.say(1, "ACQ4ME key 3 3 9"), "QUEUE_FULL");
    // One that waits is a lock as well.
    assert_eq!(door.say(0, "ACQ4ME key 3 9 9"), "-");
    assert_eq!(door.say(0, "ACQ4ME"), "ERROR BAD_COMMAND");
    assert_eq!(door.say(0, "ACQ4ME nothing"), "LOCK_HELD");
    assert_eq!(door.say(1, "ACQ4ME key 3 9 9"), "-");
    assert_eq!(door.say(1, "ACQ4ME nothing"), "ERROR WAIT_FOR_RESPONSE");
    assert_eq!(door.say(2, "ACQ4ME key 3 5 9"), "QUEUE_FULL");
    for line in ["ACQ4ME key 3 9 0", "ACQ4ME key 3 9", "ACQ4ME key 3 9 1.5", "ACQ4ANY key 3 9 soon"] {
        assert_eq!(door.say(2, line), "TIMEOUT", "{line:?}");
    }
    let counts = door.table.counts();
    assert_eq!((counts.lock_mismatch, counts.lock_while_waiting, counts.full_queues), (1, 1, 2));
    assert_eq!((counts.working, counts.waiters, counts.keys), (3, 2, 1));
}

#[test]
fn a_release_ends_the_waits_for_anybody_and_gives_the_lock_to_the_oldest_other() {
    let mut door = Door::new(5);
    assert_eq!(door.say(0, "ACQ4ME key 1 9 9"), "LOCKED");
    for (caller, line) in [(1, "ACQ4ANY"), (2, "ACQ4ME"), (3, "ACQ4ME"), (4, "ACQ4ANY")] {
        assert_eq!(door.say(caller, &format!("{line} key 1 9 9")), "-");
    }
    assert_eq!(door.say(0, "RELEASE"), "RELEASED");
    assert_eq!(door.heard(), "1 DONE, 4 DONE, 2 LOCKED");
    // Nothing is held after DONE.
    assert_eq!(door.say(1, "RELEASE"), "NOT_LOCKED");
    assert_eq!(door.say(2, "RELEASE"), "RELEASED");
    assert_eq!(door.heard(), "3 LOCKED");
    let counts = door.table.counts();
    assert_eq!((counts.acquired, counts.releases, counts.release_mismatch), (3, 2, 1));
}

#[test]
fn a_release_while_waiting_ends_the_wait() {
    let mut door = Door::new(4);
    assert_eq!(door.say(0, "ACQ4ME key 1 9 9"), "LOCKED");
    assert_eq!((door.say(1, "ACQ4ME key 1 9 9"), door.say(2, "ACQ4ANY key 1 9 9")), ("-".into(), "-".into()));
    assert_eq!(door.say(3, "ACQ4ME key 1 9 9"), "-");
    assert_eq!(door.say(1, "RELEASE"), "RELEASED");
    assert_eq!(door.heard(), "2 DONE");
    assert_eq!((door.table.counts().working, door.table.counts().waiters), (1, 1));
}

#[test]
fn a_job_that_is_done_at_another_door_is_one_for_whom_it_was_not_too_early() {
    let mut door = Door::new(4);
    let gauge = Arc::new(PoolGauge::new(b"key", 1));
    // Somebody works at another door.
    let unit = door.store.take(&gauge).unwrap();
    assert_eq!(door.table.awaits(&gauge), None, "nobody waits");
    let at = |millis| Time::ZERO + Duration::from_millis(millis);
    for (caller, line, millis) in [(0, "ACQ4ME", 1_000), (1, "ACQ4ANY", 1_100), (2, "ACQ4ANY", 2_000)] {
        door.now = at(millis);
        assert_eq!(door.say(caller, &format!("{line} key 1 9 9")), "-");
    }
    assert_eq!(door.table.awaits(&gauge), Some(at(1_050)), "for the one of the two who came first");
    door.table.finish_elsewhere(&gauge, at(1_049), door.now);
    assert_eq!((door.heard(), door.table.touched().len()), (String::new(), 1), "the next one is asked for");
    door.table.finish_elsewhere(&gauge, at(1_949), door.now);
    assert_eq!(door.heard(), "1 DONE");
    door.table.finish_elsewhere(&gauge, at(1_950), door.now);
    assert_eq!(
        (door.heard(), door.table.awaits(&gauge)),
        ("2 DONE".into(), None),
        "nobody waits for anybody"
    );
    let counts = door.table.counts();
    assert_eq!((counts.done_elsewhere, counts.waiters, counts.releases), (2, 1, 0));
    drop(unit);
    door.feed();
    assert_eq!(door.heard(), "0 LOCKED");
    assert_eq!(door.say(3, "ACQ4ANY key 1 9 9"), "-");
    assert_eq!(door.table.awaits(&gauge), None, "whoever works does so here");
    assert_eq!((door.say(0, "RELEASE"), door.say(3, "RELEASE")), ("RELEASED".into(), "NOT_LOCKED".into()));
    assert_eq!(*door.store.jobs.borrow(), vec![gauge.name.clone()], "other doors are told once");
}

#[test]
fn a_worker_that_is_gone_hands_on_and_nobody_is_done() {
    let mut door = Door::new(4);
    assert_eq!(door.say(0, "ACQ4ME key 1 9 9"), "LOCKED");
    for (caller, line) in [(1, "ACQ4ANY"), (2, "ACQ4ANY"), (3, "ACQ4ME")] {
        assert_eq!(door.say(caller, &format!("{line} key 1 9 9")), "-");
    }
    door.leave(0);
    assert_eq!(door.heard(), "3 LOCKED");
    door.leave(3);
    assert_eq!(door.heard(), "1 LOCKED");
    // One that waits leaves the queue.
    door.leave(2);
    door.leave(1);
    assert_eq!(door.heard(), "");
    let counts = door.table.counts();
    assert_eq!((counts.keys, counts.working, counts.waiters, counts.processed), (0, 0, 0, 3));
    assert!(door.store.out.borrow().values().all(|&out| out == 0));
}

#[test]
fn the_same_key_counts_each_time_and_the_newest_lock_goes_first() {
    let mut door = Door::new(2);
    for line in ["ACQ4ME a 2 9 0", "ACQ4ME b 1 9 0", "ACQ4ME a 2 9 0", "ACQ4ME c 1 9 0"] {
        assert_eq!(door.say(0, line), "LOCKED", "{line}");
    }
    assert_eq!(door.say(0, "ACQ4ME d 1 9 0"), "LOCK_HELD");
    assert_eq!(
        (door.say(1, "ACQ4ME a 2 9 0"), door.say(1, "ACQ4ME c 1 9 0")),
        ("TIMEOUT".into(), "TIMEOUT".into())
    );
    assert_eq!(door.say(0, "RELEASE"), "RELEASED");
    assert_eq!(
        (door.say(1, "ACQ4ME a 2 9 0"), door.say(1, "ACQ4ME c 1 9 0")),
        ("TIMEOUT".into(), "LOCKED".into())
    );
}

#[test]
fn each_is_judged_by_its_own_number_of_workers() {
    let mut door = Door::new(4);
    assert_eq!(door.say(0, "ACQ4ME key 1 9 0"), "LOCKED");
    assert_eq!(door.say(1, "ACQ4ME key 1 9 9"), "-");
    assert_eq!(door.say(2, "ACQ4ME key 2 9 0"), "LOCKED");
    assert_eq!(door.say(3, "ACQ4ME key 2 9 9"), "-");
    // One works still, which is enough for the one and not for the other.
    assert_eq!(door.say(0, "RELEASE"), "RELEASED");
    assert_eq!(door.heard(), "3 LOCKED");
    door.leave(2);
    door.leave(3);
    assert_eq!(door.heard(), "1 LOCKED");
}

#[test]
fn a_wait_is_over_after_whole_seconds() {
    let mut door = Door::new(2);
    assert_eq!(door.say(0, "ACQ4ME key 1 9 9"), "LOCKED");
    assert_eq!(door.say(1, "ACQ4ME key 1 9 3"), "-");
    assert_eq!(door.expire(1), "-", "something is leased");
    assert_eq!(door.expire(1), "TIMEOUT");
    assert_eq!(door.now, Time::ZERO + Duration::from_secs(3));
    assert_eq!(door.say(1, "ACQ4ME key 1 9 0"), "TIMEOUT", "it is not waiting any more");
    assert_eq!(door.table.counts().wasted, Duration::from_secs(3));
    // Nor is it longer where the door would wait longer for what lies elsewhere.
    door.table.set_rules(PoolRules { workers: 500, wait: Duration::from_secs(30), is_open: false });
    assert_eq!((door.say(1, "ACQ4ME key 1 9 1"), door.expire(1)), ("-".into(), "TIMEOUT".into()));
    assert_eq!(door.now, Time::ZERO + Duration::from_secs(4));
}

#[test]
fn who_does_not_wait_does_so_for_what_lies_elsewhere() {
    let mut door = Door::new(1);
    // The only worker is at another door, or not leased by anybody yet.
    let gauge = PoolGauge::new(b"key", 1);
    let elsewhere = door.store.take(&Arc::new(gauge.clone())).ok().unwrap();
    assert_eq!(door.say(0, "ACQ4ANY key 1 9 0"), "-");
    assert!(door.table.is_asking(door.callers[0], door.now));
    assert_eq!(door.expire(0), "TIMEOUT");
    assert!(!door.table.is_asking(door.callers[0], door.now));
    assert_eq!(door.now, Time::ZERO + Duration::from_millis(100));
    assert_eq!(door.say(0, "ACQ4ANY key 1 9 0"), "-");
    drop(elsewhere);
    let unit = door.store.take(&Arc::new(gauge.clone())).ok().unwrap();
    assert!(door.table.serve(&gauge, unit, door.now).is_none());
    assert_eq!(door.heard(), "0 LOCKED");
    assert_eq!(door.table.need(&gauge), (1, 0));
}

#[test]
fn without_a_lease_nobody_knows_and_an_open_door_lets_in() {
    let mut door = Door::new(2);
    door.store.is_cut_off.set(true);
    assert_eq!(door.say(0, "ACQ4ME key 1 9 60"), "-");
    assert_eq!(door.expire(0), "ERROR NO_LEASE");
    assert_eq!(door.now, Time::ZERO + Duration::from_millis(100), "it does not wait for a minute");
    assert_eq!(door.say(0, "ACQ4ME key 1 9 60"), "-");
    door.table.refuse(&PoolGauge::new(b"key", 1), door.now);
    assert_eq!(door.heard(), "0 ERROR NO_LEASE");
    assert_eq!(door.table.counts().keys, 0);

    let rules = PoolRules { workers: 500, wait: Duration::from_millis(100), is_open: true };
    let mut open = Door::with(rules, 2);
    open.store.is_cut_off.set(true);
    assert_eq!((open.say(0, "ACQ4ME key 1 9 60"), open.expire(0)), ("-".into(), "LOCKED".into()));
    // What is known here holds all the same.
    assert_eq!((open.say(1, "ACQ4ME key 1 9 60"), open.expire(1)), ("-".into(), "-".into()));
    assert_eq!(open.say(0, "RELEASE"), "RELEASED");
    assert_eq!(open.expire(1), "LOCKED");
    assert_eq!(open.table.counts().opened, 2);
}

#[test]
fn figures_have_the_words_and_units_of_the_daemon() {
    let mut door = Door::new(2);
    assert_eq!(door.say(0, "ACQ4ME key 1 9 0"), "LOCKED");
    assert_eq!(door.say(1, "ACQ4ANY key 1 9 99999"), "-");
    door.now = Time::ZERO + Duration::from_millis(3_661_500);
    assert_eq!(door.say(0, "RELEASE"), "RELEASED");
    let text = door.say(0, "STATS full");
    let wanted = "uptime: 0 days, 1h 1m 1s\ntotal processing time: 1h 1m 1.500000s\naverage processing time: 1h 1m 1.500000s\n\
                  gained time: 1h 1m 1.500000s\nwaiting time: 0.000000s\nwaiting time for me: 0.000000s\n\
                  waiting time for anyone: 0.000000s\nwaiting time for good: 1h 1m 1.500000s\nwasted timeout time: 0.000000s\n\
                  total_acquired: 1\ntotal_releases: 1\nhashtable_entries: 0\nprocessing_workers: 0\nwaiting_workers: 0\n\
                  connect_errors: 0\nfailed_sends: 0\nfull_queues: 0\nlock_mismatch: 0\nlock_while_waiting: 0\n\
                  release_mismatch: 0\nprocessed_count: 1";
    assert_eq!(text, wanted);
    door.now = Time::ZERO + Duration::from_secs(2 * 86_400 + 3 * 3_600 + 61);
    assert_eq!(door.say(0, "STATS uptime"), "uptime: 2 days, 3h 1m 1s");
    assert_eq!(door.say(0, "ACQ4ME key 1 9 0"), "LOCKED");
    door.now += Duration::from_secs(86_400 + 61);
    assert_eq!(door.say(0, "RELEASE"), "RELEASED");
    let text = door.say(0, "STATS FULL");
    assert!(text.contains("total processing time: 1 days 1h 2m 2.500000s\n"), "{text}");
    let answer = door.table.hear(door.callers[0], b"STATS FULL", door.now, &mut door.store);
    assert!(answer.unwrap().text().ends_with("processed_count: 2\n\n"));
}

#[test]
fn a_key_writes_the_name_of_no_other() {
    let name = |key: &[u8], workers| PoolGauge::new(key, workers).name;
    assert_eq!(&*name(b"ArticleView:idoptions:12", 2), "pool|w:2|ArticleView:idoptions:12");
    assert_eq!(&*name(b"a|d:b/c%20", 1), "pool|w:1|a%7Cd:b%2Fc%2520");
    assert_eq!(&*name(b"x\t\xff|safe", 1), "pool|w:1|x%09%FF%7Csafe");
    let long = name(&[b'a'; 900], 1);
    assert!(long.len() <= crate::name::LONGEST && long != name(&[b'a'; 901], 1), "{long}");
}
