//! Seizures: leases whose charge an operator credits without a word of their holders, because he has made sure by other means that
//! nothing is used under them any more.
//!
//! Nothing else that an operator does can break the promise; this can, if he errs. So a seizure is counted as *at risk* until the
//! lease would have ended: that may be used twice. The life that it is taken from is told that it has nothing, is charged for nothing
//! by what it shows, and gets nothing before that; another life of the id may have what is due to it at once.

use std::time::Duration;

use lessor_proto::message::{Ask, BoundBy, HolderKind, Report};
use lessor_proto::{Amount, ClientId, Incarnation, ResourceId, Time};

use super::{Node, NotRecalled};
use crate::resource::{Life, holder};

/// The lives whose leases were seized, each until that would have ended.
#[derive(Clone, Default, Debug)]
pub(super) struct Seizures(Vec<SeizedLife>);

#[derive(Clone, Debug)]
struct SeizedLife {
    resource: ResourceId,
    holder: ClientId,
    session: Incarnation,
    amount: Amount,
    until: Time,
}

/// A lease that was seized.
#[derive(Clone, PartialEq, Debug)]
pub struct SeizedLease {
    /// The amount that is charged to nobody any more.
    pub amount: Amount,
    /// The time for which it may be used twice, if its holder lives.
    pub at_risk: Duration,
}

/// The most seizures that are remembered.
const MOST: usize = 1_000;

// === impl Seizures ===

impl Seizures {
    /// Whether a report comes from a life whose lease of that was seized.
    fn are_of(&self, ask: &Ask, report: &Report, session: Option<Incarnation>) -> bool {
        self.0.iter().any(|life| {
            life.resource == report.resource && life.holder == ask.holder && Some(life.session) == session
        })
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// When the first of them is over.
    pub(super) fn next_end(&self) -> Option<Time> {
        self.0.iter().map(|life| life.until).min()
    }

    /// The amount that may be used twice.
    pub(super) fn at_risk(&self, now: Time, id: &ResourceId) -> Amount {
        let of_it = self.0.iter().filter(|life| life.resource == *id && life.until > now);
        of_it.map(|life| life.amount).fold(Amount::ZERO, Amount::saturating_add)
    }
}

// === impl Node ===

impl Node {
    /// Credits what a client is charged for of a resource, in every life of it that is known, without its acknowledgement.
    ///
    /// # Errors
    /// When no client of that id holds or wants any of it, or too many leases were seized already.
    pub fn seize(
        &mut self,
        now: Time,
        id: &ResourceId,
        client: &ClientId,
    ) -> Result<Vec<SeizedLease>, NotRecalled> {
        let lives = self.with(now, id, |resource, _| resource.lives_of(client.as_str()));
        let mut lives = lives.unwrap_or_default();
        lives.retain(|life| life.kind == HolderKind::Client);
        if lives.is_empty() {
            return Err(NotRecalled::Nobody { resource: id.to_string(), holder: client.to_string() });
        }
        if self.orders.seizures.0.len() + lives.len() > MOST {
            return Err(NotRecalled::Full);
        }
        let mut seized = Vec::with_capacity(lives.len());
        for life in lives {
            if let Some(peer) = life.peer {
                self.streams.waiting.forget(peer, Some(std::slice::from_ref(id)));
            }
            let session = self.with(now, id, |resource, around| {
                resource.revoke(now, life.slot, BoundBy::Recall, around.cx, around.peers);
                resource.seize(life.slot, around.peers)
            });
            let (resource, holder) = (id.clone(), client.clone());
            let (amount, until) = (life.charged, life.ends);
            self.orders.seizures.0.extend(session.map(|session| SeizedLife {
                resource,
                holder,
                session,
                amount,
                until,
            }));
            seized.push(SeizedLease { amount, at_risk: until.since(now) });
        }
        Ok(seized)
    }

    /// Whether a report comes from a life whose lease of that was seized.
    pub(super) fn is_seized(&self, ask: &Ask, report: &Report) -> bool {
        // Hardly ever any, and asked for with each report.
        if self.orders.seizures.is_empty() || ask.kind != HolderKind::Client {
            return false;
        }
        let session = match holder(ask, report, &self.config).life {
            Life::Incarnation(session) => Some(session),
            Life::Session(life) => Some(life.session),
            Life::Leader { .. } | Life::Unnamed(_) | Life::New => None,
        };
        self.orders.seizures.are_of(ask, report, session)
    }

    /// Forgets those that are over, and ends the streams of these lives: what they wanted meanwhile was not heard.
    pub(super) fn end_seizures(&mut self, now: Time) {
        if self.orders.seizures.next_end().is_none_or(|end| end > now) {
            return;
        }
        let over: Vec<SeizedLife> = self.orders.seizures.0.extract_if(.., |life| life.until <= now).collect();
        for SeizedLife { holder, session, .. } in over {
            if let Some(peer) = self.streams.of_life(HolderKind::Client, holder, session) {
                self.drop_stream(now, peer);
            }
        }
    }
}
