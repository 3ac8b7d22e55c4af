//! Tenants, whose requests two of the clients serve: three who are modest, and one who is greedy now and then.
//!
//! All follow the same policy, which comes to the clients with their lease. So the greedy one may burst for a while and must
//! then rest, and the others never notice.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lessor_algorithms::tiers::{Contract, Tier, TierPolicy, Window};
use lessor_client::internals::clock;
use lessor_client::internals::domain::{Policies, Rules, Scope};
use lessor_client::snapshot::{Query, Row};
use lessor_client::{Bound, Rate};
use lessor_proto::Time;
use lessor_server::repository::Domains;
use tokio::task::JoinHandle;

use super::view;
use super::worker::{Request, TICK};

/// All tenants.
#[derive(Debug)]
pub(super) struct Tenants {
    each: Vec<TenantTally>,
    fronts: Vec<Rate>,
}

/// One, and what became of its requests.
#[derive(Debug)]
struct TenantTally {
    name: &'static str,
    tally: Arc<Tally>,
    task: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Tally {
    granted: AtomicU64,
    refused: AtomicU64,
}

/// The wants of a tenant, in parts of a client's equal share.
#[derive(Clone, Copy, Debug)]
struct Habit {
    name: &'static str,
    usual: f64,
    greedy: f64,
}

/// Whose hits count: with `Client`, all requests of a tenant come to the same client; with `Shared` to two in turn, which
/// tell each other by way of their leaf.
const SCOPE: Scope = Scope::Shared;
/// The one who is greedy now and then.
const GREEDY: &str = "greedy";
const HABITS: [Habit; 4] = [
    Habit { name: "ann", usual: 0.08, greedy: 0.08 },
    Habit { name: "bob", usual: 0.1, greedy: 0.1 },
    Habit { name: "cat", usual: 0.12, greedy: 0.12 },
    Habit { name: GREEDY, usual: 0.1, greedy: 0.6 },
];
/// For how long it is greedy, and for how long it is not, in turn.
const FEAST: Duration = Duration::from_secs(7);
const FAST: Duration = Duration::from_secs(4);
/// The capacity that is needed to serve them all, in parts of an equal share: a little more than they ever ask
/// for.
const WANTS: f64 = 0.95;

/// The number of clients of the first leaf that serve tenants, the first ones.
pub(super) fn fronts(clients: usize) -> usize {
    match SCOPE {
        Scope::Client => 1,
        Scope::Shared | Scope::Strict => clients.min(2),
    }
}

/// The wants of all of them together, where `fair` requests a second are everybody's equal share.
pub(super) fn wants(fair: f64) -> f64 {
    WANTS * fair
}

/// The policies that a template has for them: a fifth of an equal share, or for four seconds 0.7 of it, and
/// that not again for five.
pub(super) fn domains(fair: f64) -> anyhow::Result<Domains> {
    let tier = |share: f64, window: u64, active: u64, cooldown: u64| Tier {
        limit: (fair * share * window as f64).round().max(1.0) as u32,
        window: Duration::from_secs(window),
        active: Duration::from_secs(active),
        cooldown: Duration::from_secs(cooldown),
        is_skippable: false,
        kind: Window::Exact,
    };
    let policy = TierPolicy::new(vec![tier(0.2, 1, 1, 0), tier(0.7, 2, 4, 5)], None, None)?;
    let rules = Rules { scope: SCOPE, default: Some(Contract::from(policy)), ..Rules::default() };
    Ok(Domains { policies: Arc::new(Policies::new(rules)?), changes: Vec::new() })
}

// === impl Tenants ===

impl Tenants {
    /// They ask `fronts` in turn, where `fair` requests a second are everybody's equal share.
    pub(super) fn start(fronts: Vec<Rate>, target: SocketAddr, fair: f64) -> anyhow::Result<Tenants> {
        let request = Request::new(target)?;
        let tenant = |habit: Habit| {
            let tally = Arc::new(Tally::default());
            let task = tokio::spawn(live(habit, fair, fronts.clone(), request.clone(), Arc::clone(&tally)));
            TenantTally { name: habit.name, tally, task }
        };
        let each = HABITS.into_iter().map(tenant).collect();
        Ok(Tenants { each, fronts })
    }

    /// The number of clients that serve them.
    pub(super) fn fronts(&self) -> usize {
        self.fronts.len()
    }

