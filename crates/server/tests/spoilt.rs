//! Spoilt messages: those of the corpus with bytes changed, cut out, doubled and mixed, read as a server and a client read them and
//! given to a node.
//!
//! Nothing breaks; what is understood is understood the same when it is said again; what is refused leaves the books as they were;
//! and whatever all of them say, no more is promised of a resource than there is. `LESSOR_SPOILT=1000000` spoils as many, and
//! `LESSOR_TEST_SEED` says which.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod spoiler;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use lessor_proto::message::{
    Answer, Ask, Down, Hello, HolderKind, Limits, Release, Up, WallClock, Whereabouts,
};
use lessor_proto::{Amount, Epoch, ResourceId, Time, wire};
use lessor_server::node::{Books, Node, NodeConfig, Output, Peer};
use lessor_server::repository::{Glob, Kind, Repository, Template};
use lessor_server::token::{Key, PolledLease, TokenKeys};
use prost::Message;
use rand::RngExt;

use self::spoiler::{Spoiler, number};

const CAPACITY: u64 = 100;
const NOON: WallClock = WallClock { since_epoch: Duration::from_secs(1_790_000_000) };
/// Streams that are open at once.
const STREAMS: usize = 20;

/// The messages of all releases, with the name of each.
fn corpus() -> (Vec<String>, Vec<Vec<u8>>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../proto/corpus");
    let mut messages = Vec::new();
    for release in std::fs::read_dir(folder).unwrap() {
        for file in std::fs::read_dir(release.unwrap().path()).unwrap() {
            let path = file.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            messages.push((name, std::fs::read(&path).unwrap()));
        }
    }
    messages.sort();
    messages.into_iter().unzip()
}

/// A node that everybody talks to, with a client and a node on streams.
struct Target {
    node: Node,
    now: Time,
    streams: Vec<(Peer, HolderKind)>,
    /// Messages that were taken, and such that were refused.
    counts: BTreeMap<&'static str, usize>,
}

/// The books of all resources that are known.
type AllBooks = BTreeMap<ResourceId, Option<Books>>;

// === impl Target ===

impl Target {
    fn new() -> Target {
        let template = |glob: &str, kind| Template {
            kind,
            learning: Duration::ZERO,
            ..Template::new(Glob::new(glob).unwrap(), Amount::from_units(CAPACITY))
        };
        let of_windows = template("db", Kind::Gauge);
        // The resource of the corpus, as it is asked for there: as it is sound, it is answered.
        let of_windows = Template {
            window: Some(Duration::from_secs(10)),
            learning: of_windows.lease_length,
            ..of_windows
        };
        let templates = vec![template("*", Kind::Rate), template("disk", Kind::Gauge), of_windows];
        let config = NodeConfig {
            keys: Some(TokenKeys::new(Key::new([7; 32]))),
            ..NodeConfig::new("root", Epoch(12))
        };
        let node = Node::new(Time::ZERO, config, Repository::new(templates).unwrap());
        Target { node, now: Time::ZERO, streams: Vec::new(), counts: BTreeMap::new() }
    }

    fn count(&mut self, outcome: &'static str) {
        *self.counts.entry(outcome).or_default() += 1;
    }

    fn all_books(&self) -> AllBooks {
        let known = self.node.outstanding(self.now).into_keys();
        known.map(|id| (id.clone(), self.node.charges(&id))).collect()
    }

    /// Time goes on, and everybody takes what it is sent.
    fn go_on(&mut self, step: Duration) {
        self.now += step;
        self.node.advance(self.now);
        for _ in 0..1_000 {
            let Some(output) = self.node.poll(self.now) else { break };
            match output {
                Output::Send { peer, down } => {
                    let again = Down::from_wire(down.to_wire(HolderKind::Client, NOON), NOON);
                    assert!(again.is_ok(), "{again:?}");
                    self.node.ready(self.now, peer);
                }
                Output::Close { peer, .. } => {
                    self.node.disconnect(self.now, peer);
                    self.streams.retain(|(open, _)| *open != peer);
                }
                Output::Parent(_) => {}
            }
        }
        for (resource, outstanding) in self.node.outstanding(self.now) {
            let most = Amount::from_units(CAPACITY);
            assert!(outstanding <= most, "{outstanding} of {resource} are out");
        }
    }

    fn on_ask(&mut self, ask: &Ask) {
        let before = self.all_books();
        if self.node.ask(self.now, ask).is_ok() {
            return self.count("answered");
        }
        let after = self.all_books();
        assert_eq!(
            lasting(after, self.now),
            lasting(before, self.now),
            "what was refused has changed something: {ask:?}"
        );
        self.count("refused by the node");
    }

    fn on_hello(&mut self, hello: Hello) {
        if self.node.check_hello(&hello).is_err() || self.streams.len() >= STREAMS {
            return self.count("refused by the node");
        }
        let kind = hello.kind;
        let peer = self.node.connect(self.now, hello);
        self.streams.push((peer, kind));
        self.count("streams");
    }
}

/// The charges that last beyond `now`: books are looked through at intervals, or by whoever asks.
fn lasting(books: AllBooks, now: Time) -> Vec<String> {
    let of = |(id, books): (ResourceId, Option<Books>)| {
        let children = books.into_iter().flat_map(|books| books.children);
        let lasting = children.filter(|child| child.ends.is_some_and(|end| end > now));
        lasting.map(|child| format!("{id} {child:?}")).collect::<Vec<_>>()
    };
    books.into_iter().flat_map(of).collect()
}

