//! One client: it would like to send so many requests a second, and sends those that its lease allows. Or it serves those
//! that tenants make.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Empty};
use hyper::Uri;
use hyper::body::Bytes;
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use lessor_client::internals::clock;
use lessor_client::{Client, LeaseState, Rate};
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
    queries: Rate,
    task: Option<JoinHandle<()>>,
}

/// The work of a client.
#[derive(Clone, Copy, Debug)]
pub(super) enum Work {
    /// As much as it likes since that time. It measures what it wants.
    Own(Appetite, Time),
    /// Requests of others, who need so many a second at times: it would measure that too late.
    Serve(f64),
}

/// A request to the target.
#[derive(Clone, Debug)]
pub(super) struct Request {
    http: HttpClient<HttpConnector, Empty<Bytes>>,
    uri: Uri,
}

/// Requests that one client has under way, those that wait for their permit included.
const UNDER_WAY: usize = 200;
/// The time for which tenants wait for the lease: it is enough for all of them, unless the machine has other
/// things to do.
const PATIENCE: Duration = Duration::from_secs(3);
/// The interval between two looks at what is due.
pub(super) const TICK: Duration = Duration::from_millis(10);

// === impl Worker ===

impl Worker {
    pub(super) fn start(
        name: String,
        server: SocketAddr,
        target: SocketAddr,
        work: Work,
    ) -> anyhow::Result<Worker> {
        let client = Client::builder(server.to_string()).id(&name).build()?;
        let rate = client.rate(RESOURCE);
        let (queries, task) = match work {
            Work::Serve(wants) => (rate.wants(wants).max_wait(PATIENCE).open()?, None),
            Work::Own(appetite, start) => {
                let queries = rate.max_wait(Duration::from_millis(500)).open()?;
                let task = tokio::spawn(live(queries.clone(), Request::new(target)?, appetite, start));
                (queries, Some(task))
            }
        };
        Ok(Worker { name, client, queries, task })
    }

    pub(super) fn lease(&self) -> LeaseState {
        self.queries.lease()
    }

    /// The resource with which it serves others.
    pub(super) fn queries(&self) -> &Rate {
        &self.queries
    }

    pub(super) async fn end(self) {
        if let Some(task) = self.task {
            task.abort();
        }
        drop(self.queries);
        self.client.close().await;
    }
}

/// Sends requests as they become due, whether or not earlier ones are done: a client does not slow down by itself.
async fn live(queries: Rate, request: Request, appetite: Appetite, start: Time) {
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
            let (queries, request) = (queries.clone(), request.clone());
            tokio::spawn(async move {
                // Else it is shed: nobody waits for longer than half a second.
                if queries.acquire(1).await.is_ok() {
                    request.send().await;
                }
                drop(place);
            });
        }
    }
}

// === impl Request ===

impl Request {
    pub(super) fn new(target: SocketAddr) -> anyhow::Result<Request> {
        let http = HttpClient::builder(TokioExecutor::new()).build_http();
        let uri = Uri::builder().scheme("http").authority(target.to_string()).path_and_query("/").build()?;
        Ok(Request { http, uri })
    }

    pub(super) async fn send(self) {
        if let Ok(response) = self.http.get(self.uri).await {
            // The connection is used again when the body has been read.
            let _ = response.into_body().collect().await;
        }
    }
}
