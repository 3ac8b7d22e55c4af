//! Everything that clients can make grow has a limit, and who passes one is told which.

use lessor_proto::wire;
use lessor_proto::wire::session_down::Message as Answer;
use lessor_proto::wire::session_up_request::Message;
use lessor_proto::wire::{
    GetCapacityRequest, GetCapacityResponse, GetServerCapacityRequest, PriorityBandAggregate,
    ServerCapacityResourceRequest,
};
use tokio::time::timeout;
use tonic::{Code, Status};

use crate::house::holder::{Holder, Nature, ask, claim};
use crate::house::{AGES, House, eventually, everything, template};

const FLAGS: [&str; 14] = [
    "--max-resources-per-stream",
    "2",
    "--max-resources-per-request",
    "3",
    "--max-clients-per-resource",
    "2",
    "--max-resources",
    "4",
    "--max-priorities",
    "2",
    "--max-name-bytes",
    "8",
    "--max-lives-per-client",
    "1",
];

#[track_caller]
fn check_exhausted<T: std::fmt::Debug>(answer: Result<T, Status>, message: &str) {
    let status = answer.expect_err(message);
    assert_eq!((status.code(), status.message()), (Code::ResourceExhausted, message));
}

fn from(client: &str, names: &[&str]) -> GetCapacityRequest {
    GetCapacityRequest {
        client_id: Some(client.to_owned()),
        resource: names.iter().map(|name| ask(name, 10.0)).collect(),
        ..GetCapacityRequest::default()
    }
}

/// The resources that are answered.
fn names(answer: &GetCapacityResponse) -> Vec<&str> {
    answer.response.iter().map(|response| response.resource_id.as_str()).collect()
}

/// The resources that are refused: where they stand, what they are called and why.
fn refusals(answer: &GetCapacityResponse) -> Vec<(u32, &str, &str)> {
    let all = answer.refused.iter();
    all.map(|refused| (refused.index, refused.resource_id(), refused.reason())).collect()
}

#[tokio::test]
async fn a_spoilt_resource_spoils_no_other() {
    let house =
        House::open(&template("r*", 100.0, "{kind: FAIR_SHARE, lease_length: 60, refresh_interval: 5}"))
            .await;
    let mut server = house.capacity().await;
    let mut request = from("a", &["r1", "unknown", "r2", "r3", "unheard", "r4"]);
    request.resource[0].wants = Some(f64::NAN);
    request.resource[3].priority = None;
    let answer = server.get_capacity(request.clone()).await.unwrap().into_inner();
    assert_eq!(names(&answer), ["r2", "r4"]);
    let catch_all = "wanted a name that a template covers, or a catch-all \"*\"";
    let unknown =
        |index, name| format!("resource[{index}].resource_id: no template matches {name:?}; {catch_all}");
    assert_eq!(
        refusals(&answer),
        [
            (0, "", "resource[0].wants: is NaN; wanted a finite number of at least 0"),
            (1, "unknown", &unknown(1, "unknown")),
            (3, "", "resource[3].priority: is missing; wanted a whole number, greater is served first"),
            (4, "unheard", &unknown(4, "unheard")),
        ]
    );
    // Where nothing is good the request fails, as it does for a client that knows nothing of this.
    request.resource.retain(|resource| !["r2", "r4"].contains(&resource.resource_id()));
    let refused = server.get_capacity(request).await.unwrap_err();
    assert_eq!(refused.code(), Code::NotFound, "{refused:?}");
    house.stop().await;
}

