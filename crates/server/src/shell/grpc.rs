//! The gRPC door: decode and check, ask the driver, encode. Health and reflection stand beside it.

use std::sync::Arc;
use std::time::Duration;

use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::IntoResponse;
use lessor_client::internals::clock;
use lessor_proto::message::{Answer, Ask, CheckedAsk, Refusal, Release};
use lessor_proto::wire::capacity_server::{Capacity, CapacityServer};
use lessor_proto::{Time, wire};
use tokio::sync::watch;
use tonic::server::NamedService;
use tonic::service::Routes;
use tonic::{Request, Response, Status};
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;

use super::address_budget::Throttled;
use super::call_line::CallLine;
use super::caller::Caller;
use super::driver::{Driver, Moment, NotReady, Rpc, Unanswered};
use super::gate::{Gate, Visit};
use super::refused::{refused, unanswered};
use super::stream::{self, Downs, Lines};
use crate::node::ConnectionMark;

/// Grants that are written down in less than a few microseconds.
const SHORT: usize = 4;

/// `doorman.Capacity` over a driver.
#[derive(Clone, Debug)]
pub struct Service {
    driver: Arc<Driver>,
    gate: Arc<Gate>,
    lines: Arc<Lines>,
}

#[tonic::async_trait]
impl Capacity for Service {
    async fn discovery(
        &self,
        _: Request<wire::DiscoveryRequest>,
    ) -> Result<Response<wire::DiscoveryResponse>, Status> {
        self.timed(Rpc::Discovery, |_| Ok(Response::new(self.driver.whereabouts().to_wire())))
    }

    async fn get_capacity(
        &self,
        request: Request<wire::GetCapacityRequest>,
    ) -> Result<Response<wire::GetCapacityResponse>, Status> {
        let (from, visit) = (connection(&request), self.visit(&request).await?);
        self.timed(Rpc::GetCapacity, |ended| {
            let asked = self.admitted(visit, Ask::read_client(request.into_inner(), self.driver.limits()))?;
            let (answer, at) = self.answer(from, asked)?;
            *ended = end_of(&answer, at);
            Ok(Response::new(answer.into_client_wire(at.wall)))
        })
    }

    async fn get_server_capacity(
        &self,
        request: Request<wire::GetServerCapacityRequest>,
    ) -> Result<Response<wire::GetServerCapacityResponse>, Status> {
        let (from, visit) = (connection(&request), self.visit(&request).await?);
        self.timed(Rpc::GetServerCapacity, |ended| {
            let asked = self.admitted(visit, Ask::read_node(request.into_inner(), self.driver.limits()))?;
            let (answer, at) = self.answer(from, asked)?;
            *ended = end_of(&answer, at);
            Ok(Response::new(answer.into_node_wire(at.wall)))
        })
    }

    async fn release_capacity(
        &self,
        request: Request<wire::ReleaseCapacityRequest>,
    ) -> Result<Response<wire::ReleaseCapacityResponse>, Status> {
        let (from, visit) = (connection(&request), self.visit(&request).await?);
        self.timed(Rpc::ReleaseCapacity, |_| {
            let release = Release::from_wire(request.into_inner(), self.driver.limits());
            let release = release.map_err(|refusal| self.refused(refusal))?;
            if let Some(visit) = visit {
                visit.admit_release(&release).map_err(|refusal| self.refused(refusal))?;
            }
            match self.driver.release(from, &release) {
                Ok(()) => Ok(Response::new(Release::answer(None))),
                Err(Unanswered::NotLeading(leader)) => Ok(Response::new(Release::answer(Some(&leader)))),
                Err(fault) => Err(unanswered(&self.driver, fault)),
            }
        })
    }

    type SessionStream = Downs;

    async fn session(
        &self,
        request: Request<tonic::Streaming<wire::SessionUpRequest>>,
    ) -> Result<Response<Downs>, Status> {
        let visit = self.known(&request)?;
        let caller = request.extensions().get::<Caller>().cloned().unwrap_or_else(Caller::unknown);
        let driver = Arc::clone(&self.driver);
        let opened = stream::open(driver, &self.lines, visit, caller, request.into_inner());
        opened.await.map(Response::new)
    }
}

// === impl Service ===

impl Service {
    /// Waits until a call can be paid for.
    async fn pay(&self, line: &CallLine, pay: impl Fn(Time) -> Result<(), Time>) {
        line.pay(pay, || self.driver.traffic().throttled.add(Throttled::Call)).await;
    }

    /// The visit of whoever calls, as soon as the budgets of its address and of its identity let it; none where there are no rules.
    async fn visit<T>(&self, request: &Request<T>) -> Result<Option<Visit>, Status> {
        if let Some(budget) = request.extensions().get::<Caller>().and_then(|caller| caller.budget.as_ref()) {
            self.pay(budget.calls(), |now| budget.pay_request(now)).await;
        }
        let visit = self.known(request)?;
        if let Some(purse) = visit.as_ref().and_then(Visit::purse) {
            self.pay(purse.calls(), |now| purse.pay_report(now)).await;
        }
        Ok(visit)
    }

