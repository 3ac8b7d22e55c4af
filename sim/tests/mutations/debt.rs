//! A cut, and a heartbeat while it is being carried out.

use std::time::Duration;

use lessor_proto::message::{Down, Hello, HolderKind, StreamReport, Up};
use lessor_proto::{ClientId, Epoch, Incarnation, ReportId, Time};
use lessor_server::node::{Node, Output, Peer};
use lessor_sim::mutation::Mutation;

use super::hall::{self, Report};

/// A holder on a stream.
struct Holder {
    peer: Peer,
    reports: u64,
    /// The number of the last grant that came down, and its units.
    granted: (u64, u64),
}

/// Of 100 one holder has 90 and another 10; then 50 are left. The second goes on saying that it keeps its 10 and is cut off
/// at last, the first is not heard of until then, and is given what the rule leaves of the 50. A lease after the cut,
/// and a little, everything from before is over.
pub(crate) fn kept_by_heartbeats(without: Option<Mutation>) -> Option<String> {
    let mut node = hall::first(without, 100);
    let mut large = Holder::connect(&mut node, "large");
    let mut small = Holder::connect(&mut node, "small");
    let wants = |wants| Report { wants, ..Report::default() };
    large.report(&mut node, at(0), &wants(90.0));
    small.report(&mut node, at(0), &wants(10.0));
    hear(&mut node, at(0), &mut [&mut large, &mut small]);
    assert_eq!((large.granted.1, small.granted.1), (90, 10));

    let shown = |granted: (u64, u64)| (Some((1, granted.0, granted.1)), Some(granted.1));
    let (has, held) = shown(large.granted);
    node.reload(at(1), hall::repository(50));
    for seconds in (1..=5).map(|tens| tens * 10) {
        small.beat(&mut node, at(seconds));
        hear(&mut node, at(seconds), &mut [&mut large, &mut small]);
    }
    large.report(&mut node, at(52), &Report { wants: 90.0, priority: 1, has, held, token: None });
    hear(&mut node, at(52), &mut [&mut large]);
    let (has, held) = shown(large.granted);
    large.report(&mut node, at(53), &Report { wants: 90.0, priority: 1, has, held, token: None });
    hear(&mut node, at(53), &mut [&mut large]);

    node.advance(at(70));
    let books = node.books(at(70), &hall::resource()).expect("it was asked for");
    books.in_debt.then(|| format!("{} millionths of 50 are out a lease after the cut", books.total))
}

fn at(seconds: u64) -> Time {
    Time::ZERO + Duration::from_secs(seconds)
}

/// Takes what the node says until it has said everything, also what it puts off for a moment.
fn hear(node: &mut Node, at: Time, holders: &mut [&mut Holder]) {
    let later = at + Duration::from_millis(100);
    let mut now = at;
    loop {
        while let Some(output) = node.poll(now) {
            let Output::Send { peer, down } = output else { continue };
            node.ready(now, peer);
            let holder = holders.iter_mut().find(|holder| holder.peer == peer);
            if let (Some(holder), Down::Grants(grants)) = (holder, down)
                && let Some(grant) = grants.last()
            {
                let seq = grant.order.expect("grants are numbered").seq;
                holder.granted = (seq, grant.capacity.as_micros() / 1_000_000);
            }
        }
        match node.next_deadline().filter(|&due| due <= later) {
            Some(due) => now = now.max(due),
            None => return,
        }
    }
}

// === impl Holder ===

impl Holder {
    fn connect(node: &mut Node, name: &str) -> Holder {
        let holder = ClientId::new(name, 16).expect("a name");
        let peer = node.connect(at(0), Hello::new(HolderKind::Client, holder, Incarnation(1)));
        Holder { peer, reports: 0, granted: (0, 0) }
    }

    fn report(&mut self, node: &mut Node, now: Time, report: &Report) {
        self.say(node, now, false, vec![report.told()]);
    }

    fn beat(&mut self, node: &mut Node, now: Time) {
        self.say(node, now, true, Vec::new());
    }

    fn say(
        &mut self,
        node: &mut Node,
        now: Time,
        renew_all: bool,
        reports: Vec<lessor_proto::message::Report>,
    ) {
        self.reports += 1;
        let report =
            StreamReport { id: ReportId(self.reports), target_epoch: Some(Epoch(1)), renew_all, reports };
        node.receive(now, self.peer, Up::Report(report));
    }
}
