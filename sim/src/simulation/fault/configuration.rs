//! Changes of the configuration by operators, and of what clients want.

use std::time::Duration;

use lessor_proto::{Amount, Time};
use lessor_server::repository::{Kind, SharePolicy};

use crate::resource::Resource;
use crate::simulation::{Event, Simulation};
use crate::trace::{Happening, Speaker};

// === impl Simulation ===

impl Simulation {
    pub(super) fn change_capacity(&mut self) -> bool {
        let index = self.rng.index(self.resources.len());
        let factor = self.rng.between(200, 1_800);
        let first = self.oracle.first_capacity(index);
        if self.resources[index].domain.is_some() {
            return false;
        }
        let resource = &mut self.resources[index];
        let mut capacity = first / 1_000 * factor;
        if resource.kind == Kind::Gauge {
            capacity -= capacity % Amount::MICROS_PER_UNIT;
        }
        resource.capacity = Amount::from_micros(capacity);
        self.note(Speaker::Simulation, Happening::Capacity, [index as u64, capacity, 0]);
        self.spread_configuration();
        true
    }

    pub(super) fn change_lease(&mut self) -> bool {
        let site = self.any_site();
        let found = &mut self.tree.sites[site as usize];
        let least = self.rules.shortest_lease.max(found.lengths.terms.refresh_interval * 2).as_secs();
        let longest = self.rng.between(least, (2 * found.lengths.longest_lease.as_secs().min(30)).max(least));
        found.lengths.terms.lease_length = Duration::from_secs(longest);
        found.lengths.longest_lease = found.lengths.longest_lease.max(found.lengths.terms.lease_length);
        let nanos = Time::ZERO + found.lengths.terms.lease_length;
        self.note(Speaker::Site(site), Happening::Lease, [nanos.as_nanos(), 0, 0]);
        self.tell_configuration(site);
        true
    }

    /// Switches a resource from fair to proportional shares from here on, or the other way round.
    pub(super) fn change_policy(&mut self) -> bool {
        let index = self.rng.index(self.resources.len());
        let resource = &mut self.resources[index];
        if resource.domain.is_some() || resource.companion_of.is_some() {
            return false;
        }
        resource.policy = match resource.policy {
            SharePolicy::FairShare => SharePolicy::ProportionalShare,
            _ => SharePolicy::FairShare,
        };
        let number = u64::from(resource.policy == SharePolicy::FairShare);
        self.note(Speaker::Simulation, Happening::Policy, [index as u64, number, 0]);
        self.follow_accompanied();
        self.spread_configuration();
        true
    }

    /// A template has other caps from here on, or none.
    pub(super) fn change_caps(&mut self) -> bool {
        let index = self.rng.index(self.resources.len());
        let (is_of_priority, is_capped) = (self.rng.chance(400), self.rng.chance(600));
        let most = self.rng.between(1, 6) as u32;
        let resource = &mut self.resources[index];
        if resource.companion_of.is_some() {
            return false;
        }
        match is_of_priority {
            true => resource.most_priority = is_capped.then_some(0),
            false => resource.most_clients = is_capped.then_some(most),
        }
        let (priority, clients) = (resource.most_priority.unwrap_or(-1), resource.most_clients.unwrap_or(0));
        self.note(Speaker::Simulation, Happening::Caps, [index as u64, priority as u64, clients.into()]);
        self.follow_accompanied();
        self.spread_configuration();
        true
    }

    pub(super) fn remove_template(&mut self) -> bool {
        let resource = self.rng.index(self.resources.len()) as u16;
        let found = &self.resources[usize::from(resource)];
        if !found.covered || found.domain.is_some() || found.companion_of.is_some() {
            return false;
        }
        self.cover(resource, false);
        let back = self.spell();
        self.queue.put(back, Event::Cover(resource));
        true
    }

    /// No second limit is tried beside that of a resource, until it is put back.
    pub(super) fn take_second_out(&mut self) -> bool {
        let of = self.rng.index(self.resources.len());
        let is_it =
            |found: &Resource| found.covered && found.companion_of.is_some_and(|it| usize::from(it) == of);
        let Some(companion) = self.resources.iter().position(is_it) else { return false };
        self.cover(companion as u16, false);
        let back = self.spell();
        self.queue.put(back, Event::Cover(companion as u16));
        true
    }

    /// Companions follow the templates of the resources that they are tried beside, in all but their capacity.
    fn follow_accompanied(&mut self) {
        for index in 0..self.resources.len() {
            if let Some(of) = self.resources[index].companion_of {
                let Resource { policy, most_priority, most_clients, .. } = self.resources[usize::from(of)];
                let found = &mut self.resources[index];
                (found.policy, found.most_priority, found.most_clients) =
                    (policy, most_priority, most_clients);
            }
        }
    }

    /// A template covers the resource from here on, or none does.
    pub(in crate::simulation) fn cover(&mut self, resource: u16, covered: bool) {
        // What is reserved of a resource is said by the same template.
        let id = self.resources[usize::from(resource)].id.clone();
        for (index, found) in self.resources.iter_mut().enumerate() {
            if index == usize::from(resource) || found.id == id.floor() || id == found.id.floor() {
                found.covered = covered;
            }
        }
        let found = &self.resources[usize::from(resource)];
        let capacity = if covered { found.capacity.as_micros() } else { 0 };
        self.note(Speaker::Simulation, Happening::Capacity, [resource.into(), capacity, 1]);
        self.spread_configuration();
    }

    /// A client wants something else: nothing, a little, its share, or very much.
    pub(in crate::simulation) fn want_something(&mut self, client: u32) {
        let Some(every) = self.rules.faults.restless.filter(|_| self.faulty()) else { return };
        let pause = self.rng.exponential(every);
        self.later(pause, Event::Wants(client));
        for hold in self.population.clients[client as usize].holds.clone() {
            let wants = self.any_wants(hold);
            self.want(hold, wants);
        }
        self.drive_client(client);
    }

    /// Draws an amount that a client may want of what it holds there.
    pub(crate) fn any_wants(&mut self, hold: u32) -> f64 {
        let index = usize::from(self.population.holdings[hold as usize].resource);
        let capacity = Amount::from_micros(self.oracle.first_capacity(index)).as_f64();
        let share = capacity / self.population.clients.len() as f64;
        let wants = match self.rng.below(20) {
            0..=2 => 0.0,
            3..=4 => share * 0.02 * self.rng.fraction(),
            5..=15 => share * 2.5 * self.rng.fraction(),
            _ => share * 20.0 * self.rng.fraction(),
        };
        match self.kind_of(&self.population.holdings[hold as usize]) {
            Kind::Rate => wants,
            Kind::Gauge => wants.ceil(),
        }
    }
}
