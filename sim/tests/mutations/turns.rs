//! Units that go round among those who poll: while somebody of a higher priority is short of one, while there are now more
//! of them and now less, and while turns are shorter than the time between two polls.

use std::time::Duration;

use lessor_proto::message::{Ask, Grant, Has, HolderKind};
use lessor_proto::{ClientId, Incarnation, ReportId, Time};
use lessor_server::node::Node;
use lessor_sim::mutation::Mutation;

use super::hall;

/// The seconds between two turns: the refresh interval, as nothing else is said.
const QUANTUM: u64 = 5;

/// A client that polls, and keeps to what it was granted last.
struct Poller {
    name: &'static str,
    priority: i64,
    grant: Option<Grant>,
    reports: u64,
}

/// Three take turns for two units, and who holds none always asks as soon as one is given back. Then somebody of a higher
/// priority wants one of them, and asks once in a quantum, at any time of it.
pub(crate) fn of_a_lower_priority(without: Option<Mutation>) -> Option<String> {
    let most = (0..QUANTUM).map(|phase| asks_in_vain(without, phase)).max();
    most.filter(|&most| most > 1)
        .map(|most| format!("who wants one of two units with a higher priority asks {most} times in vain"))
}

fn asks_in_vain(without: Option<Mutation>, phase: u64) -> u64 {
    let mut node = hall::first(without, 2);
    node.reload(Time::ZERO, hall::gauge(2));
    let mut low = ["ann", "bob", "cid"].map(|name| Poller::new(name, 0));
    let (mut high, mut asked) = (Poller::new("high", 1), 0);
    for second in 0..20 * QUANTUM {
        let now = Time::ZERO + Duration::from_secs(second);
        low.sort_by_key(|client| client.units() == 0);
        for client in &mut low {
            client.poll(&mut node, now);
        }
        if second >= 10 * QUANTUM && second % QUANTUM == phase {
            high.poll(&mut node, now);
            if high.units() == 1 {
                return asked;
            }
            asked += 1;
        }
    }
    asked
}

/// Five take turns for two units, and for a third one that comes and goes with every other turn, some time after it has been
/// taken: as below a node that takes turns for it itself.
pub(crate) fn for_a_unit_that_comes_and_goes(without: Option<Mutation>) -> Option<String> {
    let longest = (1..10).map(|after| longest_without_a_unit(without, after)).max();
    // Two of five quanta are everybody's at least.
    longest.filter(|&most| most > 5).map(|most| format!("one of five has no unit in {most} quanta"))
}

/// The longest time for which one of them had none, in quanta, when the third unit comes and goes `after` so many tenths of a
/// second.
fn longest_without_a_unit(without: Option<Mutation>, after: u64) -> u64 {
    const TICKS: u64 = 10 * QUANTUM;
    let mut node = hall::first(without, 2);
    node.reload(Time::ZERO, hall::gauge(2));
    let mut clients = ["ann", "bob", "cid", "dot", "eve"].map(|name| Poller::new(name, 0));
    let (mut had, mut longest) = ([0; 5], 0);
    for tick in 0..60 * TICKS {
        let now = Time::ZERO + Duration::from_millis(100 * tick);
        if tick % TICKS == after {
            let is_odd = tick / TICKS % 2 == 1;
            node.reload(now, hall::gauge(if is_odd { 2 } else { 3 }));
        }
        for (client, had) in clients.iter_mut().zip(&mut had) {
            client.poll(&mut node, now);
            if client.units() > 0 {
                *had = tick;
            }
            longest = longest.max(tick - *had);
        }
    }
    longest / TICKS
}

/// One who asks forty times a second, and one who asks once in a second or once in five, whatever it is told, share a unit in
/// turns of an eighth of a second: the polls of the other one fall always into the same of eight turns.
pub(crate) fn that_its_polls_never_meet(without: Option<Mutation>) -> Option<String> {
    let worst =
        [1, 5].into_iter().flat_map(|pace| (0..5).map(move |phase| polls_in_vain(without, pace, phase)));
    // A poll in which it is not in line, one in which the unit is still out, and the one in which it gives it back.
    worst
        .max()
        .filter(|&most| most > 3)
        .map(|most| format!("{most} polls in a row, or turns as long, bring no unit"))
}

/// The most polls in a row that bring the slow one of them no unit, or the longest time in which the other one has none, in
/// those; if the slow one asks every `pace` seconds, and `phase` ticks later than turns begin.
fn polls_in_vain(without: Option<Mutation>, pace: u64, phase: u64) -> u64 {
    const TICKS: u64 = 40;
    let mut node = hall::first(without, 1);
    node.reload(Time::ZERO, hall::gauge_in_turns(1, Duration::from_millis(125)));
    let [mut often, mut rarely] = ["ann", "bob"].map(|name| Poller::new(name, 0));
    let (mut in_vain, mut since, mut most) = (0, 0, 0);
    for tick in 0..40 * pace * TICKS {
        let now = Time::ZERO + Duration::from_millis(1_000 / TICKS * tick);
        often.poll(&mut node, now);
        since = if often.units() > 0 { tick } else { since };
        if tick % (pace * TICKS) == phase {
            rarely.poll(&mut node, now);
            in_vain = if rarely.units() > 0 { 0 } else { in_vain + 1 };
        }
        // They come to know each other first.
        if tick > 10 * pace * TICKS {
            most = most.max(in_vain).max((tick - since) / (pace * TICKS));
        }
    }
    most
}

// === impl Poller ===

impl Poller {
    fn new(name: &'static str, priority: i64) -> Poller {
        Poller { name, priority, grant: None, reports: 0 }
    }

    fn units(&self) -> u64 {
        self.grant.as_ref().map_or(0, |grant| grant.capacity.as_micros() / 1_000_000)
    }

    fn poll(&mut self, node: &mut Node, now: Time) {
        self.reports += 1;
        let report = hall::Report { wants: 1.0, priority: self.priority, ..hall::Report::default() };
        let mut told = report.told();
        told.held = self.grant.as_ref().map(|grant| grant.capacity);
        told.has = self.grant.as_ref().map(|grant| Has {
            capacity: grant.capacity,
            order: grant.order,
            token: grant.token.clone(),
            lasts: None,
            expiry: 0,
        });
        let ask = Ask {
            kind: HolderKind::Client,
            holder: ClientId::new(self.name, 16).expect("a name"),
            incarnation: Some(Incarnation(1)),
            report_id: Some(ReportId(self.reports)),
            target_epoch: None,
            line: None,
            reports: vec![told],
        };
        let answer = node.ask(now, &ask).expect("it is asked well");
        if let Some(grant) = answer.grants.into_iter().next() {
            self.grant = Some(grant);
        }
    }
}
