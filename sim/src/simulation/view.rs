//! The questions that one may ask a simulation.

use std::sync::Arc;
use std::time::Duration;

use lessor_proto::{Amount, Time};

use super::{Counts, Simulation};
use crate::actor::Actor;
use crate::faults::Tally;
use crate::trace::Speaker;

// === impl Simulation ===

impl Simulation {
    /// The amount that all clients that live want of a resource.
    #[must_use]
    pub fn total_wants(&self, resource: u16) -> f64 {
        self.targets(resource).iter().map(|target| target.wants).sum()
    }

    /// The longest lease that any leader was told to grant.
    #[must_use]
    pub fn longest_lease(&self) -> Duration {
        self.tree.sites.iter().map(|site| site.lengths.longest_lease).max().unwrap_or_default()
    }

    /// Whether a site has a leader that may act.
    #[must_use]
    pub fn is_led(&self, site: u32) -> bool {
        self.leading_task(site).is_some()
    }

    /// Which of its tasks leads a site: the last that was elected, if it may act.
    #[must_use]
    pub fn leading_task(&self, site: u32) -> Option<u8> {
        let head = &self.tree.tasks[self.tree.sites[site as usize].head? as usize];
        head.acts(self.now).then_some(head.number)
    }

    /// The number of tasks of a site that may act: more than one only if another was deposed by hand.
    #[must_use]
    pub fn acting(&self, site: u32) -> usize {
        self.facts().acting(site)
    }

    /// The leaders that the tasks of a site that do not lead name when they are asked who does.
    #[must_use]
    pub fn named(&self, site: u32) -> Vec<Option<String>> {
        self.facts().named(site)
    }

    /// The number of times that the leaders of a site had something written.
    #[must_use]
    pub fn mark_writes(&self, site: u32) -> u64 {
        self.tree.sites[site as usize].figures.writes
    }

    /// The number of sites.
    #[must_use]
    pub fn sites(&self) -> usize {
        self.tree.sites.len()
    }

    /// The number of grants that the leaders of a site made on streams.
    #[must_use]
    pub fn grants(&self, site: u32) -> u64 {
        self.tree.sites[site as usize].figures.grants
    }

    pub(crate) fn addresses_of(&self, site: u32) -> Vec<Arc<str>> {
        self.tree.addresses_of(site)
    }

    /// The current time.
    #[must_use]
    pub fn now(&self) -> Time {
        self.now
    }

    /// The number of clients, with twins.
    #[must_use]
    pub fn clients(&self) -> usize {
        self.population.clients.len()
    }

    /// Of everything that has happened.
    #[must_use]
    pub fn hash(&self) -> u64 {
        self.trace.hash()
    }

    /// The number of events.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.progress.events()
    }

    /// The counts of what was sent.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let judged = self.oracle.domain_counts();
        Counts {
            domain_hits: judged.hits,
            domain_hits_known: judged.known,
            domain_refusals: judged.refusals,
            domain_hits_learnt: judged.learnt,
            ..self.progress.counts
        }
    }

    /// The number of times that each fault happened.
    #[must_use]
    pub fn tally(&self) -> &Tally {
        &self.progress.tally
    }

    /// The last things that happened, one a line.
    #[must_use]
    pub fn trace(&self) -> String {
        self.trace.tell(|who| match who {
            Speaker::Simulation => "simulation".to_owned(),
            Speaker::Client(index) => {
                let client = &self.population.clients[index as usize];
                format!("{}({index})", client.id)
            }
            Speaker::Task(index) => self.tree.tasks[index as usize].address.to_string(),
            Speaker::Site(index) => self.tree.sites[index as usize].name.to_string(),
        })
    }

    /// Keeps so many lines of the trace from here on.
    pub(crate) fn keep_trace(&mut self, lines: usize) {
        self.trace.keep(lines);
    }

    /// The amount that `client` believes it may use of everything it asks for.
    #[must_use]
    pub fn believed(&self, client: u32) -> Amount {
        Amount::from_micros(self.population.holdings_of(client).map(|holding| holding.sums.counted).sum())
    }

    /// Units that are in use by the programs of `client`, under permits that have not ended.
    #[must_use]
    pub fn in_use(&self, client: u32) -> Amount {
        let local = self.local(Actor::Client(client));
        let holdings = self.population.holdings_of(client);
        Amount::from_micros(holdings.map(|holding| holding.in_use_at(local)).sum())
    }

    /// The amount that the leases of `client` give it, if they have not ended.
    #[must_use]
    pub fn lease_of(&self, client: u32) -> Amount {
        let local = self.local(Actor::Client(client));
        let live = self.population.holdings_of(client).filter(|holding| local < holding.until);
        Amount::from_micros(live.map(|holding| holding.amount).sum())
    }

    /// The amount of a resource that all clients together believe they may use, in millionths.
    #[must_use]
    pub fn total_believed(&self, resource: u16) -> u128 {
        self.oracle.total(resource)
    }

    /// The amount of a resource that the leader of a site has out, with its ghost, in millionths; nothing without
    /// a leader.
    #[must_use]
    pub fn leased(&self, site: u32, resource: u16) -> u128 {
        self.facts().books(site, resource).map_or(0, |books| books.total)
    }
}
