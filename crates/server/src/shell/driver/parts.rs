//! The parts of a long request: each is a turn under the lock of its own, so that nobody waits for the whole of it.

use std::borrow::Cow;

use lessor_proto::message::{Answer, Ask, RefusedReport, Release, Report};

use super::{Driver, Moment, Unanswered};
use crate::node::ConnectionMark;

/// The resources of a part: what is done for each takes some microseconds.
pub(in crate::shell) const PART: usize = 256;

// === impl Driver ===

impl Driver {
    /// Answers a request part by part. As with one that is answered at once, a resource that is refused is no matter of the
    /// others; and whoever is refused all of them is told so as if there were nothing else.
    pub(super) fn ask_by_parts(
        &self,
        caller: Option<ConnectionMark>,
        ask: &Ask,
    ) -> Result<(Answer, Moment), Unanswered> {
        let (mut whole, mut moment, mut refused) = (Answer::default(), None, None);
        for (number, reports) in ask.reports.chunks(PART).enumerate() {
            let begin = number * PART;
            match self.ask_at_once(caller, &part(ask, reports)) {
                Ok((answer, at)) => {
                    join(&mut whole, answer, begin);
                    // Nothing is dated later than it was granted.
                    moment = Some(Moment { wall: moment.map_or(at.wall, |first: Moment| first.wall), ..at });
                }
                // Each for a reason of its own.
                Err(Unanswered::Refused(_)) => {
                    for (index, report) in (begin..).zip(reports) {
                        match self.ask_at_once(caller, &part(ask, std::slice::from_ref(report))) {
                            Ok((answer, at)) => {
                                join(&mut whole, answer, index);
                                let first = moment.map_or(at.wall, |first: Moment| first.wall);
                                moment = Some(Moment { wall: first, ..at });
                            }
                            Err(Unanswered::Refused(why)) => {
                                let name = report.resource.as_str();
                                whole.refused.push(RefusedReport::new(0, name, &why).at(index));
                                refused = Some(why);
                            }
                            Err(fault) => return Err(fault),
                        }
                    }
                }
                Err(fault) => return Err(fault),
            }
        }
        match (moment, refused) {
            (Some(moment), _) => Ok((whole, moment)),
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

/// Adds the answer to a part, which begins there in the request.
fn join(whole: &mut Answer, part: Answer, begin: usize) {
    whole.grants.extend(part.grants);
    let refused = part.refused.into_iter().map(|refused| {
        let index = begin + refused.index;
        refused.at(index)
    });
    whole.refused.extend(refused);
    whole.retry = whole.retry.into_iter().chain(part.retry).min();
    (whole.redirect, whole.epoch, whole.notice) = (part.redirect, part.epoch, part.notice);
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
