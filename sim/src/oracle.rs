//! The oracle: it knows everything, and looks after every event whether a rule is broken.
//!
//! The rules are the invariants of section 13 of the protocol, by their numbers. The first is the promise itself: what
//! all clients together believe they may use never passes what there is. The others fail earlier, and closer to the
//! mistake.

mod authority;
mod beliefs;
mod beside;
mod books;
mod calm;
mod domains;
mod edges;
mod entries;
mod facts;
mod frozen;
mod hits;
mod kinds;
mod limit;
mod rights;
mod shared;
mod units;
mod violation;
mod windows;

use lessor_proto::Time;
use lessor_proto::message::Order;

use crate::clock::Clock;
use crate::plan::{Scrutiny, SitePlan};
use crate::resource::Resource;
use crate::site::Site;

use self::books::Seen;
pub use self::calm::Target;
use self::domains::Made;
pub(crate) use self::facts::Facts;
use self::hits::Flow;
use self::kinds::Counted;
use self::limit::Limit;
use self::shared::DomainJudge;
pub use self::violation::{Rule, Violation};
use self::windows::UsesMade;

/// The memory of the oracle.
#[derive(Debug)]
pub(crate) struct Oracle {
    resources: usize,
    sums: BeliefSums,
    limits: Vec<Limit>,
    flows: Vec<Flow>,
    kinds: Vec<Counted>,
    /// The hits of domains that have leases.
    made: Vec<Made>,
    /// The uses of limits on windows.
    windows: Vec<UsesMade>,
    /// The state of each task and resource when they were last seen.
    seen: Vec<Seen>,
    /// The judge of the domain that clients share, if they do.
    judge: Option<Box<DomainJudge>>,
    /// The grants in the message that is being taken in.
    pub(crate) delivery: Vec<Delivery>,
    broken: Option<(Rule, String)>,
    pub(crate) touched: Touched,
}

/// The sums of what clients believe they hold, in millionths.
#[derive(Debug)]
struct BeliefSums {
    /// For each resource.
    totals: Vec<u128>,
    /// The same of those below each site: by site, then by resource.
    below: Vec<u128>,
    until_recount: u32,
}

/// The tasks and sites that an event has touched.
#[derive(Default, Debug)]
pub(crate) struct Touched {
    /// Tasks whose nodes acted.
    acted: Vec<u32>,
    /// Sites whose clients believe something else.
    stirred: Vec<u32>,
    /// Sites where something may have become of a candidate.
    pub(crate) voted: Vec<u32>,
    /// Whether the event is one of servers alone, which changes nothing of what clients believe.
    pub(crate) is_of_servers: bool,
}

/// A grant in the message that is being taken in, or that everything is renewed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delivery {
    /// Which resource; absent: all of them.
    resource: Option<u16>,
    order: Option<Order>,
    micros: u64,
}

// === impl Oracle ===

impl Oracle {
    pub(crate) fn new(resources: usize, sites: &[SitePlan]) -> Oracle {
        let tasks: usize = sites.iter().map(|site| usize::from(site.tasks)).sum();
        Oracle {
            resources,
            sums: BeliefSums {
                totals: vec![0; resources],
                below: vec![0; resources * sites.len()],
                until_recount: 0,
            },
            limits: vec![Limit::default(); resources],
            flows: vec![Flow::default(); resources],
            kinds: Vec::new(),
            made: vec![Made::default(); resources],
            windows: vec![UsesMade::default(); resources],
            seen: std::iter::repeat_with(Seen::default).take(resources * tasks).collect(),
            judge: None,
            delivery: Vec::new(),
            broken: None,
            touched: Touched::default(),
        }
    }

    /// There is so much at the beginning.
    pub(crate) fn begin(&mut self, _now: Time, resources: &[Resource]) {
        for (limit, resource) in self.limits.iter_mut().zip(resources) {
            limit.first = resource.capacity.as_micros();
            limit.now = limit.first;
        }
        self.kinds = resources.iter().map(|resource| Counted::new(resource.kind)).collect();
    }

    pub(crate) fn total(&self, resource: u16) -> u128 {
        self.sums.totals[usize::from(resource)]
    }

    pub(crate) fn first_capacity(&self, resource: usize) -> u64 {
        self.limits[resource].first
    }

    /// The amount that there is of a resource.
    pub(crate) fn limit_of(&self, resource: usize) -> u64 {
        self.limits[resource].now
    }

    /// There is so much of a resource from here on.
    pub(crate) fn limit(&mut self, resource: usize, capacity: u64, patience: Time, succession: bool) {
        self.limits[resource].set(capacity, patience, succession);
    }