#[tokio::test]
async fn whoever_passes_a_limit_is_refused_and_nothing_is_kept() {
    let house = House::open_with(&everything(100.0, 60), &FLAGS).await;
    let mut server = house.capacity().await;

    let answer = server.get_capacity(from("a", &["r1", "r2", "r3", "r4"])).await;
    check_exhausted(answer, "resources in one request: 4 is over the limit of 3");
    assert_eq!(house.metric("lessor_resources").await, 0.0);

    server.get_capacity(from("a", &["r1", "r2", "r3"])).await.unwrap();
    let answer = server.get_capacity(from("b", &["r3", "r4", "r5"])).await.unwrap().into_inner();
    assert_eq!(names(&answer), ["r3", "r4"]);
    assert_eq!(refusals(&answer), [(2, "r5", "resources in all: 5 is over the limit of 4")]);
    check_exhausted(
        server.get_capacity(from("b", &["r5"])).await,
        "resources in all: 5 is over the limit of 4",
    );
    assert_eq!(house.metric("lessor_resources").await, 4.0);
    assert_eq!(house.metric("lessor_clients{resource=\"r3\"}").await, 2.0);

    let mut second = Holder::new("b", Nature::Knows, "r1", 10.0);
    second.report(&mut server).await.unwrap();
    check_exhausted(
        server.get_capacity(from("c", &["r1"])).await,
        "clients of \"r1\": 3 is over the limit of 2",
    );
    // Those who are there already go on.
    assert_eq!(second.report(&mut server).await.unwrap(), 10.0);
    assert_eq!(house.metric("lessor_clients{resource=\"r1\"}").await, 2.0);

    let mut twice = from("a", &["r2"]);
    twice.resource[0].has = Some(claim(77.0));
    let message =
        "lives of \"a\" that hold \"r2\" at once, for want of an echoed lease: 2 is over the limit of 1";
    check_exhausted(server.get_capacity(twice).await, message);

    let answer = server.get_capacity(from("a", &["ninebytes"])).await;
    let message = "resource[0].resource_id: \"ninebytes\" is 9 bytes long; wanted 1 to 8 bytes of text without control characters";
    assert_eq!(answer.unwrap_err().message(), message);
    house.stop().await;
}

#[tokio::test]
async fn all_holdings_together_have_a_limit_and_make_room_when_they_end() {
    let house = House::open_with(&everything(100.0, 1), &["--max-holdings", "3"]).await;
    let mut server = house.capacity().await;
    server.get_capacity(from("a", &["r1", "r2"])).await.unwrap();
    let answer = server.get_capacity(from("b", &["r1", "r3"])).await.unwrap().into_inner();
    assert_eq!(names(&answer), ["r1"]);
    let full = "holdings in all: 4 is over the limit of 3";
    assert_eq!(refusals(&answer), [(1, "r3", full)]);
    let mut holder = Holder::new("c", Nature::Knows, "r2", 10.0);
    check_exhausted(holder.report(&mut server).await, full);
    // Those who are there go on, and what they leave is there for others.
    server.get_capacity(from("d", &["r1"])).await.unwrap_err();
    eventually("there is room", async || holder.report(&mut house.capacity().await).await.is_ok()).await;
    house.stop().await;
}

#[tokio::test]
async fn who_has_and_wants_nothing_makes_room_for_who_wants_something() {
    let house = House::open_with(&everything(100.0, 60), &FLAGS).await;
    let mut server = house.capacity().await;
    let mut idle = async |client: &str, names: &[&str], priority: i64| {
        let mut request = from(client, names);
        for resource in &mut request.resource {
            (resource.wants, resource.priority) = (Some(0.0), Some(priority));
        }
        server.get_capacity(request).await.unwrap();
    };
    // All names, all clients and all priorities of one of them.
    for (client, priority) in [("a", 5), ("b", 6)] {
        idle(client, &["r1", "r2"], priority).await;
        idle(client, &["r3", "r4"], priority).await;
    }
    let mut others = house.capacity().await;
    for name in ["r1", "r5", "r6"] {
        let mut holder = Holder::new("c", Nature::Knows, name, 10.0);
        assert_eq!(holder.report(&mut others).await.unwrap(), 10.0, "{name}");
    }
    // A name has one life here, and its process another.
    let mut holder = Holder::new("a", Nature::Knows, "r1", 10.0);
    assert_eq!(holder.report(&mut others).await.unwrap(), 10.0);
    // Those who want something stay, and so does the limit.
    check_exhausted(
        Holder::new("d", Nature::Knows, "r1", 10.0).report(&mut others).await,
        "clients of \"r1\": 3 is over the limit of 2",
    );
    house.stop().await;
}

