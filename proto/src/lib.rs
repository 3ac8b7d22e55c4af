//! The language of Lessor: what holders and grantors of leases say to each other, and the time they say it on.
//!
//! # Glossary
//!
//! | word | meaning |
//! | --- | --- |
//! | resource | something limited that is shared: queries a second, connections |
//! | rate, gauge | the two kinds of resource: units a second, or whole units in flight |
//! | client | a process that uses resources and keeps to its leases |
//! | node | a place in the tree of servers; its elected task is the *leader* (the wire says *master*) |
//! | grantor, holder | the two ends of a lease: a node's leader, and a client or a node below |
//! | lease | so much of a resource, until then |
//! | grant | one message that gives, renews, raises or lowers a lease; numbered by (epoch, seq) |
//! | report | one message in which a holder says what it wants and which grant it keeps to |
//! | basis | the report from which the end of a lease is counted, by both ends, each on its own clock |
//! | stream | both ends of a lease speak when they have something to say, in order; without one, the holder polls |
//! | charge | the most a holder may still believe it has; what the ledger counts against the capacity |
//! | wants | the demand of a holder |
//! | weight | how many clients a demand stands for (the wire says `num_clients`, or subclients) |
//! | priority band | all demands of one priority; greater numbers are served first, strictly |
//! | learning | the time after a start in which a server hands out only what was out before |
//! | safe capacity | what a client falls back to when its lease has ended and no server answers |
//! | epoch | the number of a leadership of a node: greater than that of any before |
//! | incarnation, session | which life of a client id: drawn by our clients, counted by the server for Doorman's |
//!
//! # Example
//!
//! ```
//! use lessor_proto::{message::{Ask, Limits}, wire};
//!
//! let request = wire::GetCapacityRequest { client_id: Some("web-1".into()), ..Default::default() };
//! let ask = Ask::from_client(request, &Limits::default())?;
//! assert_eq!(ask.holder.as_str(), "web-1");
//!
//! let nameless = wire::GetCapacityRequest::default();
//! let refused = Ask::from_client(nameless, &Limits::default()).unwrap_err();
//! assert_eq!(refused.to_string(), "client_id: is missing; wanted 1 to 256 bytes of text without control characters");
//! # Ok::<(), lessor_proto::message::Refusal>(())
//! ```
//!
//! Deliberately absent: sockets, clocks, and any decision about capacity.

pub mod amount;
pub mod back_off;
#[cfg(feature = "grpc")]
pub mod codec;
pub mod features;
pub mod glob;
pub mod identity;
pub mod message;
pub mod name;
pub mod number;
pub mod time;

pub use amount::Amount;
pub use back_off::BackOff;
pub use features::Features;
pub use glob::Glob;
pub use identity::Identity;
pub use name::{ClientId, ResourceId};
pub use number::{Epoch, Incarnation, ReportId};
pub use time::{Drift, Time};

/// The generated messages of `doorman.proto`, and with the feature `grpc` its client and server.
#[allow(missing_docs, unused_qualifications, unreachable_pub, clippy::all)]
pub mod wire {
    include!(concat!(env!("OUT_DIR"), "/doorman.rs"));

    /// The compiled `doorman.proto`, for gRPC reflection.
    pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/doorman.bin"));
}