    pub(crate) fn fail(&mut self, rule: u8, what: impl FnOnce() -> String) {
        if self.broken.is_none() {
            self.broken = Some((Rule(rule), what()));
        }
    }

    /// Notes a breach, if there is one.
    fn fail_with(&mut self, rule: u8, breach: Option<String>) {
        if let Some(what) = breach {
            self.fail(rule, || what);
        }
    }

    pub(crate) fn dethrone(&mut self, task: u32, clock: Clock) {
        let first = task as usize * self.resources;
        self.seen[first..first + self.resources].iter_mut().for_each(|seen| seen.dethrone(clock));
    }

    /// Notes that a client at a site uses so much of a resource in place of what it did `before`.
    pub(crate) fn count(&mut self, sites: &[Site], site: u32, resource: u16, (before, counted): (u64, u64)) {
        let swap = |sum: &mut u128| *sum = *sum + u128::from(counted) - u128::from(before);
        swap(&mut self.sums.totals[usize::from(resource)]);
        let way = std::iter::successors(Some(site), |&site| sites[site as usize].kin.parent);
        for site in way {
            let index = self.at(site, resource);
            swap(&mut self.sums.below[index]);
        }
        self.touched.stirred.push(site);
    }

    /// The number of something that is kept for each site, or each task, and each resource.
    fn at(&self, owner: u32, resource: u16) -> usize {
        owner as usize * self.resources + usize::from(resource)
    }
}

// === impl Oracle ===

impl Oracle {
    /// Looks at what an event has changed. Whether it is time to look at everything, which is done site by site.
    pub(crate) fn look(&mut self, facts: &Facts<'_>) -> bool {
        self.check_sums(facts);
        for site in std::mem::take(&mut self.touched.voted) {
            self.check_authority(facts, site);
        }
        match facts.rules.watch {
            Scrutiny::Close => {
                self.check_touched(facts);
                false
            }
            Scrutiny::Loose(every) => {
                self.sums.until_recount += 1;
                let is_time = self.sums.until_recount >= every;
                self.sums.until_recount *= u32::from(!is_time);
                is_time
            }
        }
    }

    /// The first breach since it was asked last, when all has been looked at that an event has touched.
    pub(crate) fn verdict(&mut self) -> Option<(Rule, String)> {
        self.touched.acted.clear();
        self.touched.stirred.clear();
        self.broken.take()
    }

    /// The promise: all beliefs together are within what there is.
    fn check_sums(&mut self, facts: &Facts<'_>) {
        let now = facts.now;
        let Oracle { sums: BeliefSums { totals, .. }, limits, kinds, broken, .. } = self;
        for (index, (total, limit)) in totals.iter().zip(limits).enumerate() {
            if kinds[index].has_units() && *total > u128::from(limit.now) {
                // Units that were recalled may be used as long as their lease is renewed; nothing is granted meanwhile (I5).
                limit.linger(now);
            }
            let bounded = facts.resources[index].policy.is_bounded();
            if bounded && *total > u128::from(limit.now) && *total > u128::from(limit.at(now)) {
                let most = limit.at(now);
                let what = format!("clients believe {total} of {most} millionths of r{index}");
                broken.get_or_insert((Rule(1), what));
            }
        }
    }

    /// The sites that an event has touched, and what they compare with.
    fn check_touched(&mut self, facts: &Facts<'_>) {
        if !self.touched.is_of_servers {
            self.recount_all(facts);
        }
        self.check_kinds(facts);
        let acted = std::mem::take(&mut self.touched.acted);
        for &task in &acted {
            let site = facts.tasks[task as usize].site;
            (0..facts.resources.len() as u16)
                .for_each(|resource| self.check_node(facts, task, resource, true));
            self.check_authority(facts, site);
            // Its holders' leases are compared with the books of their grantor.
            let children = facts.sites[site as usize].kin.children.clone();
            for child in children {
                (0..facts.resources.len() as u16)
                    .for_each(|resource| self.check_edge(facts, child, resource));
            }
            (0..facts.resources.len() as u16).for_each(|resource| self.check_edge(facts, site, resource));
        }
        self.touched.acted = acted;
        let mut stirred = std::mem::take(&mut self.touched.stirred);
        stirred.sort_unstable();
        stirred.dedup();
        for &site in &stirred {
            let mut at = Some(site);
            while let Some(site) = at {
                self.check_site(facts, site);
                at = facts.sites[site as usize].kin.parent;
            }
        }
        self.touched.stirred = stirred;
    }

    pub(crate) fn check_site(&mut self, facts: &Facts<'_>, site: u32) {
        for resource in 0..facts.resources.len() as u16 {
            for task in facts.sites[site as usize].tasks.clone() {
                self.check_node(facts, task, resource, false);
            }
            self.check_edge(facts, site, resource);
        }
    }
}
