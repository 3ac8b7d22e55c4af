//! The pass of a stream: what the holder at its other end may say by the rules of access, and how often it is listened to.
//!
//! A holder that says too much is not refused but not read: the connection fills up, and the peer waits. The node is never asked.

use std::collections::BTreeSet;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use lessor_client::internals::clock;
use lessor_proto::message::{Band, Hello, HolderKind, Refusal, Report, Up};
use lessor_proto::{ClientId, ResourceId, Time};

use super::super::gate::{Admitted, PaidStream, Purse, Visit};
use crate::access::{Rights, Tempo};

/// The pass of one stream.
pub(super) struct Pass {
    kind: HolderKind,
    holder: ClientId,
    /// Absent where there are no rules.
    guest: Option<Guest>,
    pace: Tempo,
    /// Whether the next message is paid for.
    is_paid: bool,
    /// The wait until it can be.
    wait: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

/// A holder whom rules are held against.
struct Guest {
    visit: Visit,
    standing: Standing,
    /// The resources that it has spoken of and was let, be it only noted that it may not.
    held: BTreeSet<ResourceId>,
    /// Those that it might hold once, and may no more.
    lost: BTreeSet<ResourceId>,
    purse: Option<Arc<Purse>>,
    _paid: Option<PaidStream>,
}

/// The standing of a holder by the rules.
enum Standing {
    May(Rights),
    /// No rule lets it, and everything is allowed all the same.
    Audited,
    /// It may nothing any more.
    Out(Refusal),
}

/// The outcome of a look at rules that have changed.
#[derive(PartialEq, Debug)]
pub(super) enum Review {
    /// Nothing has changed for it.
    Same,
    /// These it may hold no more.
    Lost(Vec<ResourceId>),
    /// A limit has changed: the holder has to say everything again, as it counts otherwise.
    Anew,
    /// The token that it goes by has ended.
    Over,
}

/// Messages a second of a client, and of a node, which speaks for many. Ours send some ten a second.
const MESSAGES: [f64; 2] = [500.0, 5_000.0];
/// The time in which messages may come that are then read at once.
const BURST: Duration = Duration::from_secs(2);

// === impl Pass ===

impl Pass {
    /// The pass of whoever says `hello`.
    ///
    /// # Errors
    /// When no rule lets it open a stream as that holder.
    pub(super) fn open(visit: Option<Visit>, hello: &Hello) -> Result<Pass, Refusal> {
        let (kind, holder) = (hello.kind, hello.holder.clone());
        let guest = visit.map(|visit| Guest::enter(visit, kind, &holder)).transpose()?;
        let [of_client, of_node] = MESSAGES;
        let rate = if kind == HolderKind::Node { of_node } else { of_client };
        Ok(Pass { kind, holder, guest, pace: Tempo::new(rate, BURST), is_paid: false, wait: None })
    }

    /// Whether the next message may be read. It is paid for once, however often that is asked before it comes.
    pub(super) fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            if self.is_paid {
                return Poll::Ready(());
            }
            if let Some(wait) = &mut self.wait {
                std::task::ready!(wait.as_mut().poll(cx));
                self.wait = None;
            }
            match self.pay(clock::now()) {
                Ok(()) => self.is_paid = true,
                Err(at) => self.wait = Some(Box::pin(clock::sleep_until(at))),
            }
        }
    }

    /// A message has been read.
    pub(super) fn spend(&mut self) {
        self.is_paid = false;
    }

    /// Holds a message against the rules, and cuts what it says down to what may be said. Gives back nothing where it is passed
    /// over.
    ///
    /// # Errors
    /// When it is a report that is refused.
    pub(super) fn check(&mut self, mut up: Up) -> Result<Option<Up>, Refusal> {
        let Some(guest) = &mut self.guest else { return Ok(Some(up)) };
        let may_pass = match &mut up {
            Up::Report(report) => {
                for report in &mut report.reports {
                    guest.check(report)?;
                }
                true
            }
            Up::Release { resources, .. } => {
                guest.forget(resources);
                true
            }
            Up::Domains(report) => guest.may_speak_of(&report.resource),
            Up::Units(asked) => guest.may_speak_of(&asked.resource),
            Up::Hello(_) | Up::Bye => true,
        };
        Ok(may_pass.then_some(up))
    }

    /// Looks at the rules again, if they have changed.
    pub(super) fn review(&mut self) -> Review {
        match &mut self.guest {
            Some(guest) if guest.visit.is_over() => Review::Over,
            Some(guest) if guest.visit.is_of_before() => guest.review(self.kind, &self.holder),
            _ => Review::Same,
        }
    }

    fn pay(&mut self, now: Time) -> Result<(), Time> {
        let mut ahead = self.pace;
        ahead.take(now)?;
        if let Some(purse) = self.guest.as_ref().and_then(|guest| guest.purse.as_ref()) {
            purse.pay_report(now)?;
        }
        self.pace = ahead;
        Ok(())
    }
}

