//! Recalls: leases that an operator takes back, and holders that get nothing of a resource for a while after.
//!
//! The holder counts as one that wants nothing, whatever it says, so its share is nothing: it is told so at once where it
//! listens, and otherwise when it asks again. What it has stays charged until it acknowledges that, or its lease has ended, so a
//! recall over-commits nothing. Nothing is refused, and what else a holder says goes on. When the recall is over, a stream
//! is ended, and its holder comes back and says everything again.
//!
//! Recalls are known to this leader alone, and end with it.

use std::collections::BTreeMap;
use std::time::Duration;

use lessor_proto::message::{Answer, Ask, Band, BoundBy, HolderKind, Report};
use lessor_proto::{Amount, ClientId, ResourceId, Time};

use super::{Node, Peer};
use crate::resource::RecalledLife;

/// Recalls at a time, at the most.
const MOST: usize = 1_000;

/// The holders that get nothing of a resource, each until some time.
#[derive(Clone, Default, Debug)]
pub(super) struct Recalls(BTreeMap<(ResourceId, ClientId), Time>);

/// A lease that was recalled.
#[derive(Clone, PartialEq, Debug)]
pub struct RecalledLease {
    /// The kind of its holder.
    pub kind: HolderKind,
    /// The amount that stays charged until it is acknowledged or has ended.
    pub charged: Amount,
    /// The time until the last of that ends by itself.
    pub ends_in: Duration,
    /// Whether the holder listens, and was told at once; any other finds out when it asks again.
    pub is_told: bool,
}

/// A recall that is in force.
#[derive(Clone, PartialEq, Debug)]
pub struct RecallStatus {
    /// The resource.
    pub resource: ResourceId,
    /// The id of the client or node.
    pub holder: ClientId,
    /// The time for which it gets nothing more.
    pub ends_in: Duration,
}

/// Why nothing was recalled.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotRecalled {
    /// Nobody of that id is known there.
    #[error("nobody called {holder:?} holds or wants {resource:?}")]
    Nobody {
        /// The resource.
        resource: String,
        /// The id.
        holder: String,
    },
    /// There are too many recalls already.
    #[error("{MOST} recalls are in force; wanted fewer: some end by themselves, others can be lifted")]
    Full,
}

// === impl Recalls ===

impl Recalls {
    /// Whether `holder` gets nothing of `resource` at `now`.
    pub(super) fn holds_back(&self, now: Time, resource: &ResourceId, holder: &ClientId) -> bool {
        // Hardly ever any, and asked for with each report.
        !self.0.is_empty()
            && self.0.get(&(resource.clone(), holder.clone())).is_some_and(|&until| now < until)
    }

    /// Until when `holder` gets nothing of `resource`, if it does not.
    fn until(&self, resource: &ResourceId, holder: &ClientId) -> Option<Time> {
        self.0.get(&(resource.clone(), holder.clone())).copied()
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next moment at which one is over.
    pub(super) fn next_deadline(&self) -> Option<Time> {
        self.0.values().copied().min()
    }
}

// === impl Node ===

impl Node {
    /// Takes back what `holder` has of a resource, in every life of it, and gives it nothing more of that for `time`.
    ///
    /// # Errors
    /// When nobody of that id holds or wants any of it, or there are too many recalls.
    pub fn recall(
        &mut self,
        now: Time,
        id: &ResourceId,
        holder: &ClientId,
        time: Duration,
    ) -> Result<Vec<RecalledLease>, NotRecalled> {
        let key = (id.clone(), holder.clone());
        if self.orders.recalls.0.len() >= MOST && !self.orders.recalls.0.contains_key(&key) {
            return Err(NotRecalled::Full);
        }
        let lives = self.lives(now, id, holder);
        if lives.is_empty() {
            return Err(NotRecalled::Nobody { resource: id.to_string(), holder: holder.to_string() });
        }
        self.orders.recalls.0.insert(key, now + time);
        for life in &lives {
            if let Some(peer) = life.peer {
                self.streams.waiting.forget(peer, Some(std::slice::from_ref(id)));
            }
            self.with_advanced(now, id, |resource, around| {
                resource.revoke(now, life.slot, BoundBy::Recall, around.cx, around.peers);
            });
        }
        // Others may be told more meanwhile, and these less: what is charged is what counts.
        let recalled = self.lives(now, id, holder).into_iter().map(|life| RecalledLease {
            kind: life.kind,
            charged: life.charged,
            ends_in: life.ends.since(now),
            is_told: life.peer.is_some(),
        });
        Ok(recalled.collect())
    }