/// The message that `bytes` are, if they are one of its type.
fn decoded<T: Message + Default>(target: &mut Target, bytes: &[u8]) -> Option<T> {
    let decoded = T::decode(bytes).ok();
    if decoded.is_none() {
        target.count("no message");
    }
    decoded
}

/// A message that passes its checks; of one that does not it is counted that it was refused.
fn checked<T, E>(target: &mut Target, read: Result<T, E>) -> Option<T> {
    if read.is_err() {
        target.count("refused");
    }
    read.ok()
}

/// Reads `bytes` as `kind`, on the stream of that number if it comes on one. What is understood is given on; absent: it is not.
fn read(target: &mut Target, kind: &str, bytes: &[u8], stream: usize) -> Option<()> {
    let limits = Limits::default();
    match kind {
        "up.hello" => {
            let wire = decoded(target, bytes)?;
            let hello = checked(target, Hello::first(wire, &limits))?;
            let again = Hello::first(Up::Hello(hello.clone()).to_wire(hello.kind), &limits);
            assert_eq!(again.as_ref(), Ok(&hello));
            target.on_hello(hello);
        }
        kind if kind.starts_with("up.") => {
            let wire = decoded(target, bytes)?;
            let &(peer, holder) = target.streams.get(stream % target.streams.len().max(1))?;
            let Some(up) = checked(target, Up::from_wire(wire, &limits, holder))? else {
                target.count("unknown kinds");
                return None;
            };
            assert_eq!(Up::from_wire(up.to_wire(holder), &limits, holder), Ok(Some(up.clone())));
            target.node.receive(target.now, peer, up);
            target.count("heard");
        }
        kind if kind.starts_with("down.") => {
            let wire = decoded(target, bytes)?;
            let down = checked(target, Down::from_wire(wire, NOON))??;
            let again = Down::from_wire(down.clone().to_wire(HolderKind::Node, NOON), NOON);
            assert!(matches!(again, Ok(Some(_))), "{down:?} {again:?}");
            target.count("told");
        }
        _ => read_unary(target, kind, bytes)?,
    }
    Some(())
}

/// The same of what comes by itself.
fn read_unary(target: &mut Target, kind: &str, bytes: &[u8]) -> Option<()> {
    let limits = Limits::default();
    match kind {
        "unary.GetCapacityRequest" => {
            let wire = decoded(target, bytes)?;
            let ask = checked(target, Ask::from_client(wire, &limits))?;
            assert_eq!(Ask::from_client(ask.to_wire(), &limits).as_ref(), Ok(&ask));
            target.on_ask(&ask);
        }
        "unary.GetServerCapacityRequest" => {
            let wire = decoded(target, bytes)?;
            let ask = checked(target, Ask::from_node(wire, &limits))?;
            assert_eq!(Ask::from_node(ask.to_node_wire(), &limits).as_ref(), Ok(&ask));
            target.on_ask(&ask);
        }
        "unary.ReleaseCapacityRequest" => {
            let wire = decoded(target, bytes)?;
            let release = checked(target, Release::from_wire(wire, &limits))?;
            assert_eq!(Release::from_wire(release.to_wire(), &limits).as_ref(), Ok(&release));
            target.node.release(target.now, &release);
            target.count("released");
        }
        "unary.GetCapacityResponse" => {
            let wire = decoded(target, bytes)?;
            checked(target, Answer::from_wire(wire, NOON))?;
            target.count("told");
        }
        "unary.GetServerCapacityResponse" => {
            let wire = decoded(target, bytes)?;
            checked(target, Answer::from_node_wire(wire, NOON))?;
            target.count("told");
        }
        _ => {
            // A token is what its holder shows, whatever that is.
            _ = PolledLease::read(bytes);
            let found = Whereabouts::from_wire(decoded::<wire::DiscoveryResponse>(target, bytes)?);
            assert_eq!(Whereabouts::from_wire(found.to_wire()), found);
        }
    }
    Some(())
}

#[test]
fn no_spoilt_message_breaks_anything_or_is_kept_where_it_is_refused() {
    let count = number("LESSOR_SPOILT", 20_000);
    let (mut spoiler, (names, messages)) = (Spoiler::new(number("LESSOR_TEST_SEED", 1)), corpus());
    let mut target = Target::new();
    for _ in 0..count {
        let which = spoiler.rng.random_range(0..messages.len());
        let kind = names[which].splitn(3, '.').take(2).collect::<Vec<_>>().join(".");
        let bytes = spoiler.spoil(which, &messages, 0..=2);
        read(&mut target, &kind, &bytes, spoiler.rng.random_range(0..STREAMS));
        if spoiler.rng.random_range(0..8) == 0 {
            target.go_on(Duration::from_millis(spoiler.rng.random_range(1..2_000)));
        }
    }
    println!("{:?}", target.counts);
    for outcome in ["no message", "refused", "answered", "heard", "told", "released", "streams"] {
        let happened = target.counts.get(outcome).copied().unwrap_or(0);
        assert!(happened as u64 > count / 2_000, "{outcome}: {:?}", target.counts);
    }
}
