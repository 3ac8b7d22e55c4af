//! The context of a call: what the node knows that calls, for its resources.

use lessor_proto::{Incarnation, Time};

use super::identity::ConnectionMark;
use crate::config::NodeConfig;
use crate::date::Date;
use crate::record::{Longest, Unknown};

/// The data that stays the same for every report of one ask.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallContext<'a> {
    pub(crate) config: &'a NodeConfig,
    /// When this leader began.
    pub(crate) since: Time,
    /// Nobody had been elected in its place before then, for certain.
    pub(crate) led: Time,
    /// No lease may be longer; nothing is granted if it is zero.
    pub(crate) longest: Longest,
    /// The resources of which a successor would find that more may be out than the marks say, if it found anything.
    pub(crate) says_unknown: Unknown,
    /// The longest leases of those that it would learn of.
    pub(crate) learnt_longest: Longest,
    /// The number for a session that begins now, never used before in this epoch.
    pub(crate) session: Incarnation,
    /// The connection that the call came on; absent: it is not known, or the call is none of a holder's.
    pub(crate) caller: Option<ConnectionMark>,
    /// For those who go by it: they ask without a stream.
    pub(crate) date: Date,
}
