//! The time that the node above takes to answer: of requests, of streams that open, and of heartbeats.

use std::time::Duration;

use lessor_client::internals::session::{Action, Event};
use lessor_proto::message::{Down, Up};
use lessor_proto::{ReportId, Time};

/// The last of each that was sent and is not answered yet.
#[derive(Debug, Default)]
pub(super) struct Answers {
    /// A request or a heartbeat, with its number.
    asked: Option<(ReportId, Time)>,
    /// A stream.
    opened: Option<(u64, Time)>,
}

// === impl Answers ===

impl Answers {
    /// At `now` that is sent.
    pub(super) fn send(&mut self, now: Time, action: &Action) {
        match action {
            Action::Ask { id, .. } | Action::Release { id, .. } => self.asked = Some((*id, now)),
            Action::Connect { id, .. } => self.opened = Some((*id, now)),
            // Only a heartbeat has an answer of its own; the one before it may be answered with it.
            Action::Send { up: Up::Report(report), .. } if report.renew_all && self.asked.is_none() => {
                self.asked = Some((report.id, now));
            }
            _ => {}
        }
    }

    /// At `now` that is heard. Returns the time that it took, if it is an answer.
    pub(super) fn hear(&mut self, now: Time, heard: &Event) -> Option<Duration> {
        let asked = match heard {
            Event::Answered { id, .. } | Event::Released { id, .. } => {
                self.asked.take_if(|asked| asked.0 == *id)
            }
            Event::Down { down: Down::Renewed { basis, .. }, .. } => {
                self.asked.take_if(|asked| asked.0 <= *basis)
            }
            // There was nothing to be renewed yet.
            Event::Down { down: Down::Grants(grants), .. } if grants.is_empty() => self.asked.take(),
            Event::Down { id, down: Down::Welcome(_) } => {
                let opened = self.opened.take_if(|opened| opened.0 == *id)?;
                return Some(now.since(opened.1));
            }
            Event::Failed { .. } | Event::Closed { .. } => {
                *self = Answers::default();
                None
            }
            Event::Down { .. } | Event::Unknown { .. } => None,
        };
        asked.map(|(_, at)| now.since(at))
    }
}

#[cfg(test)]
mod tests {
    use lessor_proto::message::{Answer, StreamReport};

    use super::*;

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    fn heartbeat(number: u64) -> Action {
        let id = ReportId(number);
        let report = StreamReport { id, target_epoch: None, renew_all: true, reports: Vec::new() };
        Action::Send { id: 1, up: Up::Report(report) }
    }

    fn renewed(number: u64) -> Event {
        Event::Down { id: 1, down: Down::Renewed { basis: ReportId(number), grants: 0 } }
    }

    #[test]
    fn a_heartbeat_is_answered_by_the_renewal_of_it_or_a_later_one() {
        let mut answers = Answers::default();
        answers.send(at(0), &heartbeat(4));
        answers.send(at(5), &heartbeat(5));
        assert_eq!(answers.hear(at(7), &renewed(3)), None);
        assert_eq!(answers.hear(at(9), &renewed(5)), Some(Duration::from_millis(9)));
        assert_eq!(answers.hear(at(9), &renewed(5)), None, "once");
    }

    #[test]
    fn a_heartbeat_is_answered_where_nothing_is_to_be_renewed() {
        let mut answers = Answers::default();
        answers.send(at(0), &heartbeat(4));
        let empty = Event::Down { id: 1, down: Down::Grants(Vec::new()) };
        assert_eq!(answers.hear(at(3), &empty), Some(Duration::from_millis(3)));
        answers.send(at(5), &heartbeat(5));
        assert_eq!(answers.hear(at(9), &renewed(5)), Some(Duration::from_millis(4)));
    }

    #[test]
    fn what_failed_has_no_answer() {
        let mut answers = Answers::default();
        answers.send(at(0), &heartbeat(4));
        let failure = lessor_client::Failure::Unreachable("gone".to_owned());
        assert_eq!(answers.hear(at(1), &Event::Closed { id: 1, failure }), None);
        let answered = Event::Answered { id: ReportId(4), answer: Answer::default() };
        assert_eq!(answers.hear(at(9), &answered), None);
    }
}
