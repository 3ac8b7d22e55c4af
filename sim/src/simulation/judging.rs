//! The judgements of the oracle: what it is asked after every event, and what must be so once faults have stopped.

use std::any::Any;
use std::time::Duration;

use lessor_proto::Time;
use lessor_proto::message::Unenforced;

use super::{Counts, News, Observer, Simulation};
use crate::oracle::{Facts, Oracle, Rule, Target, Violation};
use crate::site::Leadership;

/// The interval at which programs ask when it is judged whom nobody forgets.
const STEP: Duration = Duration::from_millis(100);

/// The clients that have had a unit of a resource.
struct Served {
    resource: u16,
    clients: Vec<bool>,
}

/// The facts of a simulation, whose oracle and whose trace remain free meanwhile.
macro_rules! facts {
    ($sim:expr) => {
        Facts {
            now: $sim.now,
            rules: &$sim.rules,
            sites: &$sim.tree.sites,
            tasks: &$sim.tree.tasks,
            clients: &$sim.population.clients,
            holdings: &$sim.population.holdings,
            programs: &$sim.population.programs,
            streams: &$sim.streams,
            resources: &$sim.resources,
            domain: $sim.population.domain.as_deref(),
            rule_book: $sim.configurations.rule_book.as_deref(),
            registry: $sim.tree.etcd.as_ref().map(|etcd| &etcd.registry),
        }
    };
}

// === impl Simulation: after every event ===

impl Simulation {
    /// All that there is at this moment.
    pub(crate) fn facts(&self) -> Facts<'_> {
        facts!(self)
    }

    /// Asks the oracle something about all that there is at this moment.
    pub(crate) fn consult<T>(&mut self, question: impl FnOnce(&mut Oracle, &Facts<'_>) -> T) -> T {
        let facts = facts!(self);
        question(&mut self.oracle, &facts)
    }

    /// The judgement of what tasks have in force when nothing goes wrong any more.
    ///
    /// # Errors
    /// When it is not so.
    pub fn judge_following(&mut self) -> Result<(), Box<Violation>> {
        self.judge_templates();
        self.look()
    }

    /// Looks whether a rule is broken.
    pub(super) fn look(&mut self) -> Result<(), Box<Violation>> {
        if self.consult(Oracle::look) {
            self.check_all();
        }
        match self.oracle.verdict() {
            None => Ok(()),
            Some((rule, what)) => Err(Box::new(self.violation(rule, what))),
        }
    }

    /// A mind has panicked, which is a violation of whatever it asserted.
    pub(crate) fn panicked(&self, panic: &(dyn Any + Send)) -> Violation {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no words");
        self.violation(Rule(0), format!("panic: {text}"))
    }

    fn violation(&self, rule: Rule, what: String) -> Violation {
        let trace = self.trace();
        Violation { seed: self.rng.seed(), event: self.events(), at: self.now, rule, what, trace }
    }

    /// Looks at everything, site by site: the books of all together take much room.
    fn check_all(&mut self) {
        self.consult(Oracle::recount_all);
        for site in 0..self.tree.sites.len() as u32 {
            self.consult(|oracle, facts| oracle.check_site(facts, site));
            let above = self.tree.sites[site as usize].kin.parent;
            above.into_iter().chain([site]).for_each(|site| self.forget_books(site));
        }
    }

    /// Forgets the books that were read of the tasks of a site.
    fn forget_books(&mut self, site: u32) {
        for task in self.tree.sites[site as usize].tasks.clone() {
            if let Some(leadership) = &mut self.tree.tasks[task as usize].leadership {
                leadership.node.forget_books();
            }
        }
    }
}

// === impl Simulation: once faults have stopped ===

impl Simulation {
    /// Every site is led, as all its tasks know, and everybody has what is due to it, up to what the grid blurs.
    ///
    /// # Errors
    /// When it is not, or somebody has not: rule 19 or 20.
    pub fn judge(&mut self) -> Result<(), Box<Violation>> {
        self.consult(Oracle::judge);
        self.judge_passed();
        self.look()
    }

    /// The root has heard of no more units that were let pass than programs have counted, if no request came twice.
    fn judge_passed(&mut self) {
        let [passed, beside] = [false, true].map(|is_second| self.judge_heard(is_second));
        (self.progress.counts.passed_heard, self.progress.counts.beside_heard) =
            (passed.passed, beside.asked);
    }

