//! The status of a resource, for operators: who has what, wants what, until when.

use std::cmp::{Ordering, Reverse};

use compact_str::CompactString;
use lessor_proto::message::HolderKind;
use lessor_proto::{Amount, Incarnation, ResourceId, Time};

use super::explain::{self, BandShare};
use super::holders::Child;
use super::{Resource, SharePolicy, Slot};
use crate::domain_sync::DomainsStatus;
use crate::repository::Kind;

/// A resource as it stands.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "shell", derive(serde::Serialize))]
pub struct ResourceStatus {
    /// Its name.
    pub resource: String,
    /// The template that covers it; absent when none does any more.
    pub template: Option<String>,
    /// `rate` or `gauge`.
    pub kind: &'static str,
    /// The name of the algorithm, as in the configuration.
    pub algorithm: &'static str,
    /// The amount that may be handed out, in units a second or units.
    pub capacity: f64,
    /// The amount that is charged to holders.
    pub leased: f64,
    /// The amount that all of them want together.
    pub wants: f64,
    /// The number of those that hold or want some of it.
    pub clients: usize,
    /// The number of clients that they stand for.
    pub subclients: u64,
    /// Whether only what was out before the start is handed out.
    pub learning: bool,
    /// For how much longer, in seconds.
    pub learning_ends_in_seconds: f64,
    /// Whether more is out than a lowered capacity allows.
    pub in_debt: bool,
    /// The part of all clients that lets everything pass, from 0 to 1: where it is not 0, more may be used than there is.
    pub unenforced: f64,
    /// Units that clients here and below were asked for while they let everything pass, since the leader began, as they have
    /// said.
    pub unenforced_asked: u64,
    /// Those of them that leases would have refused.
    pub unenforced_passed: u64,
    /// Holders that are to let everything pass and have never said that they count: of a version before that, or new.
    pub unenforced_silent: u32,
    /// The capacity of the second limit that is tried beside it; absent: none is.
    pub beside: Option<f64>,
    /// Whether what policies of domains refuse is granted, and counted.
    pub domains_unenforced: bool,
    /// The excess over the capacity without a cut that explains it: 0.
    pub overcommitment: f64,
    /// The capacity that clients fall back to without a server: -1 is without limit.
    pub safe_capacity: f64,
    /// That of all of them together, which nothing is reserved for; absent without limit.
    pub safe_capacity_out: Option<f64>,
    /// The number of times that a life of a client id went on reporting after another had appeared.
    pub duplicate_client_ids: u64,
    /// The status of the exchange between clients about its domains; absent if there is none.
    pub domains: Option<DomainsStatus>,
    /// Those who hold it, as many as were asked for.
    pub holders: Vec<HolderStatus>,
}

/// One holder as it stands.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "shell", derive(serde::Serialize))]
pub struct HolderStatus {
    /// Its id.
    pub client: String,
    /// `client` or `node`.
    pub kind: &'static str,
    /// Which life of the id, as a mark that tells it from others. Who knows its number could give back what it has.
    pub session: String,
    /// The amount that it is charged for: the most that it may use.
    pub has: f64,
    /// The amount that it wants.
    pub wants: f64,
    /// The amount due to it.
    pub share: f64,
    /// The charge as compared with the share: `settled`, `gives back` until it has acknowledged its share, `waits`
    /// until others have, `borrows` what nobody wants, `keeps` while the resource is learning, or `gone` when
    /// another life of the id has taken its place.
    pub state: &'static str,
    /// The greatest of its priorities.
    pub priority: i64,
    /// The number of clients that it stands for.
    pub subclients: u64,
    /// When the last of what it is charged for ends, in seconds from now.
    pub ends_in_seconds: f64,
    /// When it was last heard of, in seconds ago: in a report, or a heartbeat that renewed it.
    pub heard_seconds_ago: f64,
    /// Whether another life of the same id has appeared since.
    pub superseded: bool,
    /// Its demands where there are several: one by one if they are few, and else those of each priority as one.
    pub bands: Vec<BandShare>,
}

/// Demands of one holder that are shown one by one.
const MOST_DEMANDS: usize = 32;

/// A holder by the order in which holders are shown: those with the most first, and else by their names.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct RankedHolder {
    charge: Reverse<Amount>,
    name: CompactString,
    session: Incarnation,
    slot: Slot,
}

// === impl Resource ===

