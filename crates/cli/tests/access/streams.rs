//! Streams: held against the rules when they are opened, at each report, and again when the rules change.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lessor_client::internals::clock;
use lessor_proto::wire;
use lessor_proto::wire::session_down;
use lessor_proto::wire::session_up_request::Message;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::{Code, Status, Streaming};

use crate::gate::{Gate, Visitor};
use crate::house::{AGES, eventually};

/// The number of the last report: those of one life grow, whatever stream they come on.
static REPORTS: AtomicU64 = AtomicU64::new(0);

/// A stream of a client, which says what it is told to say.
struct Line {
    ups: mpsc::UnboundedSender<wire::SessionUpRequest>,
    downs: Streaming<wire::SessionDown>,
}

// === impl Line ===

impl Line {
    /// Opens a stream as the client, or node, `name`.
    async fn open(visitor: &mut Visitor, name: &str, is_node: bool) -> Result<Line, Status> {
        let (ups, receiver) = mpsc::unbounded_channel();
        let hello = wire::HelloRequest {
            id: Some(name.to_owned()),
            incarnation: Some(9),
            is_node: Some(is_node),
            ..wire::HelloRequest::default()
        };
        ups.send(wire::SessionUpRequest { message: Some(Message::Hello(hello)) }).unwrap();
        let request = visitor.request(UnboundedReceiverStream::new(receiver));
        let opened = timeout(AGES, visitor.capacity.session(request)).await.expect("an answer in time")?;
        Ok(Line { ups, downs: opened.into_inner() })
    }

    /// Says what is wanted of a resource, and which grant it keeps to.
    fn report(&self, resource: &str, wants: f64, has: Option<wire::Lease>) {
        let resource = wire::ResourceRequest {
            resource_id: Some(resource.to_owned()),
            priority: Some(0),
            wants: Some(wants),
            has,
            ..wire::ResourceRequest::default()
        };
        let report = wire::ReportRequest {
            report_id: Some(REPORTS.fetch_add(1, Ordering::Relaxed) + 1),
            resource: vec![resource],
            ..wire::ReportRequest::default()
        };
        self.ups.send(wire::SessionUpRequest { message: Some(Message::Report(report)) }).unwrap();
    }

    /// The next lease that is granted.
    async fn lease(&mut self) -> Result<wire::Lease, Status> {
        loop {
            match self.next().await? {
                session_down::Message::Grants(grants) => {
                    if let Some(grant) = grants.grant.into_iter().next() {
                        return Ok(grant.gets);
                    }
                }
                session_down::Message::Refused(refused) => {
                    let code = Code::from_i32(refused.code.unwrap());
                    return Err(Status::new(code, refused.reason.unwrap()));
                }
                _ => {}
            }
        }
    }

    /// The status with which the stream ends.
    async fn ended(&mut self) -> Status {
        loop {
            if let Err(ended) = self.next().await {
                return ended;
            }
        }
    }

    async fn next(&mut self) -> Result<session_down::Message, Status> {
        let next = timeout(AGES, self.downs.message()).await.expect("something in time")?;
        next.and_then(|down| down.message).ok_or_else(|| Status::cancelled("the stream has ended"))
    }
}

const OPEN: &str = "default: deny\nclients:\n  - {identity: web, client_id: \"web-*\", resources: [db]}\n  - {identity: other}\noperators:\n  - {identity: plain, may: [see]}\n";
const WEB: &[&str] = &["--identity", "web", "--client-id", "*"];
const OTHER: &[&str] = &["--identity", "other", "--client-id", "*"];