impl fmt::Debug for Pass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pass").field("holder", &self.holder).finish_non_exhaustive()
    }
}

// === impl Guest ===

impl Guest {
    fn enter(visit: Visit, kind: HolderKind, holder: &ClientId) -> Result<Guest, Refusal> {
        let standing = Standing::from(visit.rights(kind, holder)?);
        let purse = visit.purse();
        let paid = purse.as_ref().map(Purse::pay_stream).transpose()?;
        Ok(Guest { visit, standing, held: BTreeSet::new(), lost: BTreeSet::new(), purse, _paid: paid })
    }

    /// Holds one report against the rules.
    fn check(&mut self, report: &mut Report) -> Result<(), Refusal> {
        if !self.held.contains(&report.resource) && !self.admit(report)? {
            return Ok(());
        }
        match &self.standing {
            Standing::May(rights) => self.visit.limit(rights, report),
            Standing::Audited | Standing::Out(_) => Ok(()),
        }
    }

    /// Lets it speak of a resource that it did not speak of before. Of one that it had and may have no more it is heard what it
    /// gives up, and nothing else: then this is false.
    fn admit(&mut self, report: &mut Report) -> Result<bool, Refusal> {
        let admitted = match &self.standing {
            Standing::Audited => Ok(()),
            Standing::Out(refusal) => Err(refusal.clone()),
            Standing::May(rights) => {
                rights.may_hold(&report.resource).or_else(|denial| self.visit.deny(&denial))
            }
        };
        let Err(refusal) = admitted else {
            self.check_room()?;
            self.lost.remove(&report.resource);
            self.held.insert(report.resource.clone());
            return Ok(true);
        };
        if !self.lost.contains(&report.resource) {
            return Err(refusal);
        }
        let priority = report.bands.first().map_or(0, |band| band.priority);
        report.bands = smallvec::smallvec![Band { priority, subclients: 1, wants: 0.0 }];
        report.peak = None;
        Ok(false)
    }

    fn check_room(&self) -> Result<(), Refusal> {
        let count = self.held.len() + 1;
        match self.purse.as_ref().and_then(|purse| purse.resources()) {
            Some(limit) if count > limit => {
                let what = "resources on one stream of this identity".to_owned();
                Err(Refusal::Exhausted { what, count, limit })
            }
            _ => Ok(()),
        }
    }

    /// Whether it may say something of `resource` that is no report.
    fn may_speak_of(&self, resource: &ResourceId) -> bool {
        match &self.standing {
            Standing::Audited => true,
            Standing::Out(_) => false,
            Standing::May(rights) => {
                self.held.contains(resource)
                    || rights.may_hold(resource).or_else(|denial| self.visit.deny(&denial)).is_ok()
            }
        }
    }

    fn forget(&mut self, resources: &[ResourceId]) {
        for resource in resources {
            self.held.remove(resource);
            self.lost.remove(resource);
        }
    }

    /// Whether it may hold `resource` as things stand, be it only noted that it may not.
    fn may_hold(&self, resource: &ResourceId) -> bool {
        match &self.standing {
            Standing::May(rights) => !self.visit.refuses() || rights.may_hold(resource).is_ok(),
            Standing::Audited => true,
            Standing::Out(_) => false,
        }
    }

    fn review(&mut self, kind: HolderKind, holder: &ClientId) -> Review {
        let refused = self.visit.refuses();
        self.visit = self.visit.again();
        let standing = match self.visit.rights(kind, holder) {
            Ok(admitted) => Standing::from(admitted),
            Err(refusal) => Standing::Out(refusal),
        };
        let before = std::mem::replace(&mut self.standing, standing);
        let purse = self.visit.purse();
        if let (Standing::May(before), Standing::May(rights)) = (&before, &self.standing)
            && !before.counts_as(rights)
        {
            return Review::Anew;
        }
        self.purse = purse;
        if self.lost.iter().any(|id| self.may_hold(id)) {
            // What it wants of that was not heard.
            return Review::Anew;
        }
        let lost: Vec<_> = self.held.iter().filter(|id| !self.may_hold(id)).cloned().collect();
        for id in &lost {
            self.held.remove(id);
            self.lost.insert(id.clone());
        }
        match (lost.is_empty(), refused == self.visit.refuses()) {
            (false, _) => Review::Lost(lost),
            (true, true) => Review::Same,
            // What is only noted is not cut down.
            (true, false) => Review::Anew,
        }
    }
}

// === impl Standing ===

impl From<Admitted> for Standing {
    fn from(admitted: Admitted) -> Standing {
        match admitted {
            Admitted::With(rights) => Standing::May(rights),
            Admitted::Audited => Standing::Audited,
        }
    }
}
