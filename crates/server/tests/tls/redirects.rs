//! Redirects over TLS: a server that was taken over can send clients to nobody but servers of the same kind.

use lessor_client::{Client, Tls, Transport};
use lessor_proto::wire::capacity_server::{Capacity, CapacityServer};
use lessor_proto::wire::{
    DiscoveryRequest, DiscoveryResponse, GetCapacityRequest, GetCapacityResponse, GetServerCapacityRequest,
    GetServerCapacityResponse, Mastership, ReleaseCapacityRequest, ReleaseCapacityResponse, SessionDown,
    SessionUpRequest,
};
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::{Identity, ServerTlsConfig};
use tonic::{Request, Response, Status, Streaming};

use crate::house::{House, eventually, leased, tls};
use crate::pki::{Authority, Issued};

const LESSOR: &str = "spiffe://acme/ns/lessor/sa/root";
const WEB: &str = "spiffe://acme/ns/shop/sa/web";

/// A server that sends everybody to `to`.
struct Signpost {
    to: String,
}

// === impl Signpost ===

impl Signpost {
    /// Where it serves, showing `own`.
    async fn open(own: &Issued, to: String) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("https://localhost:{}", listener.local_addr().unwrap().port());
        let identity = Identity::from_pem(&own.certificate, &own.key);
        let mut server = tonic::transport::Server::builder()
            .tls_config(ServerTlsConfig::new().identity(identity))
            .unwrap();
        let server = server.add_service(CapacityServer::new(Signpost { to }));
        tokio::spawn(server.serve_with_incoming(TcpListenerStream::new(listener)));
        address
    }
}

#[tonic::async_trait]
impl Capacity for Signpost {
    async fn discovery(&self, _: Request<DiscoveryRequest>) -> Result<Response<DiscoveryResponse>, Status> {
        Ok(Response::new(DiscoveryResponse::default()))
    }

    async fn get_capacity(
        &self,
        _: Request<GetCapacityRequest>,
    ) -> Result<Response<GetCapacityResponse>, Status> {
        let mastership = Mastership { master_address: Some(self.to.clone()) };
        let answer = GetCapacityResponse { mastership: Some(mastership), ..GetCapacityResponse::default() };
        Ok(Response::new(answer))
    }

    async fn get_server_capacity(
        &self,
        _: Request<GetServerCapacityRequest>,
    ) -> Result<Response<GetServerCapacityResponse>, Status> {
        Err(Status::unimplemented("no nodes here"))
    }

    async fn release_capacity(
        &self,
        _: Request<ReleaseCapacityRequest>,
    ) -> Result<Response<ReleaseCapacityResponse>, Status> {
        Ok(Response::new(ReleaseCapacityResponse::default()))
    }

    type SessionStream = tokio_stream::Empty<Result<SessionDown, Status>>;

    async fn session(
        &self,
        _: Request<Streaming<SessionUpRequest>>,
    ) -> Result<Response<Self::SessionStream>, Status> {
        Err(Status::unimplemented("no streams here"))
    }
}

/// The servers of a test, and a client that believes their authority.
struct Road {
    authority: Authority,
    me: Issued,
}

// === impl Road ===

impl Road {
    fn new() -> Road {
        let authority = Authority::new();
        let me = authority.client(&[WEB]);
        Road { authority, me }
    }

    async fn house(&self, names: &[&str]) -> House {
        House::open(&self.authority.server(names), &self.authority).await
    }

    async fn client(&self, names: &[&str], to: String, set: impl FnOnce(Tls) -> Tls) -> Client {
        let signpost = Signpost::open(&self.authority.server(names), to).await;
        let builder = Client::builder(signpost).transport(Transport::Poll);
        builder.tls(set(tls(&self.authority, &self.me))).build().unwrap()
    }
}

#[tokio::test]
async fn no_redirect_is_followed_to_a_server_of_another_identity() {
    let road = Road::new();
    let (stranger, friend) = (road.house(&[WEB, "localhost"]).await, road.house(&[LESSOR]).await);
    let is_lessor = |tls: Tls| tls.server("spiffe://acme/ns/lessor/sa/*");

    let led_astray = road.client(&[LESSOR], stranger.address(), is_lessor).await;
    let db = led_astray.rate("db").wants(1.0).open().unwrap();
    eventually("it has been there, and left", async || stranger.handshakes("failed") > 1).await;
    let fault = db.lease().last_error.map(|fault| fault.to_string()).unwrap_or_default();
    assert!(
        fault.contains("is that of spiffe://acme/ns/shop/sa/web, wanted spiffe://acme/ns/lessor/sa/*"),
        "{fault}"
    );
    assert_eq!(stranger.handshakes("done"), 0, "it has learned nothing");

    let led = road.client(&[LESSOR], friend.address(), is_lessor).await;
    leased(&mut led.rate("db").wants(1.0).open().unwrap()).await;
}

#[tokio::test]
async fn without_an_identity_a_redirect_is_followed_to_the_name_in_it() {
    let road = Road::new();
    let house = road.house(&["localhost"]).await;
    let by_address = house.server.address().to_string();
    let by_name = house.address();
    let plain = format!("http://{by_address}");

    for (to, told) in [(by_address, "certificate not valid for name"), (plain, "is no address for TLS")] {
        let client = road.client(&["localhost"], to.clone(), |tls| tls).await;
        let db = client.rate("db").wants(1.0).open().unwrap();
        let fault = || db.lease().last_error.map(|fault| fault.to_string()).unwrap_or_default();
        eventually("it says why not", async || fault().contains(told)).await;
        assert_eq!(house.handshakes("done"), 0, "{to}");
    }
    let client = road.client(&["localhost"], by_name, |tls| tls).await;
    leased(&mut client.rate("db").wants(1.0).open().unwrap()).await;
}
