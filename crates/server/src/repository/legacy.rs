//! The treatment of holders that draw no incarnation: Doorman's clients and servers.
//!
//! Doorman's Go client never lets its lease end while it reaches no server: it goes on with what it had. How that is met
//! is for the operator to say, resource by resource.

use std::time::Duration;

/// The treatment of holders that draw no incarnation.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Legacy {
    /// Their reports are refused.
    Deny,
    /// Capacity that they have counts until its lease has ended, as with everybody. A holder that is cut off and
    /// goes on regardless is outside the promise from then on.
    #[default]
    Expire,
    /// Capacity that they have counts until they are heard of again or give it back, and for `hold` at the longest.
    /// Their reports are refused below another node, whose lease would end before.
    Sticky {
        /// After so long without a word they are certainly dead. Not shorter than the lease.
        hold: Duration,
    },
}

/// The time for which capacity that Doorman's clients have counts under [`Legacy::Sticky`] if nothing else is
/// said.
pub const LEGACY_HOLD: Duration = Duration::from_secs(3_600);

// === impl Legacy ===

impl Legacy {
    /// The time for which a lease of `length` counts if nothing is heard of its holder.
    #[must_use]
    pub fn counted(self, length: Duration) -> Duration {
        match self {
            Legacy::Sticky { hold } => hold.max(length),
            Legacy::Deny | Legacy::Expire => length,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_sticky_lease_counts_for_longer_than_it_lasts() {
        let (minute, hour) = (Duration::from_secs(60), LEGACY_HOLD);
        assert_eq!(Legacy::Expire.counted(minute), minute);
        assert_eq!(Legacy::Sticky { hold: hour }.counted(minute), hour);
        assert_eq!(Legacy::Sticky { hold: hour }.counted(hour * 2), hour * 2);
    }
}
