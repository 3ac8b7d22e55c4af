//! The body of a server: sockets, files and the clock around one [`crate::node::Node`].
//!
//! [`Server::start`] binds, serves gRPC and HTTP on one port (and HTTP on a second one if asked to), and gives back a
//! handle; [`Server::drain`] ends it with nothing in flight lost.

mod acceptor;
mod address_budget;
pub mod admin;
mod admin_calls;
mod bodies;
mod build;
mod call_line;
mod caller;
mod causes;
mod connections;
pub mod driver;
pub mod etcd;
mod gate;
pub mod grpc;
mod hosts;
pub mod http;
mod leader_pages;
mod lock_file;
mod measure;
pub mod metrics;
mod more_pages;
mod options;
mod other_tasks;
pub mod override_records;
mod parent;
mod planned;
mod port;
mod port_name;
mod probe;
pub mod random;
mod refused;
mod server;
pub mod source;
mod standing;
mod start;
pub mod state;
mod stream;
mod switch;
mod tls;
mod wall_date;
mod watched;

pub use self::address_budget::AddressLimits;
pub use self::admin::{AdminAddress, AdminFault, AdminOptions, Levers, ReadFile};
pub use self::build::Build;
pub use self::caller::Caller;
pub use self::gate::{Denials, Gate};
pub use self::more_pages::{MadePages, MorePages, PageParts};
pub use self::options::{ElectionOptions, ServerOptions};
pub use self::planned::{PlannedPush, StalePlan};
pub use self::server::Server;
pub use self::start::StartError;
pub use self::tls::{TlsClients, TlsOptions};
