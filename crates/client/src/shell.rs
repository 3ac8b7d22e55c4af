//! The body: where the clock is read, sockets are opened and a task runs.
//!
//! One task drives a session; programs hold a [`Client`] and [`Resource`]s, which share allowances with it through atomics.

pub mod clock;

mod bearer;
mod client;
#[cfg(feature = "prometheus")]
mod collector;
mod command;
mod connector;
mod domain;
mod driver;
mod enforce;
mod jobs;
mod lease_state;
mod line;
mod link;
mod metrics;
mod notifier;
mod opening;
mod registry;
mod resource;
mod status;
mod stream;
pub(crate) mod tls;
mod together;
mod windows;

pub use bearer::{BearerToken, TokenFault};
pub use client::{BuildError, Builder, Client, ConnectError};
#[cfg(feature = "prometheus")]
pub use collector::Collector;
pub use connector::{Connector, Protocol};
pub use domain::Domain;
pub use jobs::GaugeJobs;
pub use lease_state::LeaseState;
pub use line::ParentLine;
pub use metrics::{LastFault, Metrics, ResourceMetrics};
pub use opening::{OpenError, Opening};
pub use resource::{Closed, Gauge, Rate, Resource};
pub use tls::Tls;
pub use tls::pem::TlsFault;
pub use together::Together;
pub use windows::{Windows, WindowsOpening};
