//! The caller at the other end of a connection: where it is, and who it proves to be.
//!
//! Every request carries it in its extensions, over gRPC and HTTP, on every port: nothing above the acceptor knows whether
//! a connection speaks TLS.

use std::net::{Ipv6Addr, SocketAddr};
use std::sync::Arc;

use lessor_proto::Identity;
use serde_json::{Map, Value};

use super::address_budget::AddressBudget;
use crate::node::ConnectionMark;

/// The caller of a connection. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The address that it calls from; of a process at a socket of this machine, none that could be called.
    pub address: SocketAddr,
    /// The identity that it has proved, or `plain` or `anonymous` where it has proved none.
    pub identity: Identity,
    /// The mark by which the mind knows its connection.
    pub(super) mark: Option<ConnectionMark>,
    /// The process at the other end of a socket of this machine.
    pub(super) process: Option<LocalProcess>,
    /// The number of the connection; 0 where it is not known.
    pub(super) connection: u64,
    /// The budget of its address; absent where it came by no network.
    pub(super) budget: Option<Arc<AddressBudget>>,
}

/// A process of this machine, as the system tells who it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct LocalProcess {
    pub(super) uid: u32,
    /// Absent where the system does not say it.
    pub(super) pid: Option<i32>,
}

/// The address of processes that came by no network.
const NOWHERE: (Ipv6Addr, u16) = (Ipv6Addr::UNSPECIFIED, 0);

// === impl Caller ===

impl Caller {
    /// The caller at the other end of a connection of the network.
    pub(super) fn remote(address: SocketAddr, identity: Identity, mark: Option<ConnectionMark>) -> Caller {
        Caller { address, identity, mark, process: None, connection: 0, budget: None }
    }

    /// The same, whose address has that budget.
    pub(super) fn with_budget(self, budget: Arc<AddressBudget>) -> Caller {
        Caller { budget: Some(budget), ..self }
    }

    /// The caller at the other end of a socket of this machine.
    pub(super) fn local(process: LocalProcess) -> Caller {
        let identity = Identity::user(process.uid);
        Caller { process: Some(process), ..Caller::remote(NOWHERE.into(), identity, None) }
    }

    /// The caller of a request that came without one: nobody that anything is known of.
    pub(super) fn unknown() -> Caller {
        Caller::remote(NOWHERE.into(), Identity::anonymous(), None)
    }

    /// The place that it calls from, as operators read it: a process of this machine, or an address.
    pub(super) fn origin(&self) -> Map<String, Value> {
        let origin = match self.process {
            Some(process) => vec![("uid", process.uid.into()), ("pid", process.pid.into())],
            None => vec![("address", self.address.to_string().into())],
        };
        origin.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}
