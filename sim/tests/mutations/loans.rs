//! Loans of what nobody wants: a claim on it takes from no share, and a recall leaves everybody the part that it would
//! be given again.

use std::time::Duration;

use lessor_proto::message::{Band, Bands, Down, Has, Hello, HolderKind, Order, Report, StreamReport, Up};
use lessor_proto::{Amount, ClientId, Incarnation, ReportId, Time};
use lessor_server::node::{Node, Output, Peer};
use lessor_sim::mutation::Mutation;

use super::hall;

/// A client on a stream, which acknowledges at once what it is asked to.
struct Client {
    peer: Peer,
    wants: f64,
    peak: Option<f64>,
    reports: u64,
    has: Option<(Amount, Order)>,
}

/// Of 100 one client wants 90, and one 10 with a peak of 500. There is no room for its peak.
pub(crate) fn claimed_beside_shares(without: Option<Mutation>) -> Option<String> {
    let mut node = hall::first(without, 100);
    let mut clients = vec![Client::new(&mut node, "even", 90.0, None)];
    settle(&mut node, at(1), &mut clients);
    clients.push(Client::new(&mut node, "peaked", 10.0, Some(500.0)));
    settle(&mut node, at(2), &mut clients);
    let has = clients[0].units();
    (has < 89.9).then(|| format!("who wants 90 of 100 has {has}, for the peak of another"))
}

/// Two share what nobody wants, the first most of it. Then somebody wants 80 of the 100, and a tenth of what is left is kept.
pub(crate) fn recalled_for_a_share(without: Option<Mutation>) -> Option<String> {
    let mut node = hall::first(without, 100);
    let mut clients = vec![Client::new(&mut node, "first", 0.0, Some(0.0))];
    settle(&mut node, at(1), &mut clients);
    clients.push(Client::new(&mut node, "second", 0.0, Some(0.0)));
    settle(&mut node, at(2), &mut clients);
    clients.push(Client::new(&mut node, "poor", 80.0, None));
    settle(&mut node, at(3), &mut clients);
    let poor = clients[2].units();
    if poor < 79.9 {
        return Some(format!("who wants 80 of 100 has {poor}, for what others are lent"));
    }
    let least = clients[0].units().min(clients[1].units());
    (least < 8.9).then(|| format!("{least} are left to one of two who have 18, and 9 are its part"))
}

/// Of 100 nobody wants any. Nothing is lent to a node below that may hold none of it: to one of which that was found before its first
/// report was heard, as there was no place for it, and to one that an operator recalled from, and that comes back on another stream.
pub(crate) fn lent_to_one_that_may_hold_nothing(without: Option<Mutation>) -> Option<String> {
    let found =
        [("at its first report", lent_to_a_newcomer(without)), ("as it came back", lent_again(without))];
    let (when, units) = found.into_iter().find(|&(_, units)| units > 0.0)?;
    Some(format!("a node that may hold nothing is lent {units} {when}"))
}

fn lent_to_a_newcomer(without: Option<Mutation>) -> f64 {
    let mut node = hall::first(without, 100);
    let mut clients = vec![Client::below(&mut node)];
    node.revoke(at(1), clients[0].peer, &[hall::resource()]);
    settle(&mut node, at(1), &mut clients);
    clients[0].units()
}

fn lent_again(without: Option<Mutation>) -> f64 {
    let mut node = hall::first(without, 100);
    let mut clients = vec![Client::below(&mut node)];
    settle(&mut node, at(1), &mut clients);
    assert!(clients[0].units() > 0.0, "it is lent what nobody wants");
    let holder = ClientId::new("below", 16).expect("a name");
    let leases = node.recall(at(2), &hall::resource(), &holder, Duration::from_secs(60));
    assert_eq!(leases.expect("it holds some").len(), 1);
    settle(&mut node, at(2), &mut clients);
    node.disconnect(at(3), clients[0].peer);
    clients[0].peer = Client::below(&mut node).peer;
    settle(&mut node, at(3), &mut clients);
    clients[0].units()
}

fn at(seconds: u64) -> Time {
    Time::ZERO + Duration::from_secs(seconds)
}

/// Hears and answers for a second.
fn settle(node: &mut Node, begin: Time, clients: &mut [Client]) {
    let (mut now, end) = (begin, begin + Duration::from_millis(900));
    if let Some(client) = clients.last_mut() {
        client.report(node, now);
    }
    for _ in 0..10_000 {
        while let Some(output) = node.poll(now) {
            let Output::Send { peer, down } = output else { continue };
            node.ready(now, peer);
            let client = clients.iter_mut().find(|client| client.peer == peer);
            if let (Some(client), Down::Grants(grants)) = (client, down) {
                let is_asked = grants.iter().any(|grant| grant.ack_wanted);
                let last = grants.last().and_then(|grant| Some((grant.capacity, grant.order?)));
                client.has = last.or(client.has);
                if is_asked {
                    client.report(node, now);
                }
            }
        }
        match node.next_deadline().filter(|&due| due <= end) {
            Some(due) => now = now.max(due),
            None => return,
        }
    }
    panic!("they take from each other for ever");
}

// === impl Client ===

impl Client {
    fn new(node: &mut Node, name: &str, wants: f64, peak: Option<f64>) -> Client {
        let holder = ClientId::new(name, 16).expect("a name");
        let peer = node.connect(at(0), Hello::new(HolderKind::Client, holder, Incarnation(1)));
        Client { peer, wants, peak, reports: 0, has: None }
    }

    /// A node, on its next stream.
    fn below(node: &mut Node) -> Client {
        let holder = ClientId::new("below", 16).expect("a name");
        let peer = node.connect(at(0), Hello::new(HolderKind::Node, holder, Incarnation(1)));
        Client { peer, wants: 0.0, peak: None, reports: 0, has: None }
    }

    fn units(&self) -> f64 {
        self.has.map_or(0.0, |(amount, _)| amount.as_f64())
    }

    fn report(&mut self, node: &mut Node, now: Time) {
        self.reports += 1;
        let has = self.has.map(|(capacity, order)| Has {
            capacity,
            order: Some(order),
            token: Vec::new(),
            lasts: None,
            expiry: 0,
        });
        let report = Report {
            resource: hall::resource(),
            bands: Bands::from_elem(Band { priority: 0, subclients: 1, wants: self.wants }, 1),
            held: has.as_ref().map(|has| has.capacity),
            has,
            domains: None,
            integer: None,
            peak: self.peak,
            unenforced: None,
        };
        let report = StreamReport {
            id: ReportId(self.reports),
            target_epoch: None,
            renew_all: false,
            reports: vec![report],
        };
        node.receive(now, self.peer, Up::Report(report));
    }
}
