//! The configuration of a candidate.

use std::time::Duration;

use lessor_proto::Drift;

use super::mutation::ElectionRules;

/// The configuration of a candidate. [`super::Candidate::new`] checks it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ElectionConfig {
    /// With what all keys begin.
    pub prefix: String,
    /// The name of the node, the same for all its tasks.
    pub node: String,
    /// Where clients reach this task, `host:port`.
    pub address: String,
    /// The time for which etcd is asked to keep the key of a leader of which it hears nothing. Whole seconds.
    pub ttl: Duration,
    /// For how long a leader may act of which etcd has heard, counted from before it spoke.
    pub authority: Duration,
    /// The interval at which a leader speaks to etcd.
    pub keep_alive: Duration,
    /// The time within which etcd has to answer.
    pub call_timeout: Duration,
    /// The bound on the error of clocks, that of etcd among them.
    pub drift: Drift,
    /// Whether there is a node above. What leaders before one have left may be over sooner there than the record says, so it is
    /// not written when they had stopped.
    pub has_parent: bool,
    /// Which life of the task this is: a random number.
    pub nonce: u64,
    /// The date, in milliseconds, as it was told last; see [`Candidate::set_date`](super::Candidate::set_date).
    pub date: u64,
    /// All of them, except where a test shows what each is for.
    pub rules: ElectionRules,
}

/// Why a candidate cannot be set up like this.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadConfig {
    /// A text is empty or would not survive.
    #[error("{field} {found:?} must be some text without control characters")]
    Text {
        /// Of the configuration.
        field: &'static str,
        /// Its value.
        found: String,
    },
    /// The lease at etcd must outlast the authority on any two clocks.
    #[error("authority {authority:?} needs a lease of {needed:?} or more at etcd, ttl is {ttl:?}")]
    Authority {
        /// The authority.
        authority: Duration,
        /// The length that a lease must have for it.
        needed: Duration,
        /// The length that it is to have.
        ttl: Duration,
    },
    /// Etcd counts in seconds.
    #[error("ttl {0:?} must be whole seconds, at least one")]
    Ttl(Duration),
    /// A duration must leave time for another try.
    #[error("{field} {found:?} must be more than nothing and at most half of authority {authority:?}")]
    Pace {
        /// Of the configuration.
        field: &'static str,
        /// Its value.
        found: Duration,
        /// The authority.
        authority: Duration,
    },
}

// === impl ElectionConfig ===

impl ElectionConfig {
    /// A task of `node` at `address`, in life `nonce`: 10 s at etcd, of which 4 s with authority, spoken for each second.
    #[must_use]
    pub fn new(node: impl Into<String>, address: impl Into<String>, nonce: u64) -> ElectionConfig {
        ElectionConfig {
            prefix: "lessor".to_owned(),
            node: node.into(),
            address: address.into(),
            ttl: Duration::from_secs(10),
            authority: Duration::from_secs(4),
            keep_alive: Duration::from_secs(1),
            call_timeout: Duration::from_secs(1),
            drift: Drift::DEFAULT,
            has_parent: false,
            nonce,
            date: 0,
            rules: ElectionRules::default(),
        }
    }

    /// The length that a lease at etcd must have so that nobody else leads while this task has authority: it counts
    /// on a slow clock, and etcd on a fast one.
    #[must_use]
    pub fn needed_ttl(&self) -> Duration {
        self.drift.stretch(self.authority)
    }

    /// The longest wait between two tries.
    pub(super) fn longest_wait(&self) -> Duration {
        self.ttl / 2
    }

    pub(super) fn check(&self) -> Result<(), BadConfig> {
        for (field, found) in [("prefix", &self.prefix), ("node", &self.node), ("address", &self.address)] {
            if found.is_empty() || found.chars().any(char::is_control) {
                return Err(BadConfig::Text { field, found: found.clone() });
            }
        }
        if self.ttl.is_zero() || self.ttl.subsec_nanos() != 0 {
            return Err(BadConfig::Ttl(self.ttl));
        }
        let (authority, needed, ttl) = (self.authority, self.needed_ttl(), self.ttl);
        if needed > ttl {
            return Err(BadConfig::Authority { authority, needed, ttl });
        }
        for (field, found) in [("keep_alive", self.keep_alive), ("call_timeout", self.call_timeout)] {
            if found.is_zero() || found > authority / 2 {
                return Err(BadConfig::Pace { field, found, authority });
            }
        }
        Ok(())
    }
}
