//! Which client the next request reaches, and when.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use lessor_proto::Time;

use super::TenantsRun;
use crate::rng::Rng;

/// For how long a tenant is busy, and then quiet, on average.
const BUSY: Duration = Duration::from_secs(40);
const QUIET: Duration = Duration::from_secs(20);
/// The time for which moving traffic stays with one client.
const STAY: Duration = Duration::from_secs(7);

/// The way in which a domain's requests are spread over clients.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TenantsTraffic {
    /// Each reaches any of them.
    Uniform,
    /// Nine of ten reach the first one.
    Skewed,
    /// Nine of ten reach one of them, and after seven seconds the next.
    Moving,
}

/// The name of no pattern.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("traffic {0:?} is not one of uniform, skewed, moving")]
pub struct UnknownTraffic(String);

/// Requests to come.
#[derive(Debug)]
pub(super) struct Arrivals {
    traffic: TenantsTraffic,
    clients: usize,
    mean: Duration,
    begin: Time,
    end: Time,
    next: Time,
    /// Until when the tenant is busy.
    busy_until: Time,
    client: usize,
}

// === impl TenantsTraffic ===

impl TenantsTraffic {
    /// All of them.
    pub const ALL: [TenantsTraffic; 3] =
        [TenantsTraffic::Uniform, TenantsTraffic::Skewed, TenantsTraffic::Moving];
}

impl fmt::Display for TenantsTraffic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            TenantsTraffic::Uniform => "uniform",
            TenantsTraffic::Skewed => "skewed",
            TenantsTraffic::Moving => "moving",
        })
    }
}

impl FromStr for TenantsTraffic {
    type Err = UnknownTraffic;

    fn from_str(name: &str) -> Result<TenantsTraffic, UnknownTraffic> {
        let found = TenantsTraffic::ALL.into_iter().find(|traffic| traffic.to_string() == name);
        found.ok_or_else(|| UnknownTraffic(name.to_owned()))
    }
}

// === impl Arrivals ===

impl Arrivals {
    pub(super) fn new(run: &TenantsRun, begin: Time, end: Time, rng: &mut Rng) -> Arrivals {
        Arrivals {
            traffic: run.traffic,
            clients: run.clients,
            mean: Duration::from_secs_f64(1.0 / run.rate),
            begin,
            end,
            next: begin,
            busy_until: begin + rng.exponential(BUSY),
            client: 0,
        }
    }

    /// When the next one comes; nothing if there are no more.
    pub(super) fn next(&mut self, rng: &mut Rng) -> Option<Time> {
        self.next += rng.exponential(self.mean);
        while self.next > self.busy_until {
            self.next = self.next.max(self.busy_until + rng.exponential(QUIET));
            self.busy_until = self.next + rng.exponential(BUSY);
        }
        if self.next >= self.end {
            return None;
        }
        let any = rng.index(self.clients);
        let stays = self.next.since(self.begin).as_secs() / STAY.as_secs();
        let usual = match self.traffic {
            TenantsTraffic::Uniform => any,
            TenantsTraffic::Skewed => 0,
            TenantsTraffic::Moving => (stays % self.clients as u64) as usize,
        };
        self.client = if rng.chance(900) { usual } else { any };
        Some(self.next)
    }

    /// The client that the request drawn last reaches.
    pub(super) fn client(&self) -> usize {
        self.client
    }
}
