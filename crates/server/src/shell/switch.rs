//! The switch of a port: calls of the capacity service go straight to it, and everything else through the routes.
//!
//! The routes look a service up by the path, keep what they found with the request, and put its body and that of the answer
//! into another one on the way there and back. That costs about as much as most answers.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::http::{Request, Response};
use lessor_client::internals::clock;
use lessor_proto::wire::capacity_server::CapacityServer;
use tonic::TimeoutExpired;
use tonic::body::Body;
use tonic::codegen::BoxFuture;
use tonic::service::Routes;

use super::address_budget::{AddressBudget, UnderWay};
use super::bodies::Bodies;
use super::caller::Caller;
use super::grpc::Service;

/// The switch of a port. Connections and requests share one.
#[derive(Clone)]
pub(super) struct Switch(Arc<Ways>);

/// The ways that a request may take.
struct Ways {
    capacity: CapacityServer<Service>,
    routes: Routes,
    bodies: Bodies,
    request_time: Duration,
}

/// An answer that is being made.
pub(super) struct PendingAnswer {
    way: Way,
    request_time: Duration,
    /// Counted until it is made; absent of who came by no network, or is refused.
    _under_way: Option<UnderWay>,
    /// The end of its time; absent until it has to be waited for, as hardly any has.
    expiry: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

/// The way that a request has taken.
enum Way {
    Straight(BoxFuture<Response<Body>, Infallible>),
    /// It is large, and hardly any request is one.
    Routed(Box<<Routes as tower::Service<Request<Body>>>::Future>),
    /// There are too many.
    Refused(std::future::Ready<Response<Body>>),
}

// === impl Switch ===

impl Switch {
    /// The switch in front of `routes`, which lets an answer take so long.
    pub(super) fn new(
        capacity: CapacityServer<Service>,
        routes: Routes,
        bodies: Bodies,
        request_time: Duration,
    ) -> Switch {
        Switch(Arc::new(Ways { capacity, routes, bodies, request_time }))
    }
}

impl tower::Service<Request<Body>> for Switch {
    type Response = Response<Body>;
    type Error = TimeoutExpired;
    type Future = PendingAnswer;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), TimeoutExpired>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> PendingAnswer {
        let Ways { capacity, routes, bodies, request_time } = &*self.0;
        let budget = request.extensions().get::<Caller>().and_then(|caller| caller.budget.as_ref());
        let under_way = match budget.map(AddressBudget::begin).transpose() {
            Ok(under_way) => under_way,
            Err(refusal) => {
                let answer = std::future::ready(bodies.refuse(refusal).into_http());
                let way = Way::Refused(answer);
                return PendingAnswer { way, request_time: *request_time, _under_way: None, expiry: None };
            }
        };
        let way = match bodies.guard_call(request) {
            Ok(call) => Way::Straight(capacity.clone().call(call)),
            Err(request) => Way::Routed(Box::new(routes.clone().call(bodies.guard(request)))),
        };
        PendingAnswer { way, request_time: *request_time, _under_way: under_way, expiry: None }
    }
}

// === impl PendingAnswer ===

impl Future for PendingAnswer {
    type Output = Result<Response<Body>, TimeoutExpired>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let PendingAnswer { way, request_time, expiry, .. } = self.get_mut();
        let answered = match way {
            Way::Straight(answer) => answer.as_mut().poll(cx),
            Way::Routed(answer) => Pin::new(answer.as_mut()).poll(cx),
            Way::Refused(answer) => Pin::new(answer).poll(cx).map(Ok),
        };
        if let Poll::Ready(Ok(answer)) = answered {
            return Poll::Ready(Ok(answer));
        }
        let until = || clock::sleep_until(clock::now() + *request_time);
        let expiry = expiry.get_or_insert_with(|| Box::pin(until()));
        expiry.as_mut().poll(cx).map(|()| Err(TimeoutExpired(())))
    }
}