    /// Lets `holder` have of a resource again what is due to it. Returns whether it was held back.
    pub fn lift_recall(&mut self, now: Time, id: &ResourceId, holder: &ClientId) -> bool {
        let was_held_back =
            self.orders.recalls.0.remove(&(id.clone(), holder.clone())).is_some_and(|until| now < until);
        self.let_speak_again(now, id, holder);
        was_held_back
    }

    /// The recalls that are in force.
    pub fn recalls(&self, now: Time) -> impl Iterator<Item = RecallStatus> {
        let in_force = self.orders.recalls.0.iter().filter(move |(_, until)| now < **until);
        in_force.map(move |((resource, holder), until)| RecallStatus {
            resource: resource.clone(),
            holder: holder.clone(),
            ends_in: until.since(now),
        })
    }

    /// The request as it counts while its holder is held back; nothing where it counts as it is.
    pub(super) fn held_back(&self, now: Time, ask: &Ask) -> Option<Ask> {
        if self.orders.is_empty() {
            return None;
        }
        let is_held_back = |report: &Report| {
            self.is_seized(ask, report)
                || self.holds_back(now, ask.kind, &ask.holder, &report.resource).is_some()
        };
        ask.reports.iter().any(is_held_back).then(|| {
            let reports = ask.reports.iter().map(|report| match is_held_back(report) {
                true => wanting_nothing(report),
                false => report.clone(),
            });
            Ask { reports: reports.collect(), ..ask.clone() }
        })
    }

    /// Why `holder` gets nothing of a resource for now, if that is so: a recall, or an override that drains it.
    pub(super) fn holds_back(
        &self,
        now: Time,
        kind: HolderKind,
        holder: &ClientId,
        id: &ResourceId,
    ) -> Option<BoundBy> {
        if self.orders.recalls.holds_back(now, id, holder) {
            return Some(BoundBy::Recall);
        }
        self.is_drained(kind, holder, id).then_some(BoundBy::Override)
    }

    /// Until when `holder` is held back from a resource, if it is.
    pub(super) fn held_back_until(&self, now: Time, id: &ResourceId, holder: &ClientId) -> Option<Time> {
        self.orders.recalls.until(id, holder).filter(|&until| now < until)
    }

    /// Says of the grants in an answer to `holder` that are of nothing because they are held back.
    pub(super) fn name_recalls(&self, now: Time, kind: HolderKind, holder: &ClientId, answer: &mut Answer) {
        for grant in &mut answer.grants {
            grant.bound_by = self.holds_back(now, kind, holder, &grant.resource).or(grant.bound_by);
        }
    }

    /// Lets end the recalls whose time has come.
    pub(super) fn end_recalls(&mut self, now: Time) {
        let over: Vec<_> = self.orders.recalls.0.extract_if(.., |_, until| *until <= now).collect();
        for ((id, holder), _) in over {
            self.let_speak_again(now, &id, &holder);
        }
    }

    /// Ends the streams on which the holder listens, or waits to be heard: it is to say again what it wants, which did not count.
    fn let_speak_again(&mut self, now: Time, id: &ResourceId, holder: &ClientId) {
        let mut peers: Vec<Peer> =
            self.lives(now, id, holder).into_iter().filter_map(|life| life.peer).collect();
        peers.extend(self.streams.waiting.peers(id, holder));
        peers.into_iter().for_each(|peer| self.drop_stream(now, peer));
    }

    fn lives(&mut self, now: Time, id: &ResourceId, holder: &ClientId) -> Vec<RecalledLife> {
        let lives = self.with(now, id, |resource, _| resource.lives_of(holder.as_str()));
        lives.unwrap_or_default()
    }
}

/// The report as it counts of one that wants nothing: it promises what it promises.
fn wanting_nothing(report: &Report) -> Report {
    let priority = report.bands.first().map_or(0, |band| band.priority);
    let nothing = Band { priority, subclients: 1, wants: 0.0 };
    Report { bands: smallvec::smallvec![nothing], peak: None, ..report.clone() }
}
