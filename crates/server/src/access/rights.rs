//! Rights: what a holder may ask for, once its identity is known.

use std::sync::Arc;

use lessor_proto::ResourceId;
use lessor_proto::message::Report;
use smallvec::SmallVec;

use super::Stance;
use super::denial::{Denial, Why};
use super::place::RulePlace;
use super::ruling::Ruling;
use crate::caps::{cap_clients, cap_priorities};
use crate::repository::Glob;

/// Limits on what a client says of itself.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Allowance {
    /// The greatest priority that it may have; a report with more is refused. Absent: any.
    pub most_priority: Option<i64>,
    /// The most that it may want of one resource, in units; more counts as that. Absent: anything.
    pub most_wants: Option<f64>,
    /// The number of clients that it stands for in a fair share.
    pub weight: u32,
}

/// The rights of one holder.
#[derive(Clone, PartialEq, Debug)]
pub struct Rights {
    identity: Box<str>,
    place: RulePlace,
    resources: ResourcePatterns,
    reach: StatedLimits,
}

/// The resources that a holder may hold: those that fit a pattern of each list.
type ResourcePatterns = SmallVec<[Arc<[Glob]>; 1]>;

/// Limits on what a holder says of itself, or of those below it.
#[derive(Clone, Copy, PartialEq, Debug)]
enum StatedLimits {
    Client(Allowance),
    Node { most_clients: Option<u64>, most_priority: Option<i64> },
}

// === impl Allowance ===

impl Default for Allowance {
    fn default() -> Allowance {
        Allowance { most_priority: None, most_wants: None, weight: 1 }
    }
}

// === impl Rights ===

impl Rights {
    pub(super) fn of_client(
        place: RulePlace,
        identity: &str,
        resources: Option<Arc<[Glob]>>,
        allowance: Allowance,
    ) -> Rights {
        let resources = resources.into_iter().collect();
        Rights { identity: identity.into(), place, resources, reach: StatedLimits::Client(allowance) }
    }

    pub(super) fn of_node(
        place: RulePlace,
        identity: &str,
        most_clients: Option<u64>,
        most_priority: Option<i64>,
    ) -> Rights {
        let reach = StatedLimits::Node { most_clients, most_priority };
        Rights { identity: identity.into(), place, resources: ResourcePatterns::new(), reach }
    }

    /// Only what both allow, with the limits of the first: a rule has them, and a token has none.
    pub(super) fn and(mut self, other: Rights) -> Rights {
        self.resources.extend(other.resources);
        self
    }

    /// Whether what a holder says counts the same by both.
    #[must_use]
    pub fn counts_as(&self, other: &Rights) -> bool {
        self.reach == other.reach
    }

    /// Whether what a holder says counts as it says it.
    pub(super) fn counts_plainly(&self) -> bool {
        let is_plain = |allowance| allowance == Allowance::default();
        match self.reach {
            StatedLimits::Client(allowance) => is_plain(allowance),
            StatedLimits::Node { most_clients, most_priority } => {
                most_clients.is_none() && most_priority.is_none()
            }
        }
    }

    /// Whether it may hold `resource`.
    ///
    /// # Errors
    /// When no pattern of its rule fits.
    pub fn may_hold(&self, resource: &ResourceId) -> Result<(), Denial> {
        // What is reserved of a resource, and the leases of its domains, are for those who may hold it.
        let name = resource.base();
        let fits = |globs: &Arc<[Glob]>| globs.iter().any(|glob| glob.matches(name));
        match self.resources.iter().find(|globs| !fits(globs)) {
            None => Ok(()),
            Some(globs) => Err(Denial::resource(self.place, &self.identity, resource, &listed(globs))),
        }
    }

    /// Cuts what `report` says down to what its holder may say, and gives it the holder's weight. Gives back what was cut:
    /// nothing of that is refused.
    ///
    /// # Errors
    /// When the holder may not ask with that priority; the report is as it was.
    pub fn limit(&self, report: &mut Report) -> Result<Option<Denial>, Denial> {
        match self.reach {
            StatedLimits::Client(allowance) => self.limit_client(allowance, report),
            StatedLimits::Node { most_clients, most_priority } => {
                Ok(self.limit_node(most_clients, most_priority, report))
            }
        }
    }

    /// The same by rules of the stance `stance`: where nothing is refused, what would be cut down is only noted.
    pub(super) fn limit_by(&self, stance: Stance, report: &mut Report, ruling: &mut Ruling) {
        let mut limited = report.clone();
        let cut = match self.limit(&mut limited) {
            Ok(cut) => cut,
            Err(denial) => {
                ruling.deny(stance, denial);
                return;
            }
        };
        if cut.is_none() || stance == Stance::Deny {
            *report = limited;
        }
        cut.into_iter().for_each(|cut| ruling.note(cut));
    }

    fn limit_client(&self, allowance: Allowance, report: &mut Report) -> Result<Option<Denial>, Denial> {
        let priority = report.bands.iter().map(|band| band.priority).max();
        if let (Some(found), Some(most)) = (priority, allowance.most_priority)
            && found > most
        {
            let (place, identity) = (self.place, &self.identity);
            let message =
                format!("{place} does not let {identity:?} ask with priority {found}; wanted at most {most}");
            return Err(Denial::by(place, Why::Priority, message));
        }
        let mut cut = None;
        for band in &mut report.bands {
            if let Some(most) = allowance.most_wants
                && band.wants > most
            {
                cut = Some(self.cut_wants(band.wants, most));
                band.wants = most;
            }
            band.subclients = band.subclients.saturating_mul(allowance.weight);
        }
        if let (Some(peak), Some(most)) = (&mut report.peak, allowance.most_wants) {
            *peak = peak.min(most);
        }
        Ok(cut)
    }

    fn limit_node(
        &self,
        most_clients: Option<u64>,
        most_priority: Option<i64>,
        report: &mut Report,
    ) -> Option<Denial> {
        let mut cut = None;
        if let Some(most) = most_priority
            && let Some(found) = cap_priorities(&mut report.bands, most)
        {
            cut = Some(self.cut_priority(found, most));
        }
        if let Some(most) = most_clients
            && let Some(found) = cap_clients(&mut report.bands, most)
        {
            cut = Some(self.cut_clients(found, most));
        }
        cut
    }

    fn cut_wants(&self, found: f64, most: f64) -> Denial {
        let (place, identity) = (self.place, &self.identity);
        let message = format!("{place}: {identity:?} wants {found}, which counts as {most}");
        Denial::by(place, Why::Wants, message)
    }

    fn cut_priority(&self, found: i64, most: i64) -> Denial {
        let (place, identity) = (self.place, &self.identity);
        let message = format!("{place}: below {identity:?} a priority is {found}, which counts as {most}");
        Denial::by(place, Why::Priority, message)
    }

    fn cut_clients(&self, found: u64, most: u64) -> Denial {
        let (place, identity) = (self.place, &self.identity);
        let message = format!("{place}: {identity:?} stands for {found} clients, which count as {most}");
        Denial::by(place, Why::Clients, message)
    }
}

/// Globs in a message.
pub(super) fn listed(globs: &[Glob]) -> String {
    match globs {
        [] => "none".to_owned(),
        globs => globs.iter().map(|glob| format!("{:?}", glob.as_str())).collect::<Vec<_>>().join(" or "),
    }
}