#[tokio::test]
async fn a_stream_is_opened_and_reports_are_heard_as_the_rules_say() {
    let gate = Gate::open(OPEN).await;
    let refused = Line::open(&mut gate.stranger().await, "web-1", false).await.err().unwrap();
    assert_eq!(refused.code(), Code::PermissionDenied);
    let mut web = gate.visitor(WEB).await;
    for (name, is_node) in [("cron-1", false), ("web-1", true)] {
        let refused = Line::open(&mut web, name, is_node).await.err().unwrap();
        assert_eq!(refused.code(), Code::PermissionDenied, "{name}");
    }
    let mut line = Line::open(&mut web, "web-1", false).await.unwrap();
    line.report("users", 5.0, None);
    let refused = line.lease().await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    assert!(refused.message().contains(r#"hold "users"; wanted "db""#), "{refused}");
    line.report("db", 5.0, None);
    assert_eq!(line.lease().await.unwrap().capacity(), 5.0, "others on the stream go on");
    gate.house.stop().await;
}

#[tokio::test]
async fn what_may_be_held_no_more_is_recalled_and_charged_until_it_is_acknowledged() {
    let gate = Gate::open(OPEN).await;
    let mut line = Line::open(&mut gate.visitor(WEB).await, "web-1", false).await.unwrap();
    line.report("db", 600.0, None);
    assert_eq!(line.lease().await.unwrap().capacity(), 600.0);
    let mut other = gate.visitor(OTHER).await;
    assert_eq!(other.get("x", "db", 400.0).await.unwrap(), 400.0);

    gate.replace("access.yaml", &OPEN.replace("resources: [db]", "resources: [api]"));
    let recalled = line.lease().await.unwrap();
    assert_eq!(recalled.capacity(), 0.0);
    assert_eq!(other.get("x", "db", 1000.0).await.unwrap(), 400.0, "it is not acknowledged");
    assert_eq!(gate.outstanding().await, 1000.0);

    line.report("db", 600.0, Some(recalled));
    eventually("it is free, and stays so", async || other.get("x", "db", 1000.0).await.unwrap() == 1000.0)
        .await;
    // Whatever it says, it gets nothing; and it has it back when a rule gives it back.
    line.report("db", 600.0, None);
    for _ in 0..2 {
        assert_eq!(other.get("x", "db", 200.0).await.unwrap(), 200.0);
    }
    gate.replace("access.yaml", OPEN);
    assert_eq!(line.ended().await.code(), Code::Unavailable, "what it wants is to be said again");
    let mut line = Line::open(&mut gate.visitor(WEB).await, "web-1", false).await.unwrap();
    line.report("db", 300.0, None);
    assert_eq!(line.lease().await.unwrap().capacity(), 300.0);
    gate.house.stop().await;
}

#[tokio::test]
async fn what_was_only_noted_is_recalled_when_it_is_denied() {
    let audit = OPEN.replace("default: deny", "default: audit");
    let gate = Gate::open(&audit).await;
    let mut stranger = Line::open(&mut gate.stranger().await, "web-7", false).await.unwrap();
    let mut known = Line::open(&mut gate.visitor(WEB).await, "web-1", false).await.unwrap();
    stranger.report("db", 300.0, None);
    known.report("api", 300.0, None);
    for line in [&mut stranger, &mut known] {
        assert_eq!(line.lease().await.unwrap().capacity(), 300.0);
    }
    gate.replace("access.yaml", OPEN);
    for line in [&mut stranger, &mut known] {
        assert_eq!(line.lease().await.unwrap().capacity(), 0.0);
    }
    gate.house.stop().await;
}

#[tokio::test]
async fn a_limit_that_has_changed_counts_for_streams_that_are_open() {
    let gate = Gate::open(OPEN).await;
    let mut web = gate.visitor(WEB).await;
    let mut line = Line::open(&mut web, "web-1", false).await.unwrap();
    line.report("db", 600.0, None);
    assert_eq!(line.lease().await.unwrap().capacity(), 600.0);
    gate.replace("access.yaml", &OPEN.replace("resources: [db]", "resources: [db], max_wants: 10"));
    // It is to say everything again, and what it has is charged until it keeps to less.
    let ended = line.ended().await;
    assert_eq!(ended.code(), Code::Unavailable, "{ended}");
    let mut line = Line::open(&mut web, "web-1", false).await.unwrap();
    line.report("db", 600.0, None);
    assert_eq!(line.lease().await.unwrap().capacity(), 10.0);
    gate.house.stop().await;
}

#[tokio::test]
async fn a_stream_ends_with_its_token() {
    let gate = Gate::open(OPEN).await;
    let mut web = gate.visitor(&[WEB, &["--ttl", "2s"]].concat()).await;
    let mut line = Line::open(&mut web, "web-1", false).await.unwrap();
    line.report("db", 5.0, None);
    assert_eq!(line.lease().await.unwrap().capacity(), 5.0);
    let ended = line.ended().await;
    assert_eq!((ended.code(), ended.message()), (Code::Unauthenticated, "the token has ended"));
    gate.house.stop().await;
}

#[tokio::test]
async fn an_identity_has_so_many_streams_and_resources_as_its_budget_says() {
    let rules = OPEN.replace("resources: [db]", "budget: {streams: 2, resources: 1}");
    let gate = Gate::open(&rules).await;
    let mut web = gate.visitor(WEB).await;
    let mut first = Line::open(&mut web, "web-1", false).await.unwrap();
    let _second = Line::open(&mut web, "web-2", false).await.unwrap();
    let refused = Line::open(&mut web, "web-3", false).await.err().unwrap();
    assert_eq!(refused.code(), Code::ResourceExhausted);
    assert_eq!(refused.message(), "streams of this identity: 3 is over the limit of 2");
    first.report("db", 5.0, None);
    first.lease().await.unwrap();
    first.report("api", 5.0, None);
    let refused = first.lease().await.unwrap_err();
    assert_eq!(refused.message(), "resources on one stream of this identity: 2 is over the limit of 1");
    drop(first);
    eventually("a place is free", async || Line::open(&mut web, "web-3", false).await.is_ok()).await;
    // Others have their own.
    Line::open(&mut gate.visitor(OTHER).await, "x", false).await.unwrap();
    gate.house.stop().await;
}

#[tokio::test]
async fn who_speaks_too_fast_is_not_read_and_nobody_waits_for_it() {
    let rules = OPEN.replace("resources: [db]", "budget: {reports: 10/s}");
    let gate = Gate::open(&rules).await;
    let line = Line::open(&mut gate.visitor(WEB).await, "web-1", false).await.unwrap();
    for _ in 0..1_000 {
        line.report("db", 5.0, None);
    }
    let mut other = gate.visitor(OTHER).await;
    for _ in 0..20 {
        assert_eq!(other.get("x", "db", 5.0).await.unwrap(), 5.0);
    }
    let heard = gate.house.metric("lessor_stream_messages_received_total").await;
    assert!(heard < 200.0, "{heard} messages were read of one that may say ten a second");
    gate.house.stop().await;
}

/// Longer than it takes: the file is watched, streams are looked at once a second, and the machine may have other things to do.
const SOON: Duration = Duration::from_secs(if cfg!(debug_assertions) { 4 } else { 2 });

#[tokio::test]
async fn every_cap_that_is_put_in_force_counts_within_seconds() {
    let rules = OPEN.replace("clients:", "nodes:\n  - {identity: web, node: paris}\nclients:");
    let client = |cap: &str| rules.replace("resources: [db]", &format!("resources: [db], {cap}"));
    let node = |cap: &str| rules.replace("node: paris", &format!("node: paris, {cap}"));
    for (rules_then, name) in [
        (client("max_wants: 10"), "web-1"),
        (client("priority: {most: 2}"), "web-1"),
        (client("weight: 2"), "web-1"),
        (node("most_clients: 5"), "paris"),
        (node("priority: {most: 2}"), "paris"),
    ] {
        let gate = Gate::open(&rules).await;
        let is_node = name == "paris";
        let flags: &[&str] = if is_node { &["--identity", "web", "--node", "*"] } else { WEB };
        let mut visitor = gate.visitor(flags).await;
        let mut line = Line::open(&mut visitor, name, is_node).await.unwrap();
        if !is_node {
            line.report("db", 600.0, None);
            assert_eq!(line.lease().await.unwrap().capacity(), 600.0);
        }
        let before = clock::now();
        gate.replace("access.yaml", &rules_then);
        let ended = line.ended().await;
        let took = clock::now().since(before);
        assert_eq!(ended.code(), Code::Unavailable, "{rules_then}: {ended}");
        assert!(took < SOON, "{rules_then}: after {took:?}");
        gate.house.stop().await;
    }
}

#[tokio::test]
async fn a_budget_that_becomes_smaller_counts_for_what_is_open() {
    let gate = Gate::open(OPEN).await;
    let mut web = gate.visitor(WEB).await;
    let mut lines = Vec::new();
    for number in 0..3 {
        lines.push(Line::open(&mut web, &format!("web-{number}"), false).await.unwrap());
    }
    // Those that were opened without a budget count as well, and those of a larger one. No more of them end than are too many,
    // though all look at the same moment.
    for most in [2, 1] {
        let budget = format!("budget: {{streams: {most}, reports: 10/s}}");
        gate.replace("access.yaml", &OPEN.replace("resources: [db]", &budget));
        eventually("there are so many", async || {
            gate.house.metric("lessor_streams").await <= f64::from(most)
        })
        .await;
        assert_eq!(gate.house.metric("lessor_streams").await, f64::from(most), "and no fewer");
        let refused = Line::open(&mut web, "web-9", false).await.err().expect("all places are taken");
        let told = format!("streams of this identity: {} is over the limit of {most}", most + 1);
        assert_eq!(refused.message(), told);
    }
    drop(lines);
    // What is said on a stream that is open is read at the pace of the budget that is in force.
    gate.replace("access.yaml", OPEN);
    eventually("there is no budget", async || {
        let opened = Line::open(&mut web, "web-4", false).await;
        let other = Line::open(&mut web, "web-5", false).await;
        opened.is_ok() && other.is_ok()
    })
    .await;
    let mut line = Line::open(&mut web, "web-6", false).await.unwrap();
    line.report("db", 5.0, None);
    line.lease().await.unwrap();
    gate.replace("access.yaml", &OPEN.replace("resources: [db]", "resources: [db], budget: {reports: 10/s}"));
    clock::sleep_until(clock::now() + SOON).await;
    let heard = || gate.house.metric("lessor_stream_messages_received_total");
    let before = heard().await;
    for _ in 0..1_000 {
        line.report("db", 5.0, None);
    }
    let mut other = gate.visitor(OTHER).await;
    for _ in 0..20 {
        other.get("x", "db", 5.0).await.unwrap();
    }
    let heard = heard().await - before;
    assert!(heard < 200.0, "{heard} messages were read of one that may say ten a second by now");
    assert!(gate.house.metric("lessor_throttled_total{what=\"message\"}").await > 0.0);
    gate.house.stop().await;
}
