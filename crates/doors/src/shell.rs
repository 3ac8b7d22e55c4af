//! The body of doors: the client that holds the leases, the services that proxies and programs call, and the rules in force.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use lessor_client::Client;
use lessor_client::internals::clock;
use lessor_proto::Time;

use self::ends::UnbegunEnds;
use self::figures::{DoorKind, Figures};
use self::in_force::InForce;
use self::newcomers::{Greedy, NewKeys, Unleased};
use self::peer::PeerAddress;
use crate::claim::{Call, CallAnswer};
use crate::grant::{GrantKey, Seal, SettledGrants};
use crate::rls::Bounds;
use crate::rules::RuleBook;

mod address;
mod connection;
mod conversation;
mod ends;
mod figures;
mod http;
mod in_force;
mod leases;
mod listen;
mod listener;
mod newcomers;
mod peer;
mod pool;
mod program;
mod readiness;
mod rls;
mod sockets;
mod status;
mod tls;

pub use self::address::{BadAddress, DoorAddress};
pub use self::in_force::KeyBounds;
pub use self::listen::{ListenFault, Listening};
pub use self::sockets::{HandedSocket, Sockets};
pub use self::status::{Reach, UsedWindows};
pub use self::tls::{DoorTls, DoorTlsOptions};

/// The doors of one process: one client, and so one lease for each resource, for all that is asked through any of them.
#[derive(Debug)]
pub struct Doors {
    client: Client,
    in_force: ArcSwap<InForce>,
    figures: Arc<Figures>,
    bounds: Bounds,
    keys: KeyBounds,
    new_keys: NewKeys,
    grants: Grants,
    ends: UnbegunEnds,
    /// The way to the servers.
    reach: ArcSwap<Reach>,
}

/// The circumstances in which a call is asked.
#[derive(Clone, Copy, Debug)]
struct Asked {
    door: DoorKind,
    /// The time for which the caller waits, as far as it says so.
    timeout: Option<Duration>,
    peer: PeerAddress,
}

/// The grants of this process.
#[derive(Debug)]
struct Grants {
    key: GrantKey,
    settled: Mutex<SettledGrants>,
}

// === impl Doors ===

impl Doors {
    /// Doors with these rules, over the leases of `client`.
    #[must_use]
    pub fn new(client: Client, book: RuleBook) -> Doors {
        Doors::bounded(client, book, KeyBounds::default())
    }

    /// The same with other bounds on keys.
    #[must_use]
    pub fn bounded(client: Client, book: RuleBook, keys: KeyBounds) -> Doors {
        let figures = Arc::new(Figures::default());
        let in_force = ArcSwap::from_pointee(InForce::new(&client, book, &figures, keys));
        let (grants, ends, reach) = (Grants::new(), UnbegunEnds::default(), ArcSwap::default());
        let new_keys = NewKeys::new(keys.new_a_second);
        Doors { client, in_force, figures, bounds: Bounds::default(), keys, new_keys, grants, ends, reach }
    }

    /// Puts other rules in force. What is leased for limits that are in both stays.
    pub fn replace(&self, book: RuleBook) {
        self.in_force.store(Arc::new(InForce::new(&self.client, book, &self.figures, self.keys)));
    }

    /// The version of the rules in force.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.in_force.load().book().version
    }

    /// Counts a reading of the rules that gave none.
    pub fn reload_failed(&self) {
        self.figures.loaded(false);
    }

    /// The figures of it, as Prometheus reads them.
    #[must_use]
    pub fn metrics(&self) -> String {
        self.figures.page()
    }

    /// The client whose leases these are.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The longest wait for a call whose caller waits for `timeout`.
    fn wait(rules: &InForce, timeout: Option<Duration>) -> Duration {
        let wait = rules.book().wait;
        timeout.map_or(wait, |timeout| wait.min(timeout / 2))
    }

    async fn decide(&self, rules: &InForce, call: &Call<'_>, asked: Asked) -> (CallAnswer, Option<Greedy>) {
        // A key that has units at hand is not new, and its answer takes no time that a clock would tell.
        let (answer, greedy, took) = match call.at_once(rules) {
            Some(answer) => (answer, None, Duration::ZERO),
            // What may wait is large, and would be carried along by all that does not.
            None => Box::pin(self.decide_in_time(rules, call, asked)).await,
        };
        self.figures.answered(asked.door, rules.answers(call.set), &answer, took);
        rules.count(call, &answer);
        (answer, greedy)
    }

    /// Decides a call whose hits do not lie at hand, and says how long that took.
    async fn decide_in_time(
        &self,
        rules: &InForce,
        call: &Call<'_>,
        asked: Asked,
    ) -> (CallAnswer, Option<Greedy>, Duration) {
        let began = clock::now();
        let (answer, greedy) = match self.new_keys.admit(asked.peer, rules, call, began) {
            Ok(()) => (call.decide(rules, Doors::wait(rules, asked.timeout)).await, None),
            Err(greedy) => (call.decide(&Unleased, Duration::ZERO).await, Some(greedy)),
        };
        (answer, greedy, clock::now().since(began))
    }
}

// === impl Grants ===

impl Grants {
    /// Grants under a key that is drawn.
    fn new() -> Grants {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).expect("the system has random bytes");
        Grants { key: GrantKey::new(bytes), settled: Mutex::default() }
    }

    /// Whether a grant is settled for the first time.
    fn is_first(&self, seal: Seal, now: Time) -> bool {
        self.settled.lock().unwrap_or_else(PoisonError::into_inner).settle(seal, now)
    }
}
