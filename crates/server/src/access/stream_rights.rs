//! Rights on a stream: what the holder at its other end may say, what it was let hold, and what it loses when the rules change.
//!
//! A report is held against them before the node hears it, so the node decides about nothing but capacity. What a holder may have no
//! more is for the caller to recall ([`Review::Lost`]); of that it is heard only what it gives up.

use std::collections::BTreeSet;

use lessor_proto::ResourceId;
use lessor_proto::message::{Band, Refusal, Report, Up};

use super::Stance;
use super::admitted::Admitted;
use super::denial::Denial;
use super::rights::Rights;
use super::ruling::Ruling;

/// The rights of the holder at the other end of one stream.
#[derive(Clone, Debug)]
pub struct StreamRights {
    standing: Standing,
    stance: Stance,
    /// The resources that it has spoken of and was let, be it only noted that it may not.
    held: BTreeSet<ResourceId>,
    /// Those that it might hold once, and may no more.
    lost: BTreeSet<ResourceId>,
}

/// The standing of a holder by the rules.
#[derive(Clone, Debug)]
enum Standing {
    May(Rights),
    /// No rule lets it, and everything is allowed all the same.
    Audited,
    /// It may nothing any more.
    Out(Denial),
}

/// The outcome of a look at rules that have changed.
#[derive(Clone, PartialEq, Debug)]
pub enum Review {
    /// Nothing has changed for the holder.
    Same,
    /// These it may hold no more: they are to be recalled.
    Lost(Vec<ResourceId>),
    /// A limit has changed: the holder has to say everything again, as it counts otherwise.
    Anew,
    /// The token that it goes by has ended.
    Over,
}

// === impl StreamRights ===

impl StreamRights {
    /// The rights of a holder that has just opened a stream, and was admitted to by rules of that stance.
    #[must_use]
    pub fn new(admitted: Admitted, stance: Stance) -> StreamRights {
        let standing = Standing::from(admitted);
        StreamRights { standing, stance, held: BTreeSet::new(), lost: BTreeSet::new() }
    }

    /// Holds a message against the rules, and cuts what it says down to what may be said. No more than `most` resources may be held
    /// on the stream, if that is given.
    pub fn check(&mut self, up: &mut Up, most: Option<usize>) -> Ruling {
        let mut ruling = Ruling::default();
        match up {
            Up::Report(report) => {
                for report in &mut report.reports {
                    self.check_report(report, most, &mut ruling);
                    if ruling.refusal.is_some() {
                        break;
                    }
                }
            }
            Up::Release { resources, .. } => self.forget(resources),
            Up::Domains(report) => self.check_other(&report.resource, &mut ruling),
            Up::Units(asked) => self.check_other(&asked.resource, &mut ruling),
            Up::Jobs(news) => news.retain(|news| {
                let mut of_one = Ruling::default();
                self.check_other(&news.resource, &mut of_one);
                !of_one.is_passed_over
            }),
            // It answers what was asked of it, and nothing is granted by it.
            Up::View(_) => ruling.is_passed_over = matches!(self.standing, Standing::Out(_)),
            Up::Hello(_) | Up::Bye => {}
        }
        ruling
    }

    /// Goes by other rules from here on, of the stance `stance`, which admit the holder to this.
    pub fn review(&mut self, admitted: Result<Admitted, Denial>, stance: Stance) -> Review {
        let standing = match admitted {
            Ok(admitted) => Standing::from(admitted),
            Err(denial) => Standing::Out(denial),
        };
        let before = std::mem::replace(&mut self.standing, standing);
        let stance_before = std::mem::replace(&mut self.stance, stance);
        if !before.counts_as(&self.standing) || self.lost.iter().any(|id| self.may_hold(id)) {
            // What it wants of what it had lost was not heard.
            return Review::Anew;
        }
        let lost: Vec<_> = self.held.iter().filter(|id| !self.may_hold(id)).cloned().collect();
        for id in &lost {
            self.held.remove(id);
            self.lost.insert(id.clone());
        }
        match (lost.is_empty(), stance_before == stance) {
            (false, _) => Review::Lost(lost),
            (true, true) => Review::Same,
            // What is only noted is not cut down.
            (true, false) => Review::Anew,
        }
    }

