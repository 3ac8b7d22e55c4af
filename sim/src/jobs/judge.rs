//! The judge: it sees each job and each wait at once, wherever they are.

use std::time::Duration;

use lessor_proto::Time;

use super::{JobsReport, NEWS};

/// A job that was done.
#[derive(Clone, Copy, Debug)]
struct DoneJob {
    at: Time,
    by: usize,
    /// Whether its holder could say so: of this version, and granted the gauge.
    is_sayable: bool,
}

/// All that has happened which counts.
#[derive(Debug, Default)]
pub(super) struct JobsJudge {
    jobs: Vec<DoneJob>,
    /// When all is as it should be again after what went wrong last.
    calm_from: Time,
    pub(super) report: JobsReport,
}

// === impl JobsJudge ===

impl JobsJudge {
    /// Something has gone wrong, and is over by then.
    pub(super) fn disturb(&mut self, until: Time) {
        self.calm_from = self.calm_from.max(until);
        self.report.faults += 1;
    }

    /// Nothing is judged before that.
    pub(super) fn begin(&mut self, from: Time) {
        self.calm_from = from;
    }

    pub(super) fn see_job(&mut self, at: Time, by: usize, is_sayable: bool) {
        self.jobs.push(DoneJob { at, by, is_sayable });
        self.report.jobs += 1;
    }

    /// A holder that has waited since then is told that a job was done, which was on its way for as long as `way` at the most.
    pub(super) fn see_told(&mut self, now: Time, holder: usize, since: Time, way: Duration) {
        self.report.told += 1;
        let first_that_counts = since.earlier(NEWS + way);
        let others = self.jobs.iter().filter(|job| job.by != holder);
        if !others.clone().any(|job| job.at >= first_that_counts) {
            return self.fail(format!("at {now} holder {holder} is told, which has waited since {since}"));
        }
        let calm = since.max(self.calm_from);
        let first = others.filter(|job| job.is_sayable).find(|job| job.at >= since);
        if let Some(job) = first.filter(|_| calm == since) {
            self.report.longest = self.report.longest.max(now.since(job.at));
        }
    }

    /// A holder has waited since then, and was not told yet: the first job that it should have heard of within `bound`.
    pub(super) fn see_waiting(&mut self, now: Time, holder: usize, since: Time, bound: Duration) {
        let from = since.max(self.calm_from);
        let counts =
            |job: &&DoneJob| job.by != holder && job.is_sayable && job.at > from && job.at + bound < now;
        if let Some(job) = self.jobs.iter().find(counts) {
            let (by, at) = (job.by, job.at);
            self.fail(format!("at {now} holder {holder} still waits since {since}; {by} was done at {at}"));
        }
    }

    fn fail(&mut self, what: String) {
        self.report.fault.get_or_insert(what);
    }
}
