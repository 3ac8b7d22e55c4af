//! The cost of a look at a tree: the bytes that come up, the work of all nodes, and the time for which a node is held up, which is
//! that of one slice of its status.
//!
//! `cargo bench -p lessor-server --bench looks`; it prints a line for each of the figures.

use std::time::Duration;

use lessor_client::Kind;
use lessor_client::internals::holding::HoldingConfig;
use lessor_client::internals::session::{Session, SessionConfig};
use lessor_proto::message::LookKind;
use lessor_proto::{Amount, ClientId, Epoch, Incarnation, ResourceId, Time, wire};
use lessor_server::look::tree::{NodeBranch, TreeQuery};
use lessor_server::look::{self, LookQuestion, ViewTree};
use lessor_server::node::{NodeConfig, ParentConfig, StatusQuery, StatusScan};
use lessor_server::repository::{Glob, Repository, Template};
use lessor_sim::net::StillNet;
use prost::Message;
use rustix::time::{ClockId, clock_gettime};

/// Nodes below each node, level by level.
const BRANCHES: [usize; 2] = [10, 10];
const RESOURCES: usize = 50;
/// Clients of each leaf.
const CLIENTS: usize = 20;

fn main() {
    let (mut net, parents, now) = grow();
    let nodes = parents.len();
    println!("{nodes} nodes, {RESOURCES} resources each, {CLIENTS} clients of each leaf");

    let (mut longest, mut whole) = (Duration::ZERO, Duration::ZERO);
    for site in 0..nodes {
        let node = net.net.node(site).expect("it leads");
        let mut scan = StatusScan::new(StatusQuery::FIGURES);
        let mut of_node = Duration::ZERO;
        loop {
            let began = worked();
            let status = scan.step(now, node);
            let took = worked() - began;
            (longest, of_node) = (longest.max(took), of_node + took);
            if status.is_some() {
                break;
            }
        }
        whole = whole.max(of_node);
    }
    println!("under the lock, at each node: {whole:?} at the most, in slices of {longest:?} at the most");

    let body = TreeQuery { resources: RESOURCES, matching: None }.to_bytes();
    let question = LookQuestion { kind: LookKind::Tree, body };
    let began = worked();
    let root = net.net.node_mut(0).expect("it leads");
    root.look(now, question, look::PATIENCE).expect("nobody else looks");
    net.settle(now, &mut |_, _| {});
    let (_, bytes) =
        net.net.node_mut(0).and_then(lessor_server::node::Node::next_view).expect("all have answered");
    println!("work of all nodes together: {:?}", worked() - began);

    let view = wire::View::decode(bytes.as_slice()).expect("a view");
    let to_root: usize = view.below.iter().filter_map(|below| below.view.as_ref()).map(Vec::len).sum();
    let largest = view.below.iter().filter_map(|below| below.view.as_ref()).map(Vec::len).max();
    println!(
        "{} bytes at the root, of which {to_root} came up its streams, {} on one; {:.0} a row",
        bytes.len(),
        largest.unwrap_or(0),
        bytes.len() as f64 / (nodes * RESOURCES) as f64
    );
    let began = worked();
    let tree = ViewTree::read(&bytes, look::BOUNDS.levels).expect("a view");
    let tree = NodeBranch::of("root".to_owned(), tree);
    println!("read in {:?}", worked() - began);
    let rows = rows(&tree);
    assert_eq!((tree.seen_nodes().shown, rows), (nodes, nodes * RESOURCES), "all is shown");
}

fn rows(tree: &NodeBranch) -> usize {
    let own = tree.figures.as_ref().map_or(0, |figures| figures.resources.len());
    own + tree.below.iter().map(rows).sum::<usize>()
}

/// A tree in which everybody has its share, and the time by then.
fn grow() -> (StillNet, Vec<Option<usize>>, Time) {
    let mut parents = vec![None];
    let mut level = vec![0];
    for branches in BRANCHES {
        let above = std::mem::take(&mut level);
        for parent in above {
            for _ in 0..branches {
                level.push(parents.len());
                parents.push(Some(parent));
            }
        }
    }
    let mut net = StillNet::new(&parents);
    let mut now = Time::ZERO + Duration::from_secs(1_000);
    for (site, parent) in parents.iter().enumerate() {
        let template = Template::new(Glob::new("*").expect("a glob"), Amount::from_units(50_000));
        let parent = parent.map(|parent: usize| ParentConfig {
            servers: vec![parent.to_string().into()],
            transport: lessor_client::Transport::Stream,
            eager: true,
        });
        let config = NodeConfig { parent, ..NodeConfig::new(format!("node-{site:03}"), Epoch(1)) };
        net.net.begin(now, site, config, Repository::new(vec![template]).expect("templates"));
    }
    for &leaf in &level {
        for number in 0..CLIENTS {
            let holder = ClientId::new(format!("web-{leaf:03}-{number}"), 256).expect("a name");
            let config = SessionConfig::new(holder, Incarnation(7), vec![leaf.to_string().into()]);
            let mut session = Session::new(config);
            for resource in 0..RESOURCES {
                let id = ResourceId::new(format!("service/queries-{resource:02}"), 256).expect("a name");
                session.add(now, id, HoldingConfig::new(Kind::Rate, (10 + resource) as f64, 0));
            }
            net.add(leaf, session);
        }
    }
    let end = now + Duration::from_secs(70);
    while now < end {
        net.settle(now, &mut |_, _| {});
        now = net.next_deadline().max(now + Duration::from_millis(100)).min(end);
    }
    net.settle(now, &mut |_, _| {});
    (net, parents, now)
}

/// The processor time of this thread.
fn worked() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
