//! The configuration as it reaches tasks: each has a copy of its own, and finds the newest, or an older one, when it begins
//! and when it looks again.

use lessor_proto::Time;
use lessor_server::election::lag::{Lag, Step};
use lessor_server::node::Peer;
use lessor_server::repository::Repository;

use super::{Event, Simulation};
use crate::actor::Actor;
use crate::plan::{Election, Terms};
use crate::resource::{Resource, repository};
use crate::trace::Happening;

/// One edition of the configuration of all sites. Its number is its site among all, from one on.
#[derive(Clone, Debug)]
pub(crate) struct Edition {
    resources: Vec<Resource>,
    /// By site.
    terms: Vec<Terms>,
}

/// Of a thousand that begin or look again, so many find an older edition for a while.
const STALE: u32 = 250;

// === impl Simulation ===

impl Simulation {
    /// Makes what is configured from here on another edition, where tasks have copies of their own.
    pub(super) fn publish(&mut self) {
        if self.rules.editions {
            let terms = self.tree.sites.iter().map(|site| site.lengths.terms).collect();
            self.configurations.editions.push(Edition { resources: self.resources.clone(), terms });
            self.want_push();
        }
    }

    /// All tasks of all sites hear of another configuration, each a little later or earlier.
    pub(super) fn spread_configuration(&mut self) {
        self.publish();
        (0..self.tree.sites.len() as u32).for_each(|site| self.tell(site));
    }

    /// The same of the tasks of one site. Where they have copies, those of others hear of the new number as well.
    pub(super) fn tell_configuration(&mut self, site: u32) {
        match self.rules.editions {
            true => self.spread_configuration(),
            false => self.tell(site),
        }
    }

    fn tell(&mut self, site: u32) {
        if self.configurations.templates.is_some() {
            // They follow.
            return;
        }
        for task in self.tree.sites[site as usize].tasks.clone() {
            let at = self.rng.time(std::time::Duration::ZERO, std::time::Duration::from_secs(1));
            match self.rules.editions && self.rng.chance(STALE) {
                true => {
                    let at = self.spell();
                    self.queue.put(at, Event::Reload(task));
                }
                false => self.later(at, Event::Reload(task)),
            }
        }
    }

    /// A task looks what is configured: mostly the newest, or for a while an older edition. When the faults are over it is the
    /// newest.
    pub(super) fn look_at_configuration(&mut self, task: u32) {
        if self.configurations.templates.is_some() {
            return;
        }
        let Some(newest) = self.configurations.editions.len().checked_sub(1) else { return };
        let mut found = newest;
        if self.faulty() && self.rng.chance(STALE) {
            found = self.rng.index(newest + 1);
            let at = self.spell();
            self.queue.put(at, Event::Reload(task));
        }
        self.tree.tasks[task as usize].editions.edition = found;
        self.note(Actor::Task(task).who(), Happening::Edition, [found as u64 + 1, newest as u64 + 1, 0]);
    }

    /// The number of the edition that a task has, where they are counted.
    fn version(&self, task: u32) -> Option<u64> {
        if let Some(followed) = self.followed(task) {
            return Some(followed.map_or(0, |(number, _)| number));
        }
        (!self.configurations.editions.is_empty())
            .then(|| self.tree.tasks[task as usize].editions.edition as u64 + 1)
    }

    /// The configuration that a task has been told.
    pub(crate) fn repository(&self, task: u32) -> Repository {
        let edition = match self.followed(task) {
            Some(None) => return Repository::default(),
            Some(Some((_, edition))) => edition,
            None => self.tree.tasks[task as usize].editions.edition,
        };
        self.repository_of(task, edition).at_version(self.version(task).unwrap_or_default())
    }

    /// The same of an edition, without its number.
    pub(super) fn repository_of(&self, task: u32, edition: usize) -> Repository {
        let site = self.tree.tasks[task as usize].site;
        let found = &self.tree.sites[site as usize];
        // A leader whose record says nothing learns what may be out when it begins.
        let learns = self.rules.election == Election::Alone || self.rules.memory.etcd.is_some();
        let learning = if learns { found.lengths.longest_lease } else { std::time::Duration::ZERO };
        let edition = self.configurations.editions.get(edition);
        let resources = edition.map_or(&self.resources, |edition| &edition.resources);
        let terms = edition.map_or(found.lengths.terms, |edition| edition.terms[site as usize]);
        repository(resources, terms, learning, self.rules.fallback).expect("templates that hold together")
    }

