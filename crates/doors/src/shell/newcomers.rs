//! New keys: so many a second from one peer, so that a program that asks for ever new ones takes no places of others.
//!
//! A peer is an address, or the user at the other end of a socket of the file system. Keys that are known cost nothing here.

use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use lessor_proto::Time;
use smallvec::{SmallVec, smallvec};

use super::in_force::{InForce, Opened};
use super::peer::PeerAddress;
use crate::claim::{Ask, Call, Leases, Mode, Standing, Verdict};
use crate::rules::Limit;

/// The new keys that peers may still ask for.
#[derive(Debug)]
pub(super) struct NewKeys {
    /// The keys of a second; absent: any number.
    rate: Option<u32>,
    peers: Mutex<HashMap<PeerAddress, KeyBudget, FixedState>>,
}

/// The keys that a peer may still ask for, as they were at a time.
#[derive(Clone, Copy, Debug)]
struct KeyBudget {
    left: f64,
    at: Time,
}

/// A peer that asks for too many new keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Greedy {
    peer: PeerAddress,
    rate: u32,
}

/// Leases of which nothing is there.
pub(super) struct Unleased;

/// The seconds of its rate that a peer may ask for at once, as when a proxy begins.
const AT_ONCE: f64 = 10.0;
/// The peers that are remembered. Those that have asked for nothing for a while are forgotten first.
const PEERS: usize = 4_096;

// === impl NewKeys ===

impl NewKeys {
    pub(super) fn new(rate: Option<u32>) -> NewKeys {
        NewKeys { rate, peers: Mutex::default() }
    }

    /// Lets a call of `peer` ask for its keys.
    ///
    /// # Errors
    /// When there are more new ones than it may ask for. They are not taken off then.
    pub(super) fn admit(
        &self,
        peer: PeerAddress,
        rules: &InForce,
        call: &Call<'_>,
        now: Time,
    ) -> Result<(), Greedy> {
        let Some(rate) = self.rate else { return Ok(()) };
        match rules.new_keys(call) {
            0 => Ok(()),
            keys if self.take(peer, keys, now) => Ok(()),
            _ => Err(Greedy { peer, rate }),
        }
    }

    /// Takes so many keys off the budget of a peer, or none.
    fn take(&self, peer: PeerAddress, keys: u32, now: Time) -> bool {
        let rate = f64::from(self.rate.unwrap_or(u32::MAX));
        let most = rate * AT_ONCE;
        let left = |budget: &KeyBudget| (budget.left + now.since(budget.at).as_secs_f64() * rate).min(most);
        let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        if peers.len() >= PEERS && !peers.contains_key(&peer) {
            peers.retain(|_, budget| left(budget) < most);
            if peers.len() >= PEERS {
                return false;
            }
        }
        let budget = peers.entry(peer).or_insert(KeyBudget { left: most, at: now });
        let there = left(budget);
        let is_enough = there >= f64::from(keys);
        *budget = KeyBudget { left: if is_enough { there - f64::from(keys) } else { there }, at: now };
        is_enough
    }
}

// === impl Greedy ===

impl fmt::Display for Greedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.peer {
            PeerAddress { address: Some(address), .. } => address.fmt(f)?,
            PeerAddress { user: Some(user), .. } => write!(f, "user {user}")?,
            PeerAddress { .. } => f.write_str("a socket")?,
        }
        write!(f, " asks for more new keys than {} a second", self.rate)
    }
}

// === impl InForce ===

impl InForce {
    /// The number of keys in a call that are not remembered yet.
    fn new_keys(&self, call: &Call<'_>) -> u32 {
        let takes = |mode| !matches!(mode, Mode::Look | Mode::GiveBack);
        let exact = call.claims.iter().filter(|claim| takes(claim.mode) && claim.limit.kind.is_of_windows());
        let new = exact.filter(|claim| match self.opened(claim.limit) {
            Some(Opened::Windows(windows)) => !windows.knows(&claim.key),
            Some(Opened::Rate(_)) | None => false,
        });
        u32::try_from(new.count()).unwrap_or(u32::MAX)
    }
}

// === impl Unleased ===

impl Leases for Unleased {
    async fn take(&self, asks: &[Ask<'_>], _: Duration) -> Result<(), SmallVec<[Verdict; 4]>> {
        Err(smallvec![Verdict::NoLease { retry_after: Some(Duration::from_secs(1)) }; asks.len()])
    }

    fn take_at_hand(&self, _: &Ask<'_>) -> Option<Standing> {
        None
    }

    fn give_back(&self, _: &Ask<'_>) {}

    fn charge(&self, _: &Ask<'_>) {}

    fn standing(&self, limit: &Limit, _: &str) -> Standing {
        Standing { remaining: limit.units, reset: limit.window.length() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_has_a_budget_of_its_own_that_comes_back() {
        let keys = NewKeys::new(Some(10));
        let user = |user| PeerAddress { user: Some(user), ..PeerAddress::default() };
        let at = |milliseconds| Time::ZERO + Duration::from_millis(milliseconds);
        assert!(keys.take(user(1), 100, at(0)) && !keys.take(user(1), 1, at(0)));
        assert!(keys.take(user(2), 1, at(0)), "another's");
        assert!(!keys.take(user(1), 2, at(100)) && keys.take(user(1), 1, at(100)));
        assert!(keys.take(user(1), 100, at(60_000)) && !keys.take(user(1), 1, at(60_000)));
        let said = Greedy { peer: user(7), rate: 10 }.to_string();
        assert_eq!(said, "user 7 asks for more new keys than 10 a second");
    }

    #[test]
    fn peers_are_forgotten_when_they_have_all_again() {
        let keys = NewKeys::new(Some(1));
        let peer = |number: u32| PeerAddress::at(std::net::Ipv4Addr::from(number).into());
        for number in 0..u32::try_from(PEERS).unwrap() {
            assert!(keys.take(peer(number), 1, Time::ZERO));
        }
        assert!(!keys.take(peer(u32::MAX), 1, Time::ZERO), "nobody is forgotten who has asked just now");
        assert!(keys.take(peer(u32::MAX), 1, Time::ZERO + Duration::from_secs(2)));
        assert_eq!(keys.peers.lock().unwrap().len(), 1);
    }
}
