//! Jobs, between handles and the session.

use lessor_proto::{ResourceId, Time};

use super::Driver;
use crate::session::JobEvent;

// === impl Driver ===

impl Driver {
    /// Hands on what was said and asked of jobs.
    pub(super) fn take_up_jobs(&mut self) {
        while let Some(event) = self.session.next_job() {
            match event {
                JobEvent::Done { resource, at } => {
                    if let Some(jobs) = self.open.get(&resource).and_then(|held| held.opening.jobs.as_ref()) {
                        jobs.tell(at);
                    }
                }
                JobEvent::Asked { resource, .. } => {
                    let jobs = self.open.get(&resource).and_then(|held| held.opening.jobs.as_ref());
                    if let Some(done) = jobs.and_then(|jobs| jobs.ask()) {
                        self.session.job_done(&resource, done);
                    }
                }
            }
        }
    }

    /// A job was done here, of which the grantor wants to hear.
    pub(super) fn job_done(&mut self, resource: &ResourceId, generation: u64) {
        let jobs = self.held(resource, generation).and_then(|held| held.opening.jobs.clone());
        if let Some(done) = jobs.and_then(|jobs| jobs.done()) {
            self.session.job_done(resource, done);
        }
    }

    /// Somebody here waits for one that is done elsewhere.
    pub(super) fn await_job(&mut self, resource: &ResourceId, generation: u64, since: Time) {
        if self.held(resource, generation).is_some() {
            self.session.await_job(resource, since);
        }
    }
}
