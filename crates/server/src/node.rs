//! A node: the doors through which reports come in and grants go out, and the resources behind them by name.
//!
//! Every call takes `now`, sampled once after the request was read, and changes nothing but the node. A request is taken
//! whole or refused whole: all of it is checked before any of it counts.

mod status;

use std::collections::BTreeMap;
use std::sync::Arc;

use lessor_proto::message::{Answer, Ask, HolderKind, Refusal, Release};
use lessor_proto::{ResourceId, Time};

pub use crate::config::NodeConfig;
use crate::repository::{Repository, Template};
use crate::resource::{Holder, Life, Reign, Resource, SOON};

pub use self::status::{NodeStatus, StatusQuery, Tally};

/// A node that leads: it grants out of what its repository says.
#[derive(Debug)]
pub struct Node {
    config: NodeConfig,
    repository: Repository,
    resources: BTreeMap<ResourceId, Resource>,
    since: Time,
    /// The number of the last session begun by a client that draws no incarnation.
    sessions: u64,
    tally: Tally,
}

// === impl Node ===

impl Node {
    /// A node that begins to lead at `now`.
    #[must_use]
    pub fn new(now: Time, config: NodeConfig, repository: Repository) -> Node {
        Node {
            config,
            repository,
            resources: BTreeMap::new(),
            since: now,
            sessions: 0,
            tally: Tally::default(),
        }
    }

    /// Takes the reports of one holder and answers them; with nothing but the number of this reign if they are meant for
    /// another.
    ///
    /// # Errors
    /// When a resource is covered by no template or a limit is reached; then nothing of the request counts.
    pub fn ask(&mut self, now: Time, ask: &Ask) -> Result<Answer, Refusal> {
        if ask.target_epoch.is_some_and(|epoch| epoch != self.config.epoch) {
            // Meant for another reign: what it promises and claims is not about ours. The holder learns which is ours.
            self.tally.misdirected += 1;
            return Ok(Answer { epoch: Some(self.config.epoch), ..Answer::default() });
        }
        let outcome = self.admit(now, ask).map(|()| self.answer(now, ask));
        match &outcome {
            Ok(answer) => self.tally.granted += answer.grants.len() as u64,
            Err(_) => self.tally.refused += 1,
        }
        self.tally.asks += 1;
        outcome
    }

    /// Frees what a holder has promised not to use any more. What it never had is no fault.
    pub fn release(&mut self, now: Time, release: &Release) {
        self.tally.releases += 1;
        let life = release.incarnation.map_or(Life::New, Life::Incarnation);
        let holder = Holder { kind: HolderKind::Client, name: release.holder.as_str(), life };
        for id in &release.resources {
            if let Some(resource) = self.resources.get_mut(id) {
                resource.advance(now);
                resource.release(holder);
            }
        }
    }

    /// Puts another repository in force. What is out stays charged until it is given back or has ended.
    pub fn reload(&mut self, now: Time, repository: Repository) {
        self.repository = repository;
        let ids: Vec<ResourceId> = self.resources.keys().cloned().collect();
        for id in ids {
            let template = self.template(&id);
            if let Some(resource) = self.resources.get_mut(&id) {
                resource.advance(now);
                resource.set_template(template);
            }
        }
        self.tally.reloads += 1;
    }

    /// Lets end what has ended, and forgets resources that nobody uses. Gives back when to call it again, if nothing
    /// else happens before.
    pub fn advance(&mut self, now: Time) -> Option<Time> {
        for resource in self.resources.values_mut() {
            resource.advance(now);
        }
        self.resources.retain(|_, resource| !resource.is_idle(now));
        let deadlines =
            self.resources.values().map(|resource| resource.deadline().unwrap_or(resource.idle_from()));
        deadlines.min()
    }

    /// How it was configured.
    #[must_use]
    pub fn config(&self) -> &NodeConfig {
        &self.config
    }

    /// The repository in force.
    #[must_use]
    pub fn repository(&self) -> &Repository {
        &self.repository
    }

    fn admit(&mut self, now: Time, ask: &Ask) -> Result<(), Refusal> {
        let reign = Reign { config: &self.config, since: self.since, session: self.sessions + 1 };
        let mut fresh = 0;
        for (index, report) in ask.reports.iter().enumerate() {
            match self.resources.get_mut(&report.resource) {
                Some(resource) if resource.template().is_some() => {
                    resource.advance(now);
                    resource.admit(ask, report, reign)?;
                }
                Some(_) => return Err(unknown(index, &report.resource)),
                None if covering(&self.repository, &self.config, &report.resource).is_none() => {
                    return Err(unknown(index, &report.resource));
                }
                None => fresh += 1,
            }
        }
        let (count, limit) = (self.resources.len() + fresh, self.config.resources);
        if fresh > 0 && count > limit {
            return Err(Refusal::Exhausted { what: "resources in all".to_owned(), count, limit });
        }
        Ok(())
    }

    fn answer(&mut self, now: Time, ask: &Ask) -> Answer {
        self.sessions += 1;
        let reign = Reign { config: &self.config, since: self.since, session: self.sessions };
        let mut grants = Vec::with_capacity(ask.reports.len());
        let mut short = false;
        for report in &ask.reports {
            let resource = match self.resources.get_mut(&report.resource) {
                Some(resource) => resource,
                None => {
                    let template = covering(&self.repository, &self.config, &report.resource);
                    let template = template.expect("admitted, so a template covers it");
                    let resource = Resource::new(now, report.resource.clone(), template, reign);
                    self.resources.entry(report.resource.clone()).or_insert(resource)
                }
            };
            let reply = resource.report(now, ask, report, reign);
            short |= reply.short;
            grants.push(reply.grant);
        }
        Answer { grants, redirect: None, epoch: Some(self.config.epoch), retry: short.then_some(SOON) }
    }

    fn template(&self, id: &ResourceId) -> Option<Arc<Template>> {
        covering(&self.repository, &self.config, id)
    }
}

/// The template that covers a resource: one of the repository's or, by Doorman's rule where that is switched on, the one
/// for names that it does not know.
fn covering(repository: &Repository, config: &NodeConfig, id: &ResourceId) -> Option<Arc<Template>> {
    repository.find(id).or(config.unknown_names.as_ref()).map(Arc::clone)
}

fn unknown(index: usize, resource: &ResourceId) -> Refusal {
    Refusal::Unknown { field: format!("resource[{index}].resource_id"), resource: resource.to_string() }
}
