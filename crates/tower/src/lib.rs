//! Leases of Lessor in front of services: layers for tower, and so for axum, tonic and hyper.
//!
//! One budget holds for all replicas of a service, and each decides by itself in about a microsecond: a layer asks an open
//! [`Rate`](lessor_client::Rate) or [`Gauge`](lessor_client::Gauge), whose lease is renewed in the background. What each tenant
//! may do comes with the lease as well, and changes when the operator changes it, without a restart.
//!
//! ```no_run
//! # use std::convert::Infallible;
//! # use http::{Request, Response};
//! use lessor_client::Client;
//! use lessor_tower::{Header, InFlightLayer, LimitLayer, PeerIp};
//! use tower::{ServiceBuilder, service_fn};
//!
//! # async fn work() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::builder("127.0.0.1:15000").id("web-1").connect().await?;
//! let requests = client.rate("web/requests").open()?;
//! let running = client.gauge("web/running").open()?;
//! let service = ServiceBuilder::new()
//!     // What each tenant may do from each address, by the policies of the resource.
//!     .layer(LimitLayer::new(requests, (Header::new("x-tenant"), PeerIp::new())))
//!     // So many at a time in all replicas; each counts until its body has been sent.
//!     .layer(InFlightLayer::new(running))
//!     .service(service_fn(async |_: Request<String>| Ok::<_, Infallible>(Response::new(String::new()))));
//! # drop(service);
//! # Ok(())
//! # }
//! ```
//!
//! | type | does |
//! | --- | --- |
//! | [`LimitLayer`] | a request costs units of a rate, of the domain that its [`Key`] names; else 429, or 503 where nothing is leased |
//! | [`InFlightLayer`] | a request holds units of a gauge until its response body has ended or is dropped; else 503 |
//! | [`TogetherLayer`] | several of both, all or nothing |
//! | [`WaitLayer`] | at a client: a request waits for a unit of a rate before it is sent, not past its [`Deadline`] |
//! | [`RetryAfterLayer`] | at a client: whoever answers 429 or 503 with `Retry-After` is left alone for so long |
//! | `reqwest::Middleware` | both, for `reqwest-middleware` |
//! | [`Key`] | whose request it is: [`PeerIp`], [`ForwardedFor`], [`Header`], [`Global`], `MatchedPath`, tuples of them, closures |
//! | [`Cost`], [`Settle`] | what a request costs, before and after its answer |
//! | [`BodyBytes`] | the cost in bytes, when the answer has been sent |
//! | [`Answer`] | what is answered when nothing is granted: [`Problem`] by RFC 9457, `Grpc`, closures |
//!
//! `poll_ready` asks the inner service and takes nothing: whoever is ready and never called has cost nothing. Errors of the
//! inner service are passed on as they are, so that of an axum router stays `Infallible`.
//!
//! Answers of [`LimitLayer`] carry the fields `RateLimit-Policy` and `RateLimit` of the IETF's draft 11 (see
//! [`LimitLayer::name`]), and denials `Retry-After` in seconds, rounded up.
//!
//! Features: `axum` (the route and the peer's address as axum knows them), `tonic` (denials as statuses of gRPC, the peer's
//! address as tonic knows it), `reqwest` (a middleware).
//!
//! Deliberately absent: rules in files, for which a server of Lessor has templates, and waiting at a server, where a queue
//! would only hide that it is asked for too much.

mod answer;
mod bytes;
mod cost;
mod deadline;
mod fields;
#[cfg(feature = "tonic")]
mod grpc;
mod held;
mod hold_back;
mod in_flight;
mod key;
mod limit;
mod peer;
#[cfg(feature = "reqwest")]
pub mod reqwest;
mod retry_after;
mod together;
mod wait;

pub use self::answer::{Answer, Problem, Rejection};
pub use self::bytes::{BodyBytes, CountedBody};
pub use self::cost::{Cost, Keep, One, Settle};
pub use self::deadline::{Deadline, GrpcTimeout, NoDeadline};
#[cfg(feature = "tonic")]
pub use self::grpc::Grpc;
pub use self::held::{HeldBody, HeldFuture};
pub use self::in_flight::{InFlight, InFlightBody, InFlightFuture, InFlightLayer};
#[cfg(feature = "axum")]
pub use self::key::MatchedPath;
pub use self::key::{Global, Header, Key, Name, Unkeyed};
pub use self::limit::{Limit, LimitFuture, LimitLayer, Unleased};
pub use self::peer::{ForwardedFor, PeerIp};
pub use self::retry_after::{RetryAfter, RetryAfterFuture, RetryAfterLayer};
pub use self::together::{AllOf, AllOfFuture, TogetherLayer};
pub use self::wait::{Wait, WaitFuture, WaitLayer};
