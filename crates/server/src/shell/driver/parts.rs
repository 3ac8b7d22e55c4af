//! The parts of a long request: each is a turn under the lock of its own, so that nobody waits for the whole of it.

use std::borrow::Cow;

use lessor_proto::message::{Answer, Ask, Refusal, RefusedReport, Release, Report};

use super::{Driver, Moment, Unanswered};
use crate::node::ConnectionMark;

/// The resources of a part: what is done for each takes some microseconds, and where nothing is optimised some hundred.
pub(in crate::shell) const PART: usize = 64;

/// The answer to a long request, as far as its parts are answered.
#[derive(Default)]
struct JoinedAnswer {
    whole: Answer,
    /// When the parts so far were answered: the date is that of the first, as nothing is dated later than it was granted.
    moment: Option<Moment>,
    /// The refusal of the last one that was refused by itself.
    refused: Option<Refusal>,
}

// === impl Driver ===

impl Driver {
    /// Answers a request part by part. As with one that is answered at once, a resource that is refused is no matter of the
    /// others; and whoever is refused all of them is told so as if there were nothing else.
    pub(super) fn ask_by_parts(
        &self,
        caller: Option<ConnectionMark>,
        ask: &Ask,
    ) -> Result<(Answer, Moment), Unanswered> {
        let mut joined = JoinedAnswer::default();
        for (number, reports) in ask.reports.chunks(PART).enumerate() {
            let begin = number * PART;
            match self.ask_at_once(caller, &part(ask, reports)) {
                Ok(answered) => joined.add(answered, begin),
                Err(Unanswered::Refused(_)) => self.ask_one_by_one(caller, ask, begin, &mut joined)?,
                Err(fault) => return Err(fault),
            }
        }
        joined.end()
    }

    /// Answers a part of which all resources are refused, each for a reason of its own.
    fn ask_one_by_one(
        &self,
        caller: Option<ConnectionMark>,
        ask: &Ask,
        begin: usize,
        joined: &mut JoinedAnswer,
    ) -> Result<(), Unanswered> {
        for (index, report) in ask.reports.iter().enumerate().skip(begin).take(PART) {
            match self.ask_at_once(caller, &part(ask, std::slice::from_ref(report))) {
                Ok(answered) => joined.add(answered, index),
                Err(Unanswered::Refused(why)) => joined.refuse(index, report, why),
                Err(fault) => return Err(fault),
            }
        }
        Ok(())
    }
}

// === impl JoinedAnswer ===

impl JoinedAnswer {
    /// Adds the answer to a part, which begins there in the request.
    fn add(&mut self, (part, at): (Answer, Moment), begin: usize) {
        let JoinedAnswer { whole, moment, .. } = self;
        whole.grants.extend(part.grants);
        let refused = part.refused.into_iter().map(|refused| {
            let index = begin + refused.index;
            refused.at(index)
        });
        whole.refused.extend(refused);
        whole.retry = whole.retry.into_iter().chain(part.retry).min();
        (whole.redirect, whole.epoch, whole.notice) = (part.redirect, part.epoch, part.notice);
        *moment = Some(Moment { wall: moment.map_or(at.wall, |first| first.wall), ..at });
    }

    fn refuse(&mut self, index: usize, report: &Report, why: Refusal) {
        self.whole.refused.push(RefusedReport::new(0, report.resource.as_str(), &why).at(index));
        self.refused = Some(why);
    }

    fn end(self) -> Result<(Answer, Moment), Unanswered> {
        match (self.moment, self.refused) {
            (Some(moment), _) => Ok((self.whole, moment)),
            (None, Some(why)) => Err(Unanswered::Refused(why)),
            (None, None) => unreachable!("a long request has a part"),
        }
    }
}

fn part(ask: &Ask, reports: &[Report]) -> Ask {
    let Ask { kind, holder, incarnation, report_id, target_epoch, line, .. } = ask;
    Ask {
        kind: *kind,
        holder: holder.clone(),
        incarnation: *incarnation,
        report_id: *report_id,
        target_epoch: *target_epoch,
        line: *line,
        reports: reports.to_vec(),
    }
}

/// The parts of a release.
pub(super) fn of_release(release: &Release) -> impl Iterator<Item = Cow<'_, Release>> {
    let is_short = release.resources.len() <= PART;
    let whole = is_short.then_some(Cow::Borrowed(release));
    let long = if is_short { &[][..] } else { &release.resources[..] };
    whole.into_iter().chain(long.chunks(PART).map(|resources| {
        let Release { holder, incarnation, report_id, .. } = release;
        Cow::Owned(Release {
            holder: holder.clone(),
            incarnation: *incarnation,
            report_id: *report_id,
            resources: resources.to_vec(),
        })
    }))
}
