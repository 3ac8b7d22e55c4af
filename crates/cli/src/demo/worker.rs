//! One client: it would like to send so many requests a second, and sends those that its lease allows.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Empty};
use hyper::Uri;
use hyper::body::Bytes;
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use lessor_client::limiter::Limiter;
use lessor_client::shell::{LeaseView, clock};
use lessor_client::{Client, Resource};
use lessor_proto::Time;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use super::script::Appetite;
use super::tree::RESOURCE;

/// A client that runs.
#[derive(Debug)]
pub(super) struct Worker {
    pub(super) name: String,
    client: Client,
    queries: Resource<Limiter>,
    task: JoinHandle<()>,
}

type Http = HttpClient<HttpConnector, Empty<Bytes>>;

/// Requests that one client has under way, those that wait for their permit included.
const UNDER_WAY: usize = 200;
const TICK: Duration = Duration::from_millis(10);

// === impl Worker ===

impl Worker {
    pub(super) fn start(
        name: String,
        server: SocketAddr,
        target: SocketAddr,
        appetite: Appetite,
        start: Time,
    ) -> anyhow::Result<Worker> {
        let client = Client::builder(server.to_string()).id(&name).build()?;
        // The wants are not told to the client: it measures them from what is attempted.
        let queries = client.rate(RESOURCE).max_wait(Duration::from_millis(500)).open()?;
        let uri = Uri::builder().scheme("http").authority(target.to_string()).path_and_query("/").build()?;
        let task = tokio::spawn(work(queries.clone(), uri, appetite, start));
        Ok(Worker { name, client, queries, task })
    }

    pub(super) fn lease(&self) -> LeaseView {
        self.queries.lease()
    }

    pub(super) async fn end(self) {
        self.task.abort();
        drop(self.queries);
        self.client.close().await;
    }
}

/// Sends requests as they become due, whether or not earlier ones are done: a client does not slow down by itself.
async fn work(queries: Resource<Limiter>, uri: Uri, appetite: Appetite, start: Time) {
    let http: Http = HttpClient::builder(TokioExecutor::new()).build_http();
    let room = Arc::new(Semaphore::new(UNDER_WAY));
    let mut timer = tokio::time::interval(TICK);
    let (mut due, mut last) = (0.0, clock::now());
    loop {
        timer.tick().await;
        let now = clock::now();
        due += appetite.at(now.since(start)) * now.since(last).as_secs_f64();
        last = now;
        while due >= 1.0 {
            due -= 1.0;
            let Ok(place) = Arc::clone(&room).try_acquire_owned() else { continue };
            let (queries, http, uri) = (queries.clone(), http.clone(), uri.clone());
            tokio::spawn(async move {
                send(&queries, &http, uri).await;
                drop(place);
            });
        }
    }
}

async fn send(queries: &Resource<Limiter>, http: &Http, uri: Uri) {
    if queries.acquire(1).await.is_err() {
        // Shed: nobody waits for longer than half a second.
        return;
    }
    if let Ok(response) = http.get(uri).await {
        // The connection is used again when the body has been read.
        let _ = response.into_body().collect().await;
    }
}
