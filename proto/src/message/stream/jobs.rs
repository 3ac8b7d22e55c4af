//! News of jobs, to and from the wire, which are the same in both directions.

use std::time::Duration;

use super::down::LONGEST_NAME;
use crate::message::refusal::{Limits, Malformed, Refusal};
use crate::message::{JobNews, field};
use crate::{ResourceId, wire};

// === impl JobNews ===

impl JobNews {
    /// Checks what a holder says.
    pub(super) fn all_from_request(
        request: wire::JobsRequest,
        limits: &Limits,
    ) -> Result<Vec<JobNews>, Refusal> {
        field::check_count(request.job.len(), limits)?;
        let news = request.job.into_iter().enumerate().map(|(index, news)| {
            let name = || format!("jobs.job[{index}].resource_id");
            Ok(JobNews::of(field::resource(name, news.resource_id, limits)?, news.done_ms, news.asks_ms))
        });
        news.collect()
    }

    /// Checks what a grantor says.
    pub(super) fn all_from_grantor(jobs: wire::Jobs) -> Result<Vec<JobNews>, Malformed> {
        let news = jobs.job.into_iter().enumerate().map(|(index, news)| {
            let resource = ResourceId::new(news.resource_id.unwrap_or_default(), LONGEST_NAME);
            let malformed = |bad: crate::name::BadName| Malformed {
                field: format!("jobs.job[{index}].resource_id"),
                found: bad.to_string(),
            };
            Ok(JobNews::of(resource.map_err(malformed)?, news.done_ms, news.asks_ms))
        });
        news.collect()
    }

    fn of(resource: ResourceId, done_ms: Option<u64>, asks_ms: Option<u64>) -> JobNews {
        let (done, asks) = (done_ms.map(Duration::from_millis), asks_ms.map(Duration::from_millis));
        JobNews { resource, done, asks }
    }

    pub(super) fn to_wire(&self) -> wire::JobNews {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        wire::JobNews {
            resource_id: Some(self.resource.to_string()),
            done_ms: self.done.map(millis),
            asks_ms: self.asks.map(millis),
        }
    }
}