#[tokio::test]
async fn a_stream_holds_no_more_resources_than_it_may() {
    let house = House::open_with(&everything(100.0, 60), &FLAGS).await;
    let report = |id, names: &[&str]| {
        Message::Report(wire::ReportRequest {
            report_id: Some(id),
            resource: names.iter().map(|name| ask(name, 10.0)).collect(),
            ..wire::ReportRequest::default()
        })
    };
    let hello =
        wire::HelloRequest { id: Some("a".into()), incarnation: Some(1), ..wire::HelloRequest::default() };
    let ups = [Message::Hello(hello), report(1, &["r1"]), report(2, &["r2", "r3"]), report(3, &["r1", "r2"])];
    let ups = ups.map(|message| wire::SessionUpRequest { message: Some(message) });
    let ups = tokio_stream::StreamExt::chain(tokio_stream::iter(ups), tokio_stream::pending());
    let mut downs = house.capacity().await.session(ups).await.unwrap().into_inner();
    let (mut refused, mut granted) = (Vec::new(), Vec::new());
    while granted.len() < 2 {
        match timeout(AGES, downs.message()).await.expect("in time").unwrap().unwrap().message.unwrap() {
            Answer::Refused(why) => refused.push((why.report_id, why.reason.unwrap())),
            Answer::Grants(grants) => granted.extend(grants.grant.into_iter().map(|grant| grant.resource_id)),
            _ => {}
        }
        granted.dedup();
    }
    assert_eq!(refused, [(2, "resources on one stream: 3 is over the limit of 2".to_owned())]);
    assert_eq!(granted, ["r1", "r2"]);
    house.stop().await;
}

#[tokio::test]
async fn priorities_have_a_limit_within_a_request_and_over_all() {
    let house = House::open_with(&everything(100.0, 60), &FLAGS).await;
    let mut server = house.capacity().await;
    let band = |priority| PriorityBandAggregate {
        priority: Some(priority),
        num_clients: Some(1),
        wants: Some(1.0),
        bucket: Vec::new(),
    };
    let node = |priorities: &[i64]| GetServerCapacityRequest {
        server_id: Some("leaf".into()),
        resource: vec![ServerCapacityResourceRequest {
            resource_id: Some("r1".into()),
            wants: priorities.iter().copied().map(band).collect(),
            ..ServerCapacityResourceRequest::default()
        }],
        ..GetServerCapacityRequest::default()
    };
    let answer = server.get_server_capacity(node(&[1, 2, 3])).await;
    check_exhausted(answer, "resource[0].wants: 3 is over the limit of 2");
    server.get_server_capacity(node(&[1, 2])).await.unwrap();
    let mut third = from("a", &["r1"]);
    third.resource[0].priority = Some(3);
    check_exhausted(server.get_capacity(third).await, "priorities of \"r1\": 3 is over the limit of 2");
    assert_eq!(house.metric("lessor_clients{resource=\"r1\"}").await, 1.0);
    house.stop().await;
}