impl Resource {
    /// The status of the resource, with none of its holders one by one.
    pub(crate) fn status(&self, now: Time) -> ResourceStatus {
        let safe = self.safe_capacity();
        let (advised, tried) = (self.advised(), self.unenforced());
        // Without a limit on the sum, what the template says.
        let configured = if self.terms.is_covered() { self.terms.shared() } else { Amount::ZERO };
        ResourceStatus {
            resource: self.id.to_string(),
            template: self.template().map(|template| template.glob.to_string()),
            kind: match self.terms.kind {
                Kind::Rate => "rate",
                Kind::Gauge => "gauge",
            },
            algorithm: algorithm_name(self.terms.policy),
            capacity: self.ledger.limit().unwrap_or(configured).as_f64(),
            leased: units(self.ledger.lent()),
            wants: self.holders.shares().wants(),
            clients: self.holders.children().len(),
            subclients: self.holders.shares().weight(),
            learning: self.is_learning(now),
            learning_ends_in_seconds: match self.is_learning(now) {
                true => self.learning.until().since(now).as_secs_f64(),
                false => 0.0,
            },
            in_debt: self.ledger.in_debt(),
            unenforced: 1.0 - self.terms.enforce.as_f64(),
            unenforced_asked: tried.asked,
            unenforced_passed: tried.passed,
            unenforced_silent: tried.silent,
            beside: self.terms.beside.map(Amount::as_f64),
            domains_unenforced: self
                .terms
                .domains
                .as_ref()
                .is_some_and(|domains| domains.policies.unenforced()),
            overcommitment: self.ledger.overcommitment().as_f64(),
            safe_capacity: safe,
            safe_capacity_out: (safe >= 0.0 || advised == 0).then_some(safe.max(0.0) * advised as f64),
            duplicate_client_ids: self.holders.duplicates(),
            domains: None,
            holders: Vec::new(),
        }
    }

    /// The name.
    pub(crate) fn id(&self) -> &ResourceId {
        &self.id
    }

    /// The holders at `from` and in the slots after it, by slot, with where they rank.
    pub(crate) fn ranked_from(&self, from: Slot) -> impl Iterator<Item = (Slot, RankedHolder)> {
        self.holders.children().iter_from(from).map(|(slot, child)| {
            let charge = Reverse(child.account().charge());
            (slot, RankedHolder { charge, name: child.name.clone(), session: child.life.session, slot })
        })
    }

    /// The status of a holder that was ranked, unless it has gone since.
    pub(crate) fn holder_status(&self, now: Time, ranked: &RankedHolder) -> Option<HolderStatus> {
        let is_it = |child: &&Child| child.name == ranked.name && child.life.session == ranked.session;
        let child = self.holders.children().get(ranked.slot).filter(is_it)?;
        Some(self.one_status(now, ranked.slot, child))
    }

    fn one_status(&self, now: Time, slot: Slot, child: &Child) -> HolderStatus {
        let share = match child.is_withdrawn() {
            true => 0.0,
            false => self.share(child.demands()),
        };
        HolderStatus {
            client: child.name.to_string(),
            kind: match child.kind {
                HolderKind::Client => "client",
                HolderKind::Node => "node",
            },
            session: self.holders.children().mark(child.life.session),
            has: child.account().charge().as_f64(),
            wants: child.demands().wants(),
            share,
            state: self.state(now, slot, child, share),
            priority: child.demands().iter().map(|demand| demand.priority).max().unwrap_or(0),
            subclients: child.demands().weight(),
            ends_in_seconds: child.account().last_end().map_or(0.0, |end| end.since(now).as_secs_f64()),
            heard_seconds_ago: now.since(child.last.basis).as_secs_f64(),
            superseded: child.flags.superseded,
            bands: self.shown_bands(child),
        }
    }

    fn shown_bands(&self, child: &Child) -> Vec<BandShare> {
        let count = child.demands().iter().count();
        if count < 2 {
            return Vec::new();
        }
        let bands = child.demands().iter().map(|demand| BandShare {
            priority: demand.priority,
            wants: demand.wants,
            weight: demand.weight.into(),
            share: if child.is_withdrawn() { 0.0 } else { self.share_of(&demand) },
        });
        if count > MOST_DEMANDS { explain::gathered(bands) } else { bands.collect() }
    }

    fn state(&self, now: Time, slot: Slot, child: &Child, share: f64) -> &'static str {
        let (has, share) = (child.account().charge(), Amount::from_f64(share));
        match has.cmp(&share) {
            _ if child.is_withdrawn() => "gone",
            _ if self.is_learning(now) => "keeps",
            Ordering::Greater if has == self.holds(slot) && self.borrows(slot) => "borrows",
            Ordering::Greater if has.saturating_sub(share) >= self.terms.grain() => "gives back",
            // A gauge has no use for a part of a unit.
            Ordering::Less if share.saturating_sub(has) >= self.terms.grain() => "waits",
            _ => "settled",
        }
    }
}

/// As the configuration calls it.
fn algorithm_name(policy: SharePolicy) -> &'static str {
    match policy {
        SharePolicy::None => "NO_ALGORITHM",
        SharePolicy::Static => "STATIC",
        SharePolicy::ProportionalShare => "PROPORTIONAL_SHARE",
        SharePolicy::FairShare => "FAIR_SHARE",
    }
}

fn units(micros: u128) -> f64 {
    micros as f64 / Amount::MICROS_PER_UNIT as f64
}
