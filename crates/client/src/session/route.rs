//! The route to a grantor: the configured servers in turn, or the leader that one of them names; and how long to wait
//! after trouble.

use std::sync::Arc;
use std::time::Duration;

use lessor_proto::message::Leader;
use lessor_proto::{BackOff, Time};

use super::spread::Spread;

/// Redirects followed in a row before giving up on the chain.
const MAX_HOPS: usize = 5;
/// The wait after the first failure, before it is spread.
const FIRST_BACK_OFF: Duration = Duration::from_millis(250);
/// The waits of a session: after failures, and after refusals.
pub(super) const BACK_OFF: BackOff = BackOff::new(FIRST_BACK_OFF, 16, 0.5);
/// The longest wait after a stream broke.
const SOON: Duration = Duration::from_millis(100);

/// The way to the leader.
#[derive(Clone, Debug)]
pub(super) struct Route {
    servers: Vec<Arc<str>>,
    /// Which of them is asked when no leader is known.
    turn: usize,
    /// The server that a redirect named.
    leader: Option<Arc<str>>,
    /// The servers that sent us on since somebody last served us.
    hops: Vec<Arc<str>>,
    /// Attempts in a row that nobody served.
    failures: u32,
    not_before: Time,
    spread: Spread,
}

// === impl Route ===

impl Route {
    pub(super) fn new(servers: Vec<Arc<str>>, spread: Spread) -> Route {
        assert!(!servers.is_empty(), "a session needs at least one server");
        Route {
            servers,
            turn: 0,
            leader: None,
            hops: Vec::new(),
            failures: 0,
            not_before: Time::ZERO,
            spread,
        }
    }

    /// The server to ask next.
    pub(super) fn target(&self) -> &Arc<str> {
        self.leader.as_ref().unwrap_or(&self.servers[self.turn])
    }

    /// When to ask at the earliest.
    pub(super) fn not_before(&self) -> Time {
        self.not_before
    }

    /// The one asked answered as a leader does.
    pub(super) fn served(&mut self) {
        self.failures = 0;
        self.hops.clear();
    }

    /// The one asked says "not I". Goes there at once, unless nobody is named or the redirects lead in a circle: then it
    /// says so.
    pub(super) fn redirected(&mut self, now: Time, to: &Leader, longest: Duration) -> Result<(), Astray> {
        let Some(address) = &to.address else {
            self.failed(now, longest);
            return Err(Astray::NoLeader);
        };
        self.hops.push(self.target().clone());
        if self.hops.iter().any(|hop| **hop == **address) || self.hops.len() > MAX_HOPS {
            self.failed(now, longest);
            return Err(Astray::Circle);
        }
        self.leader = Some(address.as_str().into());
        Ok(())
    }

    /// The stream to one that had served us for a while broke: the next in turn, or the one that named it, almost at once.
    pub(super) fn lost(&mut self, now: Time, attempt: u64) {
        self.turn_away();
        self.not_before = now + SOON.mul_f64(self.spread.fraction(attempt));
    }

    /// The one asked is right, but not ready.
    pub(super) fn wait(&mut self, until: Time) {
        self.not_before = until;
    }

    /// The one asked did not answer: the next in turn, after a wait that doubles with every round over the servers, up to
    /// `longest`, and is spread over its upper half.
    pub(super) fn failed(&mut self, now: Time, longest: Duration) {
        self.turn_away();
        let rounds = self.failures / u32::try_from(self.servers.len()).unwrap_or(u32::MAX);
        self.failures = self.failures.saturating_add(1);
        let draw = self.spread.fraction(self.failures.into());
        self.not_before = now + BACK_OFF.wait(rounds, longest, draw);
    }

    fn turn_away(&mut self) {
        self.hops.clear();
        if self.leader.take().is_none() {
            self.turn = (self.turn + 1) % self.servers.len();
        }
    }
}

/// Why a redirect was not followed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Astray {
    NoLeader,
    Circle,
}

#[cfg(test)]
mod tests {
    use lessor_proto::{ClientId, Incarnation};

    use super::*;

    const LONGEST: Duration = Duration::from_secs(5);

    fn route(servers: &[&str]) -> Route {
        let spread = Spread::new(&ClientId::new("c", 256).unwrap(), Incarnation(1));
        Route::new(servers.iter().map(|&server| server.into()).collect(), spread)
    }

    #[test]
    fn back_off_doubles_up_to_the_longest() {
        let mut route = route(&["a:1"]);
        let waits: Vec<_> = (0..8)
            .map(|_| {
                route.failed(Time::ZERO, LONGEST);
                route.not_before.since(Time::ZERO).as_secs_f64()
            })
            .collect();
        for (wait, longest) in waits.iter().zip([0.25, 0.5, 1.0, 2.0, 4.0, 5.0, 5.0, 5.0]) {
            assert!((longest / 2.0..=longest).contains(wait), "{waits:?}");
        }
    }

    #[test]
    fn a_broken_stream_is_replaced_almost_at_once() {
        let mut route = route(&["a:1", "b:1"]);
        let now = Time::ZERO + LONGEST;
        route.lost(now, 1);
        assert_eq!(&**route.target(), "b:1");
        assert!(route.not_before.since(now) < SOON);
        route.failed(now, LONGEST);
        assert!(route.not_before.since(now) >= FIRST_BACK_OFF / 2);
    }

    #[test]
    fn a_lost_leader_sends_us_back_to_the_server_that_knew_it() {
        let mut route = route(&["a:1", "b:1"]);
        route.redirected(Time::ZERO, &Leader::at("x:1"), LONGEST).unwrap();
        assert_eq!(&**route.target(), "x:1");
        route.failed(Time::ZERO, LONGEST);
        assert_eq!(&**route.target(), "a:1");
        route.failed(Time::ZERO, LONGEST);
        assert_eq!(&**route.target(), "b:1");
    }

    #[test]
    fn circles_and_endless_chains_end() {
        let mut circle = route(&["a:1"]);
        circle.redirected(Time::ZERO, &Leader::at("b:1"), LONGEST).unwrap();
        assert_eq!(circle.redirected(Time::ZERO, &Leader::at("a:1"), LONGEST), Err(Astray::Circle));
        let mut chain = route(&["a:1"]);
        let followed = (0..100)
            .take_while(|n| chain.redirected(Time::ZERO, &Leader::at(format!("hop-{n}:1")), LONGEST).is_ok());
        assert_eq!(followed.count(), MAX_HOPS);
    }
}
