//! Units that go round among those who poll: while somebody of a higher priority is short of one, and while there are now more
//! of them and now less.

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