    /// The same of second limits that are tried, or of what is in force. Returns what the root has heard.
    fn judge_heard(&mut self, is_second: bool) -> Unenforced {
        let programs = &self.population.programs;
        let counted = if is_second { programs.counted_beside() } else { programs.unenforced() };
        let roots = self.tree.sites.iter().filter(|site| site.kin.parent.is_none());
        let tasks = roots.flat_map(|site| site.tasks.clone());
        let leaders = tasks.filter_map(|task| self.tree.tasks[task as usize].leadership.as_deref());
        let of = |leadership: &Leadership| {
            let resources = self.resources.iter().filter(|found| found.companion_of.is_some() == is_second);
            let heard = resources.map(|resource| leadership.node.unenforced(&resource.id));
            heard.fold(Unenforced::default(), Unenforced::with)
        };
        let heard = leaders.map(of).max_by_key(|heard| heard.asked).unwrap_or_default();
        let is_more = heard.asked > counted.asked || heard.passed > counted.passed;
        if is_more && self.progress.tally.twice == 0 {
            self.oracle.fail(40, || {
                format!("the root has heard of {heard:?}, and programs have counted {counted:?}")
            });
        }
        heard
    }

    /// Since `before` nothing was said on streams but heartbeats and the answers to them, if everybody streams.
    ///
    /// # Errors
    /// When something was: rule 17.
    pub fn judge_silence(&mut self, before: &Counts) -> Result<(), Box<Violation>> {
        let after = self.counts();
        self.consult(|oracle, facts| oracle.judge_silence(facts, before, &after));
        self.look()
    }

    /// Whether units of some gauge go round, as there are fewer than are wanted.
    #[must_use]
    pub fn has_turns(&self) -> bool {
        let facts = self.facts();
        (0..self.resources.len() as u16).any(|resource| facts.is_short(resource, &facts.targets(resource)))
    }

    /// Each client that is due a part of a unit has one in its turn: for the turns that it is due, each as long as it lasts
    /// and as it takes to hand a unit over, on each level.
    ///
    /// # Errors
    /// When one has none for too long: rule 20, or when another rule is broken meanwhile.
    pub fn judge_turns(&mut self) -> Result<(), Box<Violation>> {
        for resource in 0..self.resources.len() as u16 {
            let Some(turns) = self.facts().turns(resource) else { continue };
            let mut served = Served { resource, clients: vec![false; self.clients()] };
            for target in &turns.targets {
                served.clients[target.client as usize] = target.believed.floor_units() > 0;
            }
            self.run_until_heard(self.now + turns.longest, &mut served)?;
            if let Some(client) = turns.due.iter().find(|&&client| !served.clients[client as usize]) {
                let (longest, table) = (turns.longest, Target::table(&turns.targets));
                self.oracle.fail(20, || {
                    format!("client {client} has no unit of r{resource} in {longest:?}:\n{table}")
                });
            }
            self.look()?;
        }
        Ok(())
    }

    /// Checks that everybody who goes on asking for a domain has a part of its lease in its turn.
    ///
    /// # Errors
    /// When one has none for too long: rule 28, or when another rule is broken meanwhile.
    pub fn judge_domains(&mut self) -> Result<(), Box<Violation>> {
        for resource in 0..self.resources.len() as u16 {
            self.judge_domain(resource)?;
        }
        Ok(())
    }

    fn judge_domain(&mut self, resource: u16) -> Result<(), Box<Violation>> {
        let found = &self.resources[usize::from(resource)];
        let Some(domain) = found.domain.filter(|domain| self.resources[usize::from(domain.of)].covered)
        else {
            return Ok(());
        };
        let asks = |hold: &u32| {
            let holding = &self.population.holdings[*hold as usize];
            holding.resource == resource && self.population.clients[holding.client as usize].lives()
        };
        let holds: Vec<u32> = (0..self.population.holdings.len() as u32).filter(asks).collect();
        let waits = self.facts().waits(&holds, domain.share().parts(), domain.share().first_hit());
        let longest = waits.iter().map(|&(_, wait)| wait).max().unwrap_or_default();
        let (mut left, until): (Vec<u32>, Time) =
            (waits.into_iter().map(|(hold, _)| hold).collect(), self.now + longest);
        // Where a node polls the one above, a part may be there for a moment only.
        for &hold in &holds {
            let holding = &mut self.population.holdings[hold as usize];
            holding.sums.was_counted = holding.sums.counted > 0;
        }
        while !left.is_empty() && self.now < until {
            holds.iter().for_each(|&hold| self.ask_domain(hold, 1));
            left.retain(|&hold| !self.population.holdings[hold as usize].sums.was_counted);
            self.pass(STEP)?;
        }
        if let Some(&hold) = left.first() {
            let client = self.population.holdings[hold as usize].client;
            self.oracle.fail(28, || format!("client {client} has no part of r{resource} in {longest:?}"));
        }
        self.look()
    }
}

// === impl Simulation: the questions of others ===

impl Simulation {
    /// The share of a resource that each client that lives should have, and the one that it has.
    #[must_use]
    pub fn targets(&self, resource: u16) -> Vec<Target> {
        self.facts().targets(resource)
    }
}

// === impl Served ===

impl Observer for Served {
    fn hear(&mut self, _: Time, news: News) {
        if news.resource == self.resource && news.amount.floor_units() > 0 {
            self.clients[news.client as usize] = true;
        }
    }
}
