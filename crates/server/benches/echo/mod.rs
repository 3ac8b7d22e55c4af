//! A bare tonic echo: it decodes and encodes the messages of `GetCapacity`, and decides nothing.

use std::time::Duration;

use lessor_proto::wire;
use lessor_proto::wire::capacity_server::{Capacity, CapacityServer};
use tonic::transport::server::Router;
use tonic::{Request, Response, Status};

/// Answers what every client wants, without looking further.
pub(crate) struct Echo;

#[tonic::async_trait]
impl Capacity for Echo {
    type SessionStream = tokio_stream::Empty<Result<wire::SessionDown, Status>>;

    async fn session(
        &self,
        _: Request<tonic::Streaming<wire::SessionUpRequest>>,
    ) -> Result<Response<Self::SessionStream>, Status> {
        Err(Status::unimplemented("an echo"))
    }

    async fn discovery(
        &self,
        _: Request<wire::DiscoveryRequest>,
    ) -> Result<Response<wire::DiscoveryResponse>, Status> {
        Err(Status::unimplemented("an echo"))
    }

    async fn get_capacity(
        &self,
        request: Request<wire::GetCapacityRequest>,
    ) -> Result<Response<wire::GetCapacityResponse>, Status> {
        let request = request.into_inner();
        let response = request.resource.into_iter().map(|resource| {
            let lease = wire::Lease {
                expiry_time: Some(1_800_000_000),
                refresh_interval: Some(5),
                capacity: resource.wants,
                epoch: Some(1),
                seq: Some(1),
                duration_ms: Some(60_000),
                token: Some(vec![0; 8]),
                ..wire::Lease::default()
            };
            wire::ResourceResponse {
                resource_id: resource.resource_id.unwrap_or_default(),
                gets: lease,
                safe_capacity: Some(1.0),
                domains: None,
            }
        });
        Ok(Response::new(wire::GetCapacityResponse {
            response: response.collect(),
            epoch: Some(1),
            ..wire::GetCapacityResponse::default()
        }))
    }

    async fn get_server_capacity(
        &self,
        _: Request<wire::GetServerCapacityRequest>,
    ) -> Result<Response<wire::GetServerCapacityResponse>, Status> {
        Err(Status::unimplemented("an echo"))
    }

    async fn release_capacity(
        &self,
        _: Request<wire::ReleaseCapacityRequest>,
    ) -> Result<Response<wire::ReleaseCapacityResponse>, Status> {
        Err(Status::unimplemented("an echo"))
    }
}

/// The echo with the transport of the server, which looks for dead connections: what is measured is what is behind it.
pub(crate) fn service() -> Router {
    tonic::transport::Server::builder()
        .accept_http1(true)
        .http2_keepalive_interval(Some(Duration::from_secs(30)))
        .http2_keepalive_timeout(Some(Duration::from_secs(10)))
        .max_concurrent_streams(Some(1_000))
        .initial_connection_window_size(Some(4 << 20))
        .add_service(CapacityServer::new(Echo))
}
