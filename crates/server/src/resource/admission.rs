//! Admission of reports: limits on who may hold a resource, and who makes room where one is reached.

use lessor_proto::Amount;
use lessor_proto::message::{Ask, Refusal, Report};

use super::hearing::demands;
use super::identity::holder;
use super::{CallContext, Resource, legacy};
use crate::mutation::Rule;
use crate::streams::Peers;

// === impl Resource ===

impl Resource {
    /// Whether the report would be taken: then the number of holders that it adds. Where there is no room, those who have and want
    /// nothing make some.
    pub(crate) fn admit(
        &mut self,
        ask: &Ask,
        report: &Report,
        cx: CallContext<'_>,
        peers: &mut Peers,
    ) -> Result<usize, Refusal> {
        legacy::admit(&self.terms, ask, cx.config)?;
        let holder = holder(ask, report, cx.config);
        let limit = cx.config.message.bands_per_resource;
        // Hardly any resource has nearly as many as it may: then it is all the same which ones there are.
        if self.holders.shares().bands() + report.bands.len() > limit {
            let demands = demands(ask, report, &self.terms, cx);
            let bands = match takes_place(report) {
                true => self.make_room_for_bands(&demands, cx, peers),
                false => self.bands_with(&demands),
            };
            exhausted(|| format!("priorities of {:?}", self.id), bands, limit)?;
        }
        let is_known = self.holders.children().locate(holder).is_some();
        // A life that was never answered is replaced, and leaves its place to the next.
        if is_known || !self.unanswered(holder, cx).is_empty() {
            return Ok(0);
        }
        if self.holders.children().len() >= cx.config.clients_per_resource
            && takes_place(report)
            && cx.config.rules.keep(Rule::IdleMakeRoom)
        {
            self.make_room(None, peers);
        }
        let count = self.holders.children().len() + 1;
        exhausted(|| format!("clients of {:?}", self.id), count, cx.config.clients_per_resource)?;
        if self.holders.children().lives(holder).count() >= cx.config.lives_per_client {
            self.make_room_for_life(holder, peers);
        }
        let lives = self.holders.children().lives(holder).count() + 1;
        let what = || {
            format!("lives of {:?} that hold {:?} at once, for want of an echoed lease", ask.holder, self.id)
        };
        exhausted(what, lives, cx.config.lives_per_client)?;
        Ok(1)
    }
}

/// Whether somebody who says this takes the place of a holder that has and wants nothing. Whoever is such a one itself does not, or
/// they would drive each other out for ever.
pub(crate) fn takes_place(report: &Report) -> bool {
    let has_some = report.has.as_ref().is_some_and(|has| has.capacity > Amount::ZERO);
    let wants_some = report.bands.iter().any(|band| band.wants > 0.0);
    has_some || wants_some || report.peak.is_some_and(|peak| peak > 0.0)
}

fn exhausted(what: impl Fn() -> String, count: usize, limit: usize) -> Result<(), Refusal> {
    if count > limit {
        return Err(Refusal::Exhausted { what: what(), count, limit });
    }
    Ok(())
}
