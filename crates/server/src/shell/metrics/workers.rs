//! The figures of the threads that serve: how many there are, and how busy they have been.

use std::fmt;
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use tokio::runtime::RuntimeMetrics;

use super::gauge;

/// The workers of one runtime.
#[derive(Debug)]
pub(super) struct WorkerFigures(pub(super) RuntimeMetrics);

// === impl WorkerFigures ===

impl Collector for WorkerFigures {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let workers = self.0.num_workers();
        let busy: Duration = (0..workers).map(|worker| self.0.worker_total_busy_duration(worker)).sum();
        gauge(&mut encoder, "lessor_workers", "Threads that serve", workers as f64)?;
        let help = "How long threads that serve were busy, all together, in seconds";
        let family =
            encoder.encode_descriptor("lessor_worker_busy_seconds", help, None, MetricType::Counter)?;
        ConstCounter::<f64>::new(busy.as_secs_f64()).encode(family)
    }
}