    /// Whether the holder may have some of `resource` as things stand, be it only noted that it may not.
    #[must_use]
    pub fn may_hold(&self, resource: &ResourceId) -> bool {
        match &self.standing {
            Standing::May(rights) => self.stance == Stance::Audit || rights.may_hold(resource).is_ok(),
            Standing::Audited => true,
            Standing::Out(_) => false,
        }
    }

    fn check_report(&mut self, report: &mut Report, most: Option<usize>, ruling: &mut Ruling) {
        if !self.held.contains(&report.resource) && !self.admit(report, most, ruling) {
            return;
        }
        if let Standing::May(rights) = &self.standing {
            rights.limit_by(self.stance, report, ruling);
        }
    }

    /// Lets the holder speak of a resource that it did not speak of before. Of one that it had and may have no more it is heard what
    /// it gives up, and nothing else: then this is false, as it is where the report is refused.
    fn admit(&mut self, report: &mut Report, most: Option<usize>, ruling: &mut Ruling) -> bool {
        let denial = match &self.standing {
            Standing::Audited => None,
            Standing::Out(denial) => Some(denial.clone()),
            Standing::May(rights) => rights.may_hold(&report.resource).err(),
        };
        let is_refused = match denial {
            // That it is out was noted when that was found.
            Some(denial) if matches!(self.standing, Standing::Out(_)) => {
                ruling.refusal = Some(denial.refusal());
                true
            }
            Some(denial) => ruling.deny(self.stance, denial),
            None => false,
        };
        if is_refused {
            if self.lost.contains(&report.resource) {
                ruling.refusal = None;
                only_give_up(report);
            }
            return false;
        }
        let count = self.held.len() + 1;
        if let Some(limit) = most.filter(|&most| count > most) {
            let what = "resources on one stream of this identity".to_owned();
            ruling.refusal = Some(Refusal::Exhausted { what, count, limit });
            return false;
        }
        self.lost.remove(&report.resource);
        self.held.insert(report.resource.clone());
        true
    }

    /// Passes over what is said of `resource` and is no report, unless the holder may speak of it.
    fn check_other(&self, resource: &ResourceId, ruling: &mut Ruling) {
        ruling.is_passed_over = match &self.standing {
            Standing::Audited => false,
            Standing::Out(_) => true,
            Standing::May(_) if self.held.contains(resource) => false,
            Standing::May(rights) => {
                let denial = rights.may_hold(resource).err();
                denial.is_some_and(|denial| ruling.deny(self.stance, denial))
            }
        };
        ruling.refusal = None;
    }

    fn forget(&mut self, resources: &[ResourceId]) {
        for resource in resources {
            self.held.remove(resource);
            self.lost.remove(resource);
        }
    }
}

/// Leaves of a report what its holder gives up.
fn only_give_up(report: &mut Report) {
    report.bands = smallvec::smallvec![Band { priority: 0, subclients: 1, wants: 0.0 }];
    report.peak = None;
}

// === impl Standing ===

impl Standing {
    /// Whether what a holder says counts the same by both. Of one that was out nothing counted.
    fn counts_as(&self, other: &Standing) -> bool {
        match (self, other) {
            (Standing::May(before), Standing::May(rights)) => before.counts_as(rights),
            (Standing::May(rights), Standing::Audited) | (Standing::Audited, Standing::May(rights)) => {
                rights.counts_plainly()
            }
            _ => true,
        }
    }
}

impl From<Admitted> for Standing {
    fn from(admitted: Admitted) -> Standing {
        match admitted {
            Admitted::With(rights) => Standing::May(rights),
            Admitted::Audited(_) => Standing::Audited,
        }
    }
}