#[tokio::test]
async fn thousands_of_resources_go_into_one_request() {
    let house = House::open(&everything(100.0, 60)).await;
    let mut server = house.capacity().await;
    for count in [2_000, 10_000] {
        let names: Vec<String> =
            (0..count).map(|number| format!("a/resource/of/doormans/{number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let client = format!("client-of-{count}");
        let answer = server.get_capacity(from(&client, &names)).await.unwrap().into_inner();
        assert_eq!(answer.response.len(), count);
        assert!(answer.response.iter().all(|response| response.gets.capacity == Some(10.0)));
    }
    assert_eq!(house.metric("lessor_resources").await, 10_000.0);
    house.stop().await;
}

#[tokio::test]
async fn a_request_of_too_many_bytes_is_refused() {
    let house = House::open_with(&everything(100.0, 60), &["--max-request-bytes", "1000"]).await;
    let mut server = house.capacity().await;
    let name = "a".repeat(200);
    let many: Vec<String> = (0..10).map(|number| format!("{name}{number}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let status = server.get_capacity(from("a", &many)).await.unwrap_err();
    assert_eq!(status.code(), Code::OutOfRange, "{status:?}");
    assert!(status.message().contains("the limit is: 1000 bytes"), "{status:?}");
    assert_eq!(server.get_capacity(from("a", &many[..2])).await.unwrap().into_inner().response.len(), 2);
    house.stop().await;
}

/// Names of which a template covers nearly all: those at these places are of nobody.
fn many(uncovered: &[usize]) -> Vec<String> {
    (0..700)
        .map(|place| if uncovered.contains(&place) { format!("x{place}") } else { format!("r{place}") })
        .collect()
}

#[tokio::test]
async fn a_long_request_is_answered_in_parts_and_each_refusal_has_its_place() {
    let house = House::open(&everything(100.0, 60).replace("\"*\"", "\"r*\"")).await;
    let mut server = house.capacity().await;
    let request = |uncovered: &[usize]| {
        let names = many(uncovered);
        from("a", &names.iter().map(String::as_str).collect::<Vec<&str>>())
    };
    // One in each part, and a whole part.
    let mut uncovered = vec![3, 600];
    uncovered.extend(256..512);
    uncovered.sort_unstable();
    let answer = server.get_capacity(request(&uncovered)).await.unwrap().into_inner();
    assert_eq!(answer.response.len(), 700 - uncovered.len());
    let found: Vec<(usize, &str)> =
        answer.refused.iter().map(|refused| (refused.index as usize, refused.resource_id())).collect();
    let names = many(&uncovered);
    assert_eq!(found, uncovered.iter().map(|&place| (place, names[place].as_str())).collect::<Vec<_>>());
    for refused in &answer.refused {
        assert!(refused.reason().contains(refused.resource_id()), "{refused:?}");
    }
    let status = server.get_capacity(request(&(0..700).collect::<Vec<_>>())).await.unwrap_err();
    assert_eq!(status.code(), Code::NotFound, "{status:?}");

    // Given back together, and asked for again on a stream.
    let release = wire::ReleaseCapacityRequest {
        client_id: Some("a".to_owned()),
        resource_id: many(&[]),
        ..wire::ReleaseCapacityRequest::default()
    };
    server.release_capacity(release).await.unwrap();
    let mut next = Holder::new("next", Nature::Knows, "r699", 100.0);
    assert_eq!(next.report(&mut server).await.unwrap(), 100.0);
    next.release(&mut server).await.unwrap();
    let hello =
        wire::HelloRequest { id: Some("b".into()), incarnation: Some(1), ..wire::HelloRequest::default() };
    let report = wire::ReportRequest {
        report_id: Some(1),
        resource: many(&[]).iter().map(|name| ask(name, 10.0)).collect(),
        ..wire::ReportRequest::default()
    };
    let beat =
        wire::ReportRequest { report_id: Some(2), renew_all: Some(true), ..wire::ReportRequest::default() };
    let ups = [Message::Hello(hello), Message::Report(report), Message::Report(beat)];
    let ups = ups.map(|message| wire::SessionUpRequest { message: Some(message) });
    let ups = tokio_stream::StreamExt::chain(tokio_stream::iter(ups), tokio_stream::pending());
    let mut downs = house.capacity().await.session(ups).await.unwrap().into_inner();
    let (mut granted, mut is_renewed) = (std::collections::BTreeSet::new(), false);
    while granted.len() < 700 || !is_renewed {
        match timeout(AGES, downs.message()).await.expect("in time").unwrap().unwrap().message.unwrap() {
            Answer::Grants(grants) => granted.extend(grants.grant.into_iter().map(|grant| grant.resource_id)),
            Answer::Renewed(renewed) => is_renewed = renewed.basis == 2,
            Answer::Refused(why) => panic!("{why:?}"),
            _ => {}
        }
    }
    assert_eq!(house.metric("lessor_stream_messages_received_total").await, 3.0);
    house.stop().await;
}
