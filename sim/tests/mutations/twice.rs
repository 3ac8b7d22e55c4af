//! Pollers whose server dies twice: the third life is shown leases of the first.
//!
//! The server keeps its state in a file, and is alone on a machine that goes on. Capacity is 100, leases last 60 s, and
//! clocks are perfect.

use std::time::Duration;

use lessor_proto::Drift;
use lessor_server::election::state::{Clock, State};
use lessor_server::node::{Node, NodeConfig};
use lessor_server::record::RecordChange;
use lessor_server::token::{Key, TokenKeys};
use lessor_sim::mutation::Mutation;

use super::hall::{repository, units};
use super::pollers::{CAPACITY, Poller, exceeded, second};

/// A server, and the file that outlives it.
struct Server {
    without: Option<Mutation>,
    file: String,
    node: Node,
}

// === impl Server ===

impl Server {
    /// Begins at zero, on a file that says that nothing is out.
    fn new(without: Option<Mutation>) -> Server {
        let mut state = State::begin("root", 7, 0);
        state.apply(&RecordChange { terms: Some(Default::default()), ..RecordChange::default() });
        let mut server = Server::begin(without, &state.encode(&clock(0)), 0);
        server.write(0);
        server
    }

    fn begin(without: Option<Mutation>, file: &str, now: u64) -> Server {
        let (mut state, record) =
            State::left(file.as_bytes(), "root", &clock(now)).expect("it was written by us");
        state.succeed(0, record.to_tell(second(now), Drift::NONE));
        let config = NodeConfig {
            record: Some(record),
            marks: true,
            keys: Some(TokenKeys::new(Key::new([7; 32]))),
            drift: Drift::NONE,
            rules: without.map(Mutation::node).unwrap_or_default(),
            ..NodeConfig::new("root", state.epoch())
        };
        let node = Node::new(second(now), config, repository(CAPACITY));
        Server { without, file: state.encode(&clock(now)), node }
    }

    /// Dies, and comes back.
    fn die(&mut self, now: u64) {
        self.die_for_now(now);
        self.write(now);
    }

    /// Dies, and comes back; what its node wants to be written stands in the file no sooner than it is written.
    fn die_for_now(&mut self, now: u64) {
        *self = Server::begin(self.without, &self.file, now);
    }

    /// Writes what is to be written.
    fn write(&mut self, now: u64) {
        let later = second(now) + Duration::from_millis(20);
        for _ in 0..10 {
            let Some(write) = self.node.next_marks(later) else { return };
            let (mut state, _) = State::decode(&self.file, "root").expect("it was written by us");
            state.apply(&write.change);
            self.file = state.encode(&clock(now));
            self.node.on_marks(later, write.ticket, true);
        }
        panic!("there is always more to write");
    }

    /// Answers the poller until nothing is in the way of what it is granted.
    fn serve(&mut self, now: u64, poller: &mut Poller, wants: u64) {
        for _ in 0..6 {
            poller.poll(&mut self.node, now, wants);
            self.write(now);
        }
    }
}

fn clock(now: u64) -> Clock {
    Clock { boot: Some("here".to_owned()), at: second(now) }
}

/// The server dies once more before it has answered the claim of a poller, or before it has heard of it at all. The poller has
/// what it had all the time.
pub(crate) fn before_the_claim_is_answered(without: Option<Mutation>) -> Option<String> {
    for heard in 0..3 {
        let mut server = Server::new(without);
        let (mut a, mut b) = (Poller::new("a"), Poller::new("b"));
        server.serve(0, &mut a, 60);
        server.serve(1, &mut b, 40);
        server.die(10);
        if heard > 0 {
            // It is answered with the same lease, and shows that in its claim.
            a.poll(&mut server.node, 11, 60);
        }
        if heard > 1 {
            server.node.ask(second(12), &a.letter(60).0).expect("it is asked well");
            server.write(12);
        }
        for (now, dies) in [
            (14, true),
            (16, false),
            (40, true),
            (42, false),
            (58, false),
            (62, false),
            (66, false),
            (90, false),
        ] {
            if dies {
                server.die(now);
            }
            server.serve(now, &mut a, 60);
            if a.believes(now) != units(60) {
                return Some(format!("{} is left of 60 at {now} s, heard {heard} times", a.believes(now)));
            }
            if let Some(much) = exceeded(now, &[&a, &b]) {
                return Some(much);
            }
        }
    }
    None
}

