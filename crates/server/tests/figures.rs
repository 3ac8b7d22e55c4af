//! Probes and figures of a whole server in this process: what is said of a runtime that stands still, and how many figures
//! there are of a node that has very many resources.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use lessor_client::internals::clock;
use lessor_proto::message::{Ask, Band, HolderKind, Report};
use lessor_proto::{Amount, ClientId, Epoch, Incarnation, ReportId, ResourceId};
use lessor_server::node::{NodeConfig, StatusQuery};
use lessor_server::repository::{Glob, Repository, Template};
use lessor_server::shell::driver::Driver;
use lessor_server::shell::metrics::Metrics;
use lessor_server::shell::{Server, ServerOptions};

const AGES: Duration = Duration::from_secs(30);

fn repository() -> Repository {
    Repository::new(vec![Template::new(Glob::new("*").unwrap(), Amount::from_units(100))]).unwrap()
}

/// The status line and the body of a page, asked for by a thread that has no runtime.
fn page(address: SocketAddr, path: &str) -> (String, String) {
    let mut stream = TcpStream::connect_timeout(&address, AGES).unwrap();
    stream.set_read_timeout(Some(AGES)).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: lessor\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.lines().next().unwrap().to_owned(), body.to_owned())
}

/// The page once it begins with that status, which has to be soon.
fn page_with(status: &str, address: SocketAddr, path: &str) -> String {
    let until = clock::now() + AGES;
    while clock::now() < until {
        let (found, body) = page(address, path);
        if found.contains(status) {
            return body;
        }
        std::thread::yield_now();
    }
    panic!("{path} is never {status}");
}

#[test]
fn a_runtime_that_stands_still_is_not_alive_and_its_pages_say_so() {
    let (tell, told) = mpsc::channel();
    let (block, blocked) = mpsc::channel::<()>();
    let (end, ended) = tokio::sync::oneshot::channel::<()>();
    let serving = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async move {
            let any = SocketAddr::from(([127, 0, 0, 1], 0));
            // Longer than the second between two marks.
            let longest_pause = Duration::from_secs(2);
            let options = ServerOptions { http: Some(any), longest_pause, ..ServerOptions::new(any) };
            let server =
                Server::start(options, NodeConfig::new("root", Epoch(1)), repository()).await.unwrap();
            tell.send(server.http_address().unwrap()).unwrap();
            tokio::task::yield_now().await;
            // All of the runtime stands still until somebody says something.
            blocked.recv().unwrap();
            ended.await.unwrap();
            assert!(server.drain().await);
        });
    });
    let address = told.recv_timeout(AGES).unwrap();
    let body = page_with("503", address, "/healthz");
    assert!(body.starts_with("the runtime has not turned for "), "{body}");
    let (_, line) = page(address, "/healthz?verbose");
    let line: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!((&line["ok"], &line["reasons"][0]["reason"]), (&false.into(), &"stalled".into()), "{line}");
    block.send(()).unwrap();
    assert_eq!(page_with("200", address, "/healthz"), "ok\n");
    let (_, line) = page(address, "/healthz?verbose");
    let line: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!((&line["ok"], &line["reasons"]), (&true.into(), &serde_json::json!([])), "{line}");
    end.send(()).unwrap();
    serving.join().unwrap();
}

/// A request of one client for the resources of these numbers.
fn ask(client: &str, numbers: std::ops::Range<usize>) -> Ask {
    let report = |number| {
        Report::new(
            ResourceId::new(format!("resource-{number:06}"), 256).unwrap(),
            [Band { priority: 0, subclients: 1, wants: 1.0 }],
        )
    };
    Ask {
        kind: HolderKind::Client,
        holder: ClientId::new(client, 256).unwrap(),
        incarnation: Some(Incarnation(1)),
        report_id: Some(ReportId(1)),
        target_epoch: None,
        line: None,
        reports: numbers.map(report).collect(),
    }
}

#[tokio::test]
async fn the_figures_of_a_hundred_thousand_resources_are_those_of_the_busiest_thousand() {
    const RESOURCES: usize = 100_000;
    // The last by name is the busiest.
    const BUSY: usize = RESOURCES - 1;
    let config = NodeConfig::new("root", Epoch(1));
    let driver = Arc::new(Driver::new(config, repository(), "here:1".to_owned(), 1));
    for first in (0..RESOURCES).step_by(10_000) {
        driver.ask(None, &ask("a", first..first + 10_000)).unwrap();
    }
    driver.ask(None, &ask("b", BUSY..RESOURCES)).unwrap();
    driver.look(&StatusQuery::FIGURES).await.unwrap();
    let text = Metrics::new(Arc::clone(&driver)).encode().unwrap();
    let series: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    assert!(series.len() <= 25_000, "{} series", series.len());
    let shown = series.iter().filter(|line| line.starts_with("lessor_capacity{")).count();
    assert_eq!(shown, 1_000);
    for line in [
        "lessor_resources 100000.0",
        "lessor_resources_unlisted 99000.0",
        "lessor_clients{resource=\"resource-099999\"} 2.0",
    ] {
        assert!(series.contains(&line), "no {line}");
    }
}