    fn known<T>(&self, request: &Request<T>) -> Result<Option<Visit>, Status> {
        let headers = request.metadata().as_ref();
        self.gate.visit(headers, request.extensions()).map_err(|refusal| self.refused(refusal))
    }

    /// The part of a request that is in order, and that whoever calls may ask for.
    fn admitted(
        &self,
        visit: Option<Visit>,
        asked: Result<CheckedAsk, Refusal>,
    ) -> Result<CheckedAsk, Status> {
        let asked = match visit {
            Some(visit) => asked.and_then(|asked| visit.admit(asked)),
            None => asked,
        };
        asked.map_err(|refusal| self.refused(refusal))
    }

    /// The answer of the leader, or where it is, and the moment of that.
    fn answer(&self, from: Option<ConnectionMark>, asked: CheckedAsk) -> Result<(Answer, Moment), Status> {
        match self.driver.ask(from, &asked.ask) {
            Ok((mut answer, at)) => {
                asked.complete(&mut answer);
                self.driver.note_refused(&answer.refused);
                Ok((answer, at))
            }
            Err(Unanswered::NotLeading(leader)) => {
                Ok((Answer::redirect(leader), Moment { time: clock::now(), wall: clock::wall() }))
            }
            Err(fault) => Err(unanswered(&self.driver, fault)),
        }
    }

    fn refused(&self, refusal: Refusal) -> Status {
        refused(&self.driver, refusal)
    }

    /// Makes an answer, and measures how long that takes: up to the time that `answer` sets, if it does.
    fn timed<T>(
        &self,
        rpc: Rpc,
        answer: impl FnOnce(&mut Option<Time>) -> Result<T, Status>,
    ) -> Result<T, Status> {
        let (began, mut ended) = (clock::now(), None);
        let answer = answer(&mut ended);
        self.driver.note_request(rpc, ended.unwrap_or_else(clock::now).since(began));
        answer
    }
}

/// The connection that a call comes on.
fn connection<T>(request: &Request<T>) -> Option<ConnectionMark> {
    request.extensions().get::<Caller>().and_then(|caller| caller.mark)
}

/// The time at which an answer made at `at` is written down; absent where that takes long enough to look at the clock again.
fn end_of(answer: &Answer, at: Moment) -> Option<Time> {
    (answer.grants.len() <= SHORT).then_some(at.time)
}

/// The capacity service of a server that takes messages of so many bytes, all of its services, and what reports their health.
pub(super) async fn routes(
    driver: Arc<Driver>,
    gate: Arc<Gate>,
    lines: Arc<Lines>,
    request_bytes: usize,
) -> (CapacityServer<Service>, Routes, HealthReporter) {
    let (reporter, health) = tonic_health::server::health_reporter();
    reporter.set_serving::<CapacityServer<Service>>().await;
    let reflection = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(wire::DESCRIPTORS)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        .build_v1()
        .expect("the descriptors are those that the code was generated from");
    let capacity =
        CapacityServer::new(Service { driver, gate, lines }).max_decoding_message_size(request_bytes);
    let routes = Routes::new(capacity.clone()).add_service(health).add_service(reflection);
    (capacity, routes, reporter)
}

/// Answers requests for paths that are not served: clients of gRPC are told in their own way, everybody else by
/// 404.
pub(super) async fn nowhere(request: axum::extract::Request) -> axum::response::Response {
    let kind = request.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    match kind.is_some_and(|kind| kind.starts_with(b"application/grpc")) {
        true => Status::unimplemented("no such service").into_http::<axum::body::Body>(),
        false => StatusCode::NOT_FOUND.into_response(),
    }
}

/// Keeps what health says in step with whether the driver is ready, until the server stops.
pub(super) async fn follow_health(
    mut reporter: HealthReporter,
    driver: Arc<Driver>,
    mut stopped: watch::Receiver<bool>,
) {
    let services = ["", <CapacityServer<Service> as NamedService>::NAME];
    let mut timer = tokio::time::interval(Duration::from_secs(1));
    loop {
        let readiness = driver.readiness();
        let is_final = readiness.as_ref().is_err_and(NotReady::is_final) || *stopped.borrow();
        let status = match readiness.is_ok() && !is_final {
            true => ServingStatus::Serving,
            false => ServingStatus::NotServing,
        };
        for service in services {
            reporter.set_service_status(service, status).await;
        }
        if is_final {
            break;
        }
        tokio::select! {
            stop = stopped.wait_for(|&stop| stop) => if stop.is_err() { return },
            _ = timer.tick() => {}
        }
    }
    // Those who watch have heard the last word; their streams end with the server, so that a drain does not wait for
    // them. An error means that the server handle is gone, which is a stop as well.
    let _ = stopped.wait_for(|&stop| stop).await;
    for service in services {
        reporter.clear_service_status(service).await;
    }
}