/// Lives that die before anything of theirs has been written but that they had begun, whether the poller has been answered or
/// not. It has what it had all the time.
pub(crate) fn before_anything_is_written(without: Option<Mutation>) -> Option<String> {
    for (short_lives, is_answered) in [(1, false), (1, true), (3, false), (3, true)] {
        let mut server = Server::new(without);
        let (mut a, mut b) = (Poller::new("a"), Poller::new("b"));
        server.serve(0, &mut a, 60);
        server.serve(1, &mut b, 40);
        for life in 0..short_lives {
            server.die_for_now(10 + 2 * life);
            if is_answered {
                a.poll(&mut server.node, 11 + 2 * life, 60);
            }
        }
        server.die(20);
        for now in [22, 40, 58, 62, 90] {
            server.serve(now, &mut a, 60);
            if a.believes(now) != units(60) {
                let left = a.believes(now);
                return Some(format!(
                    "{left} is left of 60 at {now} s, {short_lives} short lives, {is_answered}"
                ));
            }
            if let Some(much) = exceeded(now, &[&a, &b]) {
                return Some(much);
            }
        }
    }
    None
}

/// A lease of the first life is over in the second one, which grants it to another, or in the third. It is nobody's claim.
pub(crate) fn over_in_between(without: Option<Mutation>) -> Option<String> {
    let all = [over_in_the_second(without), over_in_the_third(without), over_before_the_claim(without)];
    let noticed: Vec<String> = all.iter().flatten().cloned().collect();
    assert!(noticed.is_empty() || noticed.len() == all.len(), "only some of them are noticed: {all:?}");
    (!noticed.is_empty()).then(|| noticed.join("; "))
}

fn over_in_the_second(without: Option<Mutation>) -> Option<String> {
    let mut server = Server::new(without);
    let (mut a, mut b) = (Poller::new("a"), Poller::new("b"));
    server.serve(0, &mut a, 60);
    server.die(10);
    server.serve(75, &mut b, CAPACITY);
    assert_eq!(b.believes(75), units(CAPACITY), "it is all there is");
    server.die(76);
    server.serve(77, &mut a, 60);
    exceeded(77, &[&a, &b])
}

fn over_in_the_third(without: Option<Mutation>) -> Option<String> {
    let mut server = Server::new(without);
    let (mut a, mut b, mut c) = (Poller::new("a"), Poller::new("b"), Poller::new("c"));
    server.serve(0, &mut a, 60);
    server.die(10);
    // What is left from before is said to be so.
    server.write(20);
    server.serve(64, &mut b, 30);
    assert_eq!(b.believes(64), units(30), "it was never out");
    server.die(65);
    server.serve(72, &mut c, CAPACITY);
    assert!(c.believes(72) > units(60), "what was left from the first life is over");
    server.serve(73, &mut a, 60);
    server.serve(74, &mut b, 30);
    exceeded(74, &[&a, &b, &c])
}

/// The third life has answered it with the same lease already, when that is over there.
fn over_before_the_claim(without: Option<Mutation>) -> Option<String> {
    let mut server = Server::new(without);
    let (mut a, mut b, mut c) = (Poller::new("a"), Poller::new("b"), Poller::new("c"));
    server.serve(0, &mut a, 60);
    server.die(10);
    server.write(20);
    server.serve(64, &mut b, 30);
    server.die(65);
    // It counts at that moment, and not any more when it is claimed.
    a.poll(&mut server.node, 66, 60);
    server.serve(72, &mut c, CAPACITY);
    server.serve(73, &mut a, 60);
    server.serve(74, &mut b, 30);
    exceeded(74, &[&a, &b, &c])
}
