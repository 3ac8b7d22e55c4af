//! Changes of the rules of access by operators.

use std::time::Duration;

use crate::rule_book::{GrantedRights, Whose};
use crate::simulation::{Event, Simulation};
use crate::trace::{Happening, Speaker};

/// A change of somebody's rights, as the trace has it.
#[derive(Clone, Copy, Debug)]
enum RightChange {
    /// A resource is taken away.
    Less,
    /// No rule speaks of it any more.
    Out,
    /// It gets all back.
    Regained,
    /// The limits of what it may say are others.
    Limited,
}

// === impl Simulation ===

impl Simulation {
    /// Operators take a right away for a while or for good, or change a limit; in a quarter of the cases as a leader dies.
    pub(super) fn change_rights(&mut self) -> bool {
        let Some(before) = self.configurations.rule_book.as_ref().map(|book| book.rights().clone()) else {
            return false;
        };
        let mut rights = before.clone();
        let (whose, change) = match self.rng.below(10) {
            0..=5 => self.take_away(&mut rights),
            6..=7 => self.limit_client(&mut rights),
            _ => self.limit_node(&mut rights),
        };
        if rights == before {
            return false;
        }
        self.put_rights_in_force(whose, change, rights);
        let site = match whose {
            Whose::Client(client) => self.population.clients[client as usize].site,
            Whose::Site(site) => self.tree.sites[site as usize].kin.parent.unwrap_or(site),
        };
        if self.rng.chance(250)
            && let Some(head) = self.tree.sites[site as usize].head
        {
            self.overthrow(head);
        }
        // A client may be left without; a node with all below it is not.
        if matches!(whose, Whose::Site(_)) || self.rng.chance(800) {
            let back = self.spell();
            self.queue.put(back, Event::Regain(whose));
        }
        true
    }

    fn take_away(&mut self, rights: &mut GrantedRights) -> (Whose, RightChange) {
        if self.tree.sites.len() > 1 && self.rng.chance(150) {
            let site = 1 + self.rng.index(self.tree.sites.len() - 1) as u32;
            rights.nodes[site as usize].is_known = false;
            return (Whose::Site(site), RightChange::Out);
        }
        let client = self.rng.index(rights.clients.len());
        let found = &mut rights.clients[client];
        let resource = self.rng.index(found.resources.len());
        let both = self.accompanied_and_companion(resource);
        if self.rng.chance(200) {
            found.is_known = false;
            return (Whose::Client(client as u32), RightChange::Out);
        }
        both.into_iter().flatten().for_each(|resource| found.resources[resource] = false);
        (Whose::Client(client as u32), RightChange::Less)
    }

    fn limit_client(&mut self, rights: &mut GrantedRights) -> (Whose, RightChange) {
        let client = self.rng.index(rights.clients.len());
        let allowance = &mut rights.clients[client].allowance;
        match self.rng.below(4) {
            0 => allowance.weight = self.rng.between(1, 4) as u32,
            1 => allowance.most_priority = self.rng.chance(500).then_some(0),
            _ => allowance.most_wants = self.rng.chance(700).then(|| self.rng.between(1, 60) as f64),
        }
        (Whose::Client(client as u32), RightChange::Limited)
    }

    fn limit_node(&mut self, rights: &mut GrantedRights) -> (Whose, RightChange) {
        let site = self.rng.index(rights.nodes.len());
        let found = &mut rights.nodes[site];
        match self.rng.chance(700) {
            true => found.most_clients = self.rng.chance(700).then(|| self.rng.between(1, 8)),
            false => found.most_priority = self.rng.chance(600).then_some(0),
        }
        (Whose::Site(site as u32), RightChange::Limited)
    }

    /// Somebody gets back what was taken away; limits stay as they are.
    pub(in crate::simulation) fn give_back_rights(&mut self, whose: Whose) {
        let Some(book) = &self.configurations.rule_book else { return };
        let mut rights = book.rights().clone();
        match whose {
            Whose::Client(client) => {
                let found = &mut rights.clients[client as usize];
                found.is_known = true;
                found.resources.iter_mut().for_each(|may| *may = true);
                found.allowance.most_priority = None;
            }
            Whose::Site(site) => rights.nodes[site as usize].is_known = true,
        }
        if rights != *book.rights() {
            self.put_rights_in_force(whose, RightChange::Regained, rights);
        }
    }

    fn put_rights_in_force(&mut self, whose: Whose, change: RightChange, rights: GrantedRights) {
        let (kind, number) = match whose {
            Whose::Client(client) => (0, client),
            Whose::Site(site) => (1, site),
        };
        self.note(Speaker::Simulation, Happening::Right, [kind, number.into(), change as u64]);
        if let Some(book) = &mut self.configurations.rule_book {
            book.publish(rights);
        }
        for task in 0..self.tree.tasks.len() as u32 {
            let at = self.rng.time(Duration::ZERO, Duration::from_secs(1));
            self.later(at, Event::Access(task));
        }
    }
}
