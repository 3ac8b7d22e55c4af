//! Jobs, up the stream and down: when one was done here, to a grantor that asks for it, and when one was done elsewhere, for those
//! here who wait. They have nothing to do with leases, and nothing is said of them where nobody waits.
//!
//! Either end asks once, and is told once. What is said is how long ago something was, so nobody's clock is asked for: a job that
//! was done while a stream was broken, or under a leader before, is said on the next stream to who has waited since before it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use lessor_proto::message::{HolderKind, JobNews, Up};
use lessor_proto::{Features, ResourceId, Time};

use super::line::{OpenStream, Streams};
use super::{Action, Session};
use crate::mutation::HolderRule;

/// Resources in one message at the most.
const MOST_IN_ONE: usize = 100;

/// An event of the jobs of a resource.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum JobEvent {
    /// The grantor wants to hear of one that was done here since then, or else of the next.
    Asked {
        /// Of what.
        resource: ResourceId,
        /// Since when.
        since: Time,
    },
    /// One was done elsewhere: no later than that.
    Done {
        /// Of what.
        resource: ResourceId,
        /// When.
        at: Time,
    },
}

/// The jobs of all resources of a session.
#[derive(Clone, Default, Debug)]
pub(super) struct SessionJobs {
    resources: BTreeMap<ResourceId, ResourceJobs>,
    /// Resources of which there may be something to say on the stream.
    unsaid: BTreeSet<ResourceId>,
    /// The events that the program was not told yet.
    events: VecDeque<JobEvent>,
}

/// The jobs of one.
#[derive(Clone, Copy, Default, Debug)]
struct ResourceJobs {
    /// When the wait here began, for one that is done elsewhere.
    awaited: Option<Time>,
    /// Whether the grantor was told of the wait on this stream.
    is_awaited_there: bool,
    /// The time since which the grantor wants to hear of one.
    asked: Option<Time>,
    /// When the last one was done here.
    done: Option<Time>,
    /// When the last of those was done that were not said on this stream.
    unsaid: Option<Time>,
}

// === impl Session ===

impl Session {
    /// Somebody here has waited since then for a job of `resource` that is done elsewhere. It is heard of once, as an
    /// [event](Session::next_job).
    pub fn await_job(&mut self, resource: &ResourceId, since: Time) {
        if self.find(resource).is_none() {
            return;
        }
        let jobs = self.streams.jobs_mut();
        let of = jobs.resources.entry(resource.clone()).or_default();
        if of.awaited.is_some_and(|before| before <= since) {
            return;
        }
        (of.awaited, of.is_awaited_there) = (Some(since), false);
        jobs.unsaid.insert(resource.clone());
    }

    /// A job of `resource` was done here at `at`. A client may say one again; to a node those below say each once, and how long they
    /// take to do that decides which seems to be the last.
    pub fn job_done(&mut self, resource: &ResourceId, at: Time) {
        if self.find(resource).is_none() {
            return;
        }
        let is_client = self.config.kind == HolderKind::Client;
        let jobs = self.streams.jobs_mut();
        let of = jobs.resources.entry(resource.clone()).or_default();
        if is_client && of.done >= Some(at) {
            return;
        }
        (of.done, of.unsaid) = (of.done.max(Some(at)), of.unsaid.max(Some(at)));
        if of.news().is_some() {
            jobs.unsaid.insert(resource.clone());
        }
    }

    /// The next event of jobs that the program was not told yet.
    pub fn next_job(&mut self) -> Option<JobEvent> {
        self.streams.jobs.as_mut()?.events.pop_front()
    }

    pub(super) fn on_jobs(&mut self, now: Time, news: Vec<JobNews>) {
        for JobNews { resource, done, asks } in news {
            if self.find(&resource).is_none() {
                continue;
            }
            let jobs = self.streams.jobs_mut();
            let of = jobs.resources.entry(resource.clone()).or_default();
            if let Some(ago) = done {
                (of.awaited, of.is_awaited_there) = (None, false);
                jobs.events.push_back(JobEvent::Done { resource: resource.clone(), at: now.earlier(ago) });
            }
            if let Some(ago) = asks {
                let since = now.earlier(ago);
                of.asked = Some(since);
                if of.news().is_some() {
                    jobs.unsaid.insert(resource.clone());
                }
                jobs.events.push_back(JobEvent::Asked { resource, since });
            }
        }
    }

