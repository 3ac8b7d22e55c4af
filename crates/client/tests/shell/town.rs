//! A server that answers as a test says, and has no streams.

use std::net::SocketAddr;
use std::time::Duration;

use lessor_client::{Client, LeaseState, Resource};
use lessor_proto::wire::capacity_server::{Capacity, CapacityServer};
use lessor_proto::wire::{
    DiscoveryRequest, DiscoveryResponse, GetCapacityRequest, GetCapacityResponse, GetServerCapacityRequest,
    GetServerCapacityResponse, Lease, ReleaseCapacityRequest, ReleaseCapacityResponse, ResourceRequest,
    ResourceResponse, SessionDown, SessionUpRequest,
};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tonic::{Request, Response, Status};

/// The answer of a server to the n-th request, counted from 0; `None` hangs for ever.
type Script = dyn Fn(usize, &GetCapacityRequest) -> Option<Result<GetCapacityResponse, Status>> + Send + Sync;

struct Fake {
    script: Box<Script>,
    heard: mpsc::UnboundedSender<Heard>,
    count: std::sync::atomic::AtomicUsize,
    /// The messages that come down each stream, which then stays open; absent: there are no streams.
    downs: Option<Vec<SessionDown>>,
    open: std::sync::Mutex<Vec<mpsc::Sender<Result<SessionDown, Status>>>>,
}

#[derive(Debug)]
pub(crate) enum Heard {
    Ask(GetCapacityRequest),
    Release(ReleaseCapacityRequest),
}

/// A server that runs, and what it hears.
pub(crate) struct Town {
    pub(crate) address: SocketAddr,
    heard: mpsc::UnboundedReceiver<Heard>,
}

#[tonic::async_trait]
impl Capacity for Fake {
    async fn discovery(&self, _: Request<DiscoveryRequest>) -> Result<Response<DiscoveryResponse>, Status> {
        Ok(Response::new(DiscoveryResponse { is_master: true, ..DiscoveryResponse::default() }))
    }

    async fn get_capacity(
        &self,
        request: Request<GetCapacityRequest>,
    ) -> Result<Response<GetCapacityResponse>, Status> {
        let number = self.count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let answer = (self.script)(number, request.get_ref());
        let _ = self.heard.send(Heard::Ask(request.into_inner()));
        match answer {
            Some(answer) => answer.map(Response::new),
            None => std::future::pending().await,
        }
    }

    async fn get_server_capacity(
        &self,
        _: Request<GetServerCapacityRequest>,
    ) -> Result<Response<GetServerCapacityResponse>, Status> {
        Err(Status::unimplemented("no nodes here"))
    }

    async fn release_capacity(
        &self,
        request: Request<ReleaseCapacityRequest>,
    ) -> Result<Response<ReleaseCapacityResponse>, Status> {
        let _ = self.heard.send(Heard::Release(request.into_inner()));
        Ok(Response::new(ReleaseCapacityResponse::default()))
    }

    type SessionStream = ReceiverStream<Result<SessionDown, Status>>;

    async fn session(
        &self,
        _: Request<tonic::Streaming<SessionUpRequest>>,
    ) -> Result<Response<Self::SessionStream>, Status> {
        let downs = self.downs.clone().ok_or_else(|| Status::unimplemented("no streams here"))?;
        let (sender, downs_receiver) = mpsc::channel(downs.len().max(1));
        downs.into_iter().for_each(|down| sender.try_send(Ok(down)).unwrap());
        self.open.lock().unwrap().push(sender);
        Ok(Response::new(ReceiverStream::new(downs_receiver)))
    }
}

// === the town ===

impl Town {
    pub(crate) async fn start(
        script: impl Fn(usize, &GetCapacityRequest) -> Option<Result<GetCapacityResponse, Status>>
        + Send
        + Sync
        + 'static,
    ) -> Town {
        Town::serve(Box::new(script), None).await
    }

    /// A server on whose streams this is said.
    pub(crate) async fn streaming(downs: Vec<SessionDown>) -> Town {
        Town::serve(Box::new(|_, _| None), Some(downs)).await
    }

    async fn serve(script: Box<Script>, downs: Option<Vec<SessionDown>>) -> Town {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, heard) = mpsc::unbounded_channel();
        let fake = Fake { script, heard: sender, count: Default::default(), downs, open: Default::default() };
        let server = tonic::transport::Server::builder().add_service(CapacityServer::new(fake));
        tokio::spawn(server.serve_with_incoming(TcpListenerStream::new(listener)));
        Town { address, heard }
    }

    /// A server that grants everything.
    pub(crate) async fn generous() -> Town {
        Town::start(|number, request| Some(Ok(answer(number, request, grant)))).await
    }

    pub(crate) fn client(&self) -> Client {
        Client::builder(self.address.to_string()).id("web-1").build().unwrap()
    }

    pub(crate) async fn hear(&mut self) -> Heard {
        soon(self.heard.recv()).await.expect("the server runs")
    }

    pub(crate) async fn hear_ask(&mut self) -> GetCapacityRequest {
        match self.hear().await {
            Heard::Ask(request) => request,
            Heard::Release(request) => panic!("a release: {request:?}"),
        }
    }

    pub(crate) async fn hear_release(&mut self) -> ReleaseCapacityRequest {
        loop {
            if let Heard::Release(request) = self.hear().await {
                return request;
            }
        }
    }
}

pub(crate) fn answer(
    number: usize,
    request: &GetCapacityRequest,
    grant: impl Fn(usize, &ResourceRequest) -> ResourceResponse,
) -> GetCapacityResponse {
    let response = request.resource.iter().map(|resource| grant(number, resource)).collect();
    GetCapacityResponse { response, ..GetCapacityResponse::default() }
}

/// All that is wanted for a minute, in Lessor's own fields; dates from long ago are not looked at.
pub(crate) fn grant(number: usize, resource: &ResourceRequest) -> ResourceResponse {
    ResourceResponse {
        resource_id: resource.resource_id.clone().unwrap(),
        gets: Lease {
            expiry_time: Some(1),
            refresh_interval: Some(5),
            capacity: resource.wants,
            epoch: Some(1),
            seq: Some(number as u64 + 1),
            duration_ms: Some(60_000),
            ..Lease::default()
        },
        safe_capacity: None,
        domains: None,
    }
}

pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), future).await.expect("within 20 s")
}

pub(crate) async fn until<E>(resource: &mut Resource<E>, done: impl Fn(&LeaseState) -> bool) -> LeaseState {
    soon(async {
        loop {
            let lease = resource.lease();
            if done(&lease) {
                return lease;
            }
            resource.changed().await.expect("the client is open");
        }
    })
    .await
}
