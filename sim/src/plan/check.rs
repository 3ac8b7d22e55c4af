//! Whether a plan can work: what would stop a process at its beginning is told before a simulation is built.

use lessor_proto::Time;
use lessor_server::election::{BadConfig, Candidate};
use lessor_server::repository::BadTemplates;

use super::{Election, SimulationPlan, SitePlan};
use crate::resource::{Resource, repository};

/// Why a plan cannot work.
#[derive(Debug, thiserror::Error)]
pub enum BadPlan {
    /// A site or a client refers to something that is not there, or that comes after it.
    #[error("{who:?} refers to {kind} {found}, wanted is one below {end}")]
    Reference {
        /// The name of the site or of the client.
        who: String,
        /// The kind of what it refers to.
        kind: &'static str,
        /// Its index.
        found: usize,
        /// The number of those that there are to refer to.
        end: usize,
    },
    /// The tasks of a site could not stand for election.
    #[error("site {site:?}: {problem}")]
    Election {
        /// The name of the site.
        site: String,
        /// The problem with the election.
        problem: BadConfig,
    },
    /// The templates of a site do not hold together.
    #[error("site {site:?}: {problem}")]
    Templates {
        /// The name of the site.
        site: String,
        /// The problem with the templates.
        problem: BadTemplates,
    },
}

// === impl SimulationPlan ===

impl SimulationPlan {
    /// Whether all processes of the simulation can begin.
    ///
    /// # Errors
    /// The first thing that would stop one.
    pub fn check(&self) -> Result<(), BadPlan> {
        let resources: Vec<Resource> = self.resources.iter().map(Resource::new).collect();
        for (index, site) in self.sites.iter().enumerate() {
            if let Some(parent) = site.parent {
                reference(&site.name, "site", parent as usize, index)?;
            }
            self.check_site(site, &resources)?;
        }
        for (resource, domain) in self.resources.iter().filter_map(|found| Some((found, found.domain?))) {
            let lenders = self.resources.iter().take_while(|found| found.domain.is_none()).count();
            reference(&resource.name, "resource", domain.of.into(), lenders)?;
        }
        for (resource, of) in self.resources.iter().filter_map(|found| Some((found, found.companion_of?))) {
            let accompanied = self.resources.iter().take_while(|found| found.companion_of.is_none()).count();
            reference(&resource.name, "resource", of.into(), accompanied)?;
        }
        for client in &self.clients {
            reference(&client.name, "site", client.site as usize, self.sites.len())?;
            for hold in &client.holds {
                reference(&client.name, "resource", hold.resource.into(), resources.len())?;
            }
        }
        Ok(())
    }

    fn check_site(&self, plan: &SitePlan, resources: &[Resource]) -> Result<(), BadPlan> {
        let site = plan.name.clone();
        if let Err(problem) = repository(resources, plan.terms, plan.terms.lease_length, self.fallback) {
            return Err(BadPlan::Templates { site, problem });
        }
        let Election::Etcd(etcd) = self.election else { return Ok(()) };
        let config = etcd.candidate(&plan.name, "task:1", plan.authority, self.drift, 1);
        match Candidate::new(Time::ZERO, config) {
            Ok(_) => Ok(()),
            Err(problem) => Err(BadPlan::Election { site, problem }),
        }
    }
}

fn reference(who: &str, kind: &'static str, found: usize, end: usize) -> Result<(), BadPlan> {
    match found < end {
        true => Ok(()),
        false => Err(BadPlan::Reference { who: who.to_owned(), kind, found, end }),
    }
}