    /// A leader hears of the configuration in force.
    pub(super) fn reload(&mut self, task: u32) {
        self.look_at_configuration(task);
        let site = self.tree.tasks[task as usize].site;
        let (now, repository) = (self.local(Actor::Task(task)), self.repository(task));
        let version = repository.version();
        let Some(leadership) = &mut self.tree.tasks[task as usize].leadership else {
            return self.keep_up(task);
        };
        let was_outdated = leadership.node.repository().version() < leadership.newest;
        leadership.newest = leadership.newest.max(version);
        if version == leadership.newest {
            leadership.made_before.clear();
        } else if !was_outdated {
            let waiting = |(peer, _)| (peer, leadership.node.waiting_grants(peer));
            leadership.made_before = leadership.peers.iter().map(waiting).collect();
        }
        leadership.node.reload(now, repository);
        if site == 0 && self.tree.sites[0].head == Some(task) {
            self.configured(task, false);
        }
        self.drive_task(task);
    }

    /// The root acts by what `task` has been told from here on, unless a later edition was in force: then it grants nothing. A
    /// new leader of it does not know which leases are reduced already.
    pub(super) fn configured(&mut self, task: u32, succession: bool) {
        let leadership = self.tree.tasks[task as usize].leadership.as_ref();
        let is_outdated = leadership.is_some_and(|leadership| leadership.node.later_config().is_some());
        let repository = self.repository(task);
        for index in 0..self.resources.len() {
            let id = &self.resources[index].id;
            let longest = self.tree.sites[0].longest(id) + self.tree.sites[0].lengths.authority;
            let patience: Time = self.now + self.rules.drift.stretch(self.rules.drift.stretch(longest));
            // What is reserved is told as a fraction, and rounded.
            let capacity = repository.find(id).map_or(0, |template| match id.is_floor() {
                true => template.capacity.as_micros(),
                false => template.shared().as_micros(),
            });
            let capacity = if is_outdated { self.oracle.limit_of(index) } else { capacity };
            self.oracle.limit(index, capacity, patience, succession);
            if let Some(template) = repository.find(id).filter(|_| !is_outdated) {
                self.oracle.be_of_kind(index, template.kind, patience, succession);
            }
        }
    }

    /// A task leaves it to others to lead for want of the edition that was in force, or stands again, as in the body of a server.
    pub(super) fn keep_up(&mut self, task: u32) {
        let Some(version) = self.version(task) else { return };
        let now = self.local(Actor::Task(task));
        let found = &mut self.tree.tasks[task as usize];
        let Some(candidate) = &mut found.candidate else { return };
        let ttl = candidate.config().ttl;
        let later = found.leadership.as_ref().and_then(|leadership| leadership.node.later_config());
        match found.lag.get_or_insert_with(|| Lag::new(ttl)).look(now, version, later) {
            Some(Step::Aside(time)) => {
                candidate.stand_aside(now, time);
                self.note(Actor::Task(task).who(), Happening::Aside, [version, later.unwrap_or_default(), 0]);
            }
            Some(Step::Stand) => candidate.stand_again(now),
            None => return,
        }
        self.drive_task(task);
    }

    /// Watches the edition of grants that leave on a stream. What a leader had made before it was told of an older edition it
    /// sends when the stream takes it.
    pub(crate) fn watch_edition_of(&mut self, task: u32, peer: Peer, grants: usize) {
        let leadership = self.tree.tasks[task as usize].leadership.as_mut();
        let made = leadership.and_then(|leadership| leadership.made_before.get_mut(&peer));
        match made {
            Some(made) if *made >= grants => *made -= grants,
            _ => self.watch_edition(task),
        }
    }

    /// A leader grants nothing by an older edition than was in force under it, or under one before it by what that has left.
    pub(crate) fn watch_edition(&mut self, task: u32) {
        let (Some(version), Some(leadership)) =
            (self.version(task), &self.tree.tasks[task as usize].leadership)
        else {
            return;
        };
        let newest = leadership.newest;
        if version < newest && leadership.keeps {
            self.oracle
                .fail(26, || format!("task {task} grants by edition {version}, and {newest} was in force"));
        }
    }
}
