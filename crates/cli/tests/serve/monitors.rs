//! The pages that an operator's tools read, and the end of a server.

use lessor_client::Client;
use rustix::process::Signal;
use tokio::time::timeout;
use tonic::Code;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;
use tonic_reflection::pb::v1::{ServerReflectionRequest, ServerReflectionResponse};

use crate::house::holder::{Holder, Nature};
use crate::house::{AGES, House, eventually, everything, page};
use crate::raw;

#[tokio::test]
async fn pages_are_on_both_ports() {
    let house = House::open(&everything(100.0, 60)).await;
    let mut server = house.capacity().await;
    for (name, wants) in [("a", 30.0), ("b", 12.5)] {
        Holder::new(name, Nature::Echoes, "db/orders", wants).report(&mut server).await.unwrap();
    }
    for address in [house.address(), house.http()] {
        for (path, body) in [("/healthz", "ok\n"), ("/readyz", "ready\n")] {
            let page = page::get(address, path).await;
            assert_eq!((page.code, page.body.as_str()), (200, body), "{path}");
        }
        check_metrics(
            &page::get_as(address, "/metrics", "application/openmetrics-text; version=1.0.0").await,
        );
        check_plain_metrics(&page::get(address, "/metrics").await);
        for path in ["/healthz?verbose", "/readyz?verbose", "/readyz?leads&verbose"] {
            let line = page::get(address, path).await.json();
            assert_eq!((&line["ok"], &line["reasons"]), (&true.into(), &serde_json::json!([])), "{path}");
        }
        check_status(&page::get(address, "/status").await.json());
        assert_eq!(page::get(address, "/status?resource=db%2Forders&holders=1").await.code, 200);
        for query in ["?resorce=db", "?holders=many", "?resources=-1"] {
            let page = page::get(address, &format!("/status{query}")).await;
            assert_eq!(page.code, 400, "{query}: {page:?}");
        }
        let page = page::get(address, "/status?resource=nothing").await;
        assert_eq!((page.code, page.body.as_str()), (404, "nobody holds or wants \"nothing\"\n"));
    }
    assert_eq!(
        page::get(house.address(), "/status?holders=1").await.json()["status"]["resources"][0]["holders"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    house.stop().await;
}

#[tokio::test]
async fn what_is_nowhere_is_not_found() {
    let house = House::open(&everything(100.0, 60)).await;
    for address in [house.http(), house.address()] {
        // A monitor that misspells a page must not take the answer for good news.
        let page = page::get(address, "/metric").await;
        assert_eq!(page.code, 404, "{address}: {page:?}");
    }
    // On the port for gRPC its clients are told in their own way.
    let channel = house.connect().await;
    let status = raw::call(&channel, "/doorman.Incapacity/GetCapacity", b"").await.unwrap_err();
    assert_eq!(status.code(), Code::Unimplemented, "{status:?}");
    house.stop().await;
}

#[track_caller]
fn check_metrics(page: &page::Page) {
    assert_eq!((page.code, page.content_type.split(';').next()), (200, Some("application/openmetrics-text")));
    let expected = [
        "lessor_ready 1.0",
        "lessor_asks_total 2",
        "lessor_grants_total 2",
        "lessor_reloads_failed_total 0",
        "lessor_streams 0.0",
        "lessor_stream_messages_sent_total 0",
        "lessor_stream_messages_received_total 0",
        "lessor_stream_reports_refused_total 0",
        "lessor_capacity{resource=\"db/orders\"} 100.0",
        "lessor_leased{resource=\"db/orders\"} 42.5",
        "lessor_wants{resource=\"db/orders\"} 42.5",
        "lessor_clients{resource=\"db/orders\"} 2.0",
        "lessor_overcommitment{resource=\"db/orders\"} 0.0",
        "# TYPE lessor_turn_seconds histogram",
    ];
    for line in expected {
        assert!(page.body.lines().any(|found| found == line), "no {line} in\n{}", page.body);
    }
    assert!(page.body.ends_with("\n# EOF\n"), "{}", page.body);
    // Every figure is a name, perhaps labels, and a number, and has been announced.
    for line in page.body.lines().filter(|line| !line.starts_with('#')) {
        let (name, value) = line.rsplit_once(' ').expect(line);
        value.parse::<f64>().expect(line);
        let name = name.split('{').next().unwrap();
        // The last part of the name of a counter, or of a histogram.
        let parts = ["_total", "_bucket", "_sum", "_count"];
        let name = parts.iter().find_map(|part| name.strip_suffix(part)).unwrap_or(name);
        assert!(page.body.contains(&format!("# TYPE {name} ")), "{name} has no type");
    }
}

/// The same in the format that is older than OpenMetrics.
#[track_caller]
fn check_plain_metrics(page: &page::Page) {
    assert_eq!((page.code, page.content_type.as_str()), (200, "text/plain; version=0.0.4; charset=utf-8"));
    for line in ["# TYPE lessor_asks_total counter", "lessor_asks_total 2"] {
        assert!(page.body.lines().any(|found| found == line), "no {line} in\n{}", page.body);
    }
    assert!(
        page.body.contains("\n# HELP lessor_asks_total ") && !page.body.contains("# EOF"),
        "{}",
        page.body
    );
}

#[track_caller]
fn check_status(page: &serde_json::Value) {
    assert_eq!(page["ready"], true);
    let node = &page["status"];
    assert_eq!((&node["node"], &node["resources_in_all"]), (&"root".into(), &1.into()));
    let resource = &node["resources"][0];
    let expected = serde_json::json!({
        "resource": "db/orders", "template": "*", "kind": "rate", "algorithm": "FAIR_SHARE", "capacity": 100.0,
        "leased": 42.5, "wants": 42.5, "clients": 2, "learning": false, "in_debt": false, "overcommitment": 0.0,
        "safe_capacity": 5.0,
    });
    for (field, value) in expected.as_object().unwrap() {
        assert_eq!(&resource[field], value, "{field} of {resource}");
    }
    let holders: Vec<_> = resource["holders"]
        .as_array()
        .unwrap()
        .iter()
        .map(|holder| {
            let ends = holder["ends_in_seconds"].as_f64().unwrap();
            // A little longer than the lease: clocks may differ.
            assert!((50.0..=62.0).contains(&ends), "{holder}");
            (
                holder["client"].as_str().unwrap(),
                holder["has"].as_f64().unwrap(),
                holder["wants"].as_f64().unwrap(),
            )
        })
        .collect();
    assert_eq!(holders, [("a", 30.0, 30.0), ("b", 12.5, 12.5)]);
}

#[tokio::test]
async fn health_follows_the_server_to_its_end() {
    let mut house = House::open_with(&everything(100.0, 60), &["--drain", "1h"]).await;
    let mut health = HealthClient::new(house.connect().await);
    for service in ["", "doorman.Capacity"] {
        let answer = health.check(HealthCheckRequest { service: service.into() }).await.unwrap();
        assert_eq!(answer.into_inner().status(), ServingStatus::Serving, "{service:?}");
    }
    let mut watch =
        health.watch(HealthCheckRequest { service: "doorman.Capacity".into() }).await.unwrap().into_inner();
    let first = timeout(AGES, watch.message()).await.unwrap().unwrap().unwrap();
    assert_eq!(first.status(), ServingStatus::Serving);

    house.signal(Signal::TERM);
    let second = timeout(AGES, watch.message()).await.unwrap().unwrap().unwrap();
    assert_eq!(second.status(), ServingStatus::NotServing);
    // The stream ends with the server, which does not wait for those who only watch.
    assert!(house.ended().await.success());
}

#[tokio::test]
async fn a_server_ends_at_once_when_nothing_is_in_flight() {
    for signal in [Signal::TERM, Signal::INT] {
        let mut house = House::open_with(&everything(100.0, 60), &["--drain", "1h"]).await;
        let mut server = house.capacity().await;
        Holder::new("a", Nature::Echoes, "db", 1.0).report(&mut server).await.unwrap();
        house.signal(signal);
        assert!(house.ended().await.success(), "{signal:?}");
        eventually("it says that it has drained", async || house.has_logged("drained")).await;
    }
}

#[tokio::test]
async fn a_server_that_ends_does_not_wait_for_streams() {
    let mut house = House::open_with(&everything(100.0, 60), &["--drain", "1h"]).await;
    let client = Client::builder(house.address().to_string()).build().unwrap();
    let _held = client.rate("db").wants(10.0).open().unwrap();
    eventually("there is a stream", async || house.metric("lessor_streams").await == 1.0).await;
    house.signal(Signal::TERM);
    assert!(house.ended().await.success());
    eventually("it says that it has drained", async || house.has_logged("drained")).await;
}

#[tokio::test]
async fn reflection_tells_doormans_service() {
    let house = House::open(&everything(100.0, 60)).await;
    let mut reflection = ServerReflectionClient::new(house.connect().await);
    let mut asked = async |question| -> ServerReflectionResponse {
        let request = ServerReflectionRequest { host: String::new(), message_request: Some(question) };
        let answers = reflection.server_reflection_info(tokio_stream::once(request)).await.unwrap();
        timeout(AGES, answers.into_inner().message()).await.unwrap().unwrap().unwrap()
    };
    let answer = asked(MessageRequest::ListServices(String::new())).await;
    let Some(MessageResponse::ListServicesResponse(list)) = answer.message_response else {
        panic!("{answer:?}")
    };
    let services: Vec<&str> = list.service.iter().map(|service| service.name.as_str()).collect();
    assert!(
        services.contains(&"doorman.Capacity") && services.contains(&"grpc.health.v1.Health"),
        "{services:?}"
    );

    let answer = asked(MessageRequest::FileContainingSymbol("doorman.Capacity".into())).await;
    let Some(MessageResponse::FileDescriptorResponse(files)) = answer.message_response else {
        panic!("{answer:?}")
    };
    let [file] = &files.file_descriptor_proto[..] else { panic!("{files:?}") };
    for name in ["GetCapacity", "Session", "SessionUpRequest", "DemandBucket"] {
        assert!(file.windows(name.len()).any(|bytes| bytes == name.as_bytes()), "no {name}");
    }
    house.stop().await;
}