    /// The state of each of them.
    pub(super) fn look(&self, now: Time) -> Vec<view::Tenant> {
        let query = Query::busiest(HABITS.len());
        let rows: Vec<Row> = self.fronts.iter().flat_map(|front| front.snapshot(&query).rows).collect();
        let seen = |tenant: &TenantTally| {
            let row = rows.iter().find(|row| row.domain == tenant.name);
            view::Tenant {
                name: tenant.name,
                tier: row.map_or(0, |row| row.tier),
                hits: row.map_or(0, |row| row.hits_in_tier),
                limit: row.map_or(0, |row| row.tier_limit),
                rests: row.and_then(|row| row.cooling_until).map(|until| until.since(now).as_secs_f64()),
                granted: tenant.tally.granted.load(Ordering::Relaxed),
                refused: tenant.tally.refused.load(Ordering::Relaxed),
            }
        };
        self.each.iter().map(seen).collect()
    }

    pub(super) fn end(self) {
        self.each.iter().for_each(|tenant| tenant.task.abort());
    }
}

/// The number of requests that were refused to the greedy one, and to all others together.
pub(super) fn refused(tenants: &[view::Tenant]) -> (u64, u64) {
    let of = |is_greedy| {
        let those = tenants.iter().filter(|tenant| (tenant.name == GREEDY) == is_greedy);
        those.map(|tenant| tenant.refused).sum()
    };
    (of(true), of(false))
}

/// Asks as often as it likes.
async fn live(habit: Habit, fair: f64, fronts: Vec<Rate>, request: Request, tally: Arc<Tally>) {
    let mut timer = tokio::time::interval(TICK);
    // It opens when there is something to be had.
    let enough = 0.99 * wants(fair) / fronts.len() as f64;
    let is_open = |front: &Rate| front.lease().capacity.is_none_or(|capacity| capacity.as_f64() >= enough);
    while !fronts.iter().all(is_open) {
        timer.tick().await;
    }
    let start = clock::now();
    let (mut due, mut last, mut next) = (0.0, start, fronts.iter().cycle());
    loop {
        timer.tick().await;
        let now = clock::now();
        let rate = fair * habit.at(now.since(start));
        // What could not be asked while the machine did other things is not made up for.
        due += rate * now.since(last).min(2 * TICK).as_secs_f64();
        last = now;
        while due >= 1.0
            && let Some(front) = next.next()
        {
            due -= 1.0;
            tokio::spawn(ask(front.clone(), habit.name, request.clone(), Arc::clone(&tally)));
        }
    }
}

async fn ask(front: Rate, name: &'static str, request: Request, tally: Arc<Tally>) {
    if is_granted(&front, name).await {
        tally.granted.fetch_add(1, Ordering::Relaxed);
        request.send().await;
    } else {
        tally.refused.fetch_add(1, Ordering::Relaxed);
    }
}

/// Whether a request is granted: one that the tenant may not make is refused at once, one that the lease has no
/// room for yet may wait a little.
async fn is_granted(front: &Rate, name: &str) -> bool {
    let domain = front.domain(name);
    match domain.try_acquire(1) {
        Ok(_) => true,
        Err(denied) if denied.decision().is_none_or(|decision| decision.bound == Some(Bound::Lease)) => {
            domain.acquire(1).await.is_ok()
        }
        Err(_) => false,
    }
}

// === impl Habit ===

impl Habit {
    /// The wants at the time `since` the beginning.
    fn at(&self, since: Duration) -> f64 {
        let phase = since.as_secs_f64() % (FEAST + FAST).as_secs_f64();
        if phase < FEAST.as_secs_f64() { self.greedy } else { self.usual }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_serves_them_has_enough_for_all() {
        let most: f64 = HABITS.iter().map(|habit| habit.usual.max(habit.greedy)).sum();
        assert!(most < WANTS && WANTS <= 1.0, "{most}");
    }

    #[test]
    fn the_greedy_one_feasts_and_fasts() {
        let greedy = HABITS[3];
        let feasts = |second| greedy.at(Duration::from_secs(second)) > greedy.usual;
        assert_eq!([0, 6, 7, 10, 11, 18].map(feasts), [true, true, false, false, true, false]);
    }

    /// With a share of 40 a second.
    #[test]
    fn only_the_greedy_one_asks_for_more_than_its_first_tier_has() {
        let domains = domains(40.0).unwrap();
        let contract = match domains.policies.rule("ann") {
            lessor_client::internals::domain::Rule::Contract(contract) => contract,
            other => panic!("{other:?}"),
        };
        let limits: Vec<u32> = contract.policies()[0].tiers().iter().map(|tier| tier.limit).collect();
        assert_eq!(limits, [8, 56]);
        let modest = HABITS.iter().filter(|habit| habit.name != GREEDY);
        assert!(modest.clone().all(|habit| 40.0 * habit.greedy < f64::from(limits[0])));
        // Who has burst is not refused before it must rest.
        assert!(
            2.0 * 40.0 * HABITS[3].greedy < f64::from(limits[1])
                && 40.0 * HABITS[3].greedy > f64::from(limits[0])
        );
    }
}
