//! Reads the record, page after page.
//!
//! Nobody but the leader can write it, and whoever reads has won the election: pages read one after the other fit
//! together as long as the reader still leads when it has read the last.

use lessor_proto::Time;

use super::call::{Answer, Call, Failure, Stored};
use super::config::ElectionConfig;
use super::context::StepContext;
use super::retry::Retry;
use crate::record::EtcdCluster;

/// Keys in one page.
const PAGE: usize = 500;

/// The record as far as it has been read.
#[derive(Clone, Debug)]
pub(super) struct Reader {
    stored: Vec<Stored>,
    /// The etcd that has them.
    cluster: Option<EtcdCluster>,
    page: Retry,
}

// === impl Reader ===

impl Reader {
    pub(super) fn new(now: Time, config: &ElectionConfig) -> Reader {
        Reader { stored: Vec::new(), cluster: None, page: Retry::new(now, config.keep_alive) }
    }

    pub(super) fn advance(&mut self, context: &mut StepContext<'_>) {
        let (stored, prefix) = (&self.stored, &context.keys.node);
        self.page.advance(context, || {
            let after = stored.last().map(|last| last.key.clone());
            Call::ReadRecord { prefix: prefix.clone(), after, limit: PAGE }
        });
    }

    pub(super) fn awaits(&self, id: u64) -> bool {
        self.page.awaits(id)
    }

    /// All of it and the etcd that has it, when the last page has come.
    pub(super) fn on_answer(
        &mut self,
        context: &mut StepContext<'_>,
        result: Result<Answer, Failure>,
    ) -> Option<(Vec<Stored>, Option<EtcdCluster>)> {
        let call = self.page.take_any()?;
        let failure = match result {
            // An empty page that says there is more would be asked for without end.
            Ok(Answer::Record { cluster, .. }) if self.is_of_another(cluster) => {
                self.stored.clear();
                self.cluster = None;
                Failure::Unavailable("the pages of the record are of two clusters".to_owned())
            }
            Ok(Answer::Record { stored, more, cluster }) if !(more && stored.is_empty()) => {
                context.out.succeeded(call);
                self.page.calm();
                self.page.next = context.now;
                self.stored.extend(stored);
                self.cluster = cluster.or(self.cluster);
                return (!more).then(|| (std::mem::take(&mut self.stored), self.cluster));
            }
            Ok(other) => Failure::unexpected(&other),
            Err(failure) => failure,
        };
        self.page.failed(context, call, &failure);
        None
    }

    pub(super) fn next_deadline(&self) -> Time {
        self.page.next_deadline()
    }

    /// Whether a page is of another etcd than those before it.
    fn is_of_another(&self, cluster: Option<EtcdCluster>) -> bool {
        self.cluster.zip(cluster).is_some_and(|(before, page)| !before.goes_on_as(page))
    }
}