    /// Says what there is to say of jobs: before the report by which the unit of one is given back, so that who waits for the job
    /// hears of that first.
    pub(super) fn say_jobs_up(&mut self, now: Time, open: OpenStream) -> Option<Action> {
        let is_known = self.config.features.and(open.features).covers(Features::JOBS);
        let mut said = Vec::new();
        while said.len() < MOST_IN_ONE {
            let Some(resource) = self.streams.jobs.as_mut().and_then(|jobs| jobs.unsaid.pop_first()) else {
                break;
            };
            // What was not reported yet is looked at again when it is.
            let is_reported = self.find(&resource).is_some_and(|place| {
                let entry = &self.entries[place];
                entry.is_open() && entry.streamed.floor.is_some()
            });
            if !is_known || !is_reported {
                continue;
            }
            let jobs = self.streams.jobs_mut();
            if let Some(of) = jobs.resources.get_mut(&resource) {
                said.extend(of.say(now, resource));
            }
        }
        (!said.is_empty()).then(|| self.send(open.id, Up::Jobs(said)))
    }
}

// === impl Streams ===

impl Streams {
    fn jobs_mut(&mut self) -> &mut SessionJobs {
        self.jobs.get_or_insert_default()
    }

    /// Whether there is something to say of jobs.
    pub(super) fn has_unsaid_jobs(&self) -> bool {
        self.jobs.as_ref().is_some_and(|jobs| !jobs.unsaid.is_empty())
    }

    /// The resource is reported on the stream: behind that its jobs can be spoken of there.
    pub(super) fn note_reported(&mut self, resource: &ResourceId) {
        self.ask_for_jobs(resource, false);
    }

    /// The resource is granted on the stream: for certain its jobs are heard of from here on. One whose first report has to wait
    /// is not, until then.
    pub(super) fn note_granted(&mut self, resource: &ResourceId, is_first: bool) {
        self.ask_for_jobs(resource, is_first);
    }

    /// Asks for a job that is done elsewhere, if that is waited for; `again` where it was asked for.
    fn ask_for_jobs(&mut self, resource: &ResourceId, again: bool) {
        let Some(jobs) = &mut self.jobs else { return };
        let Some(of) = jobs.resources.get_mut(resource).filter(|of| of.awaited.is_some()) else { return };
        of.is_awaited_there &= !again;
        if !of.is_awaited_there {
            jobs.unsaid.insert(resource.clone());
        }
    }

    /// The resource is gone; absent: all of them.
    pub(super) fn forget_jobs(&mut self, resource: Option<&ResourceId>) {
        let (Some(jobs), Some(resource)) = (&mut self.jobs, resource) else { return self.jobs = None };
        jobs.resources.remove(resource);
        jobs.unsaid.remove(resource);
        if jobs.resources.is_empty() && jobs.events.is_empty() {
            self.jobs = None;
        }
    }

    /// The stream is gone: the grantor at the end of the next one has asked for nothing yet, and was told nothing.
    pub(super) fn restart_jobs(&mut self, says_again: bool) {
        let Some(jobs) = &mut self.jobs else { return };
        jobs.unsaid.clear();
        for of in jobs.resources.values_mut() {
            let unsaid = if says_again { of.done } else { of.unsaid };
            *of = ResourceJobs { is_awaited_there: false, asked: None, unsaid, ..*of };
        }
    }

    /// Time has passed that the clock did not show: all of that was so much earlier.
    pub(super) fn lose_time_of_jobs(&mut self, lost: Duration) {
        for of in self.jobs.iter_mut().flat_map(|jobs| jobs.resources.values_mut()) {
            for at in [&mut of.awaited, &mut of.asked, &mut of.done, &mut of.unsaid].into_iter().flatten() {
                *at = at.earlier(lost);
            }
        }
    }
}

// === impl ResourceJobs ===

impl ResourceJobs {
    /// When that one was done which the grantor wants to hear of, and was not told of.
    fn news(&self) -> Option<Time> {
        self.unsaid.filter(|&done| self.asked.is_some_and(|asked| asked <= done))
    }

    fn say(&mut self, now: Time, resource: ResourceId) -> Option<JobNews> {
        let done = self.news();
        if done.is_some() {
            (self.unsaid, self.asked) = (None, None);
        }
        let asks = self.awaited.filter(|_| !std::mem::replace(&mut self.is_awaited_there, true));
        let ago = |at: Time| now.since(at);
        let news = JobNews { resource, done: done.map(ago), asks: asks.map(ago) };
        (news.done.is_some() || news.asks.is_some()).then_some(news)
    }
}

// === impl Session ===

impl Session {
    /// Whether what was said of jobs is said again on the next stream: not if the rule is taken out.
    pub(super) fn says_jobs_again(&self) -> bool {
        self.config.rules.keep(HolderRule::JobsSaidAgain)
    }
}
