//! Figures for Prometheus, read off the summary that the driver publishes of its node: requests cost nothing for being
//! counted, and whoever reads them keeps nobody waiting.

mod plain;
mod process;
mod resources;
mod traffic;
mod workers;

use std::fmt;
use std::sync::Arc;

use lessor_client::internals::clock;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use tokio::runtime::Handle;

use self::workers::WorkerFigures;
use super::driver::Driver;
use super::tls::certificates::Certificates;
use crate::node::{NamesStatus, NodeStatus};
use crate::overrides::{OverrideKind, OverrideStatus};

/// All figures of a server.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
}

#[derive(Debug)]
struct Figures {
    driver: Arc<Driver>,
}

// === impl Metrics ===

impl Metrics {
    /// OpenMetrics, as Prometheus reads it.
    pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

    /// The figures of what `driver` drives, and of the runtime that this is called on.
    #[must_use]
    pub fn new(driver: Arc<Driver>) -> Metrics {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Figures { driver }));
        // Pages may be served by another runtime than all else.
        if let Ok(runtime) = Handle::try_current() {
            registry.register_collector(Box::new(WorkerFigures(runtime.metrics())));
        }
        Metrics { registry }
    }

    /// The same with the figures of something else.
    #[must_use]
    pub fn with(mut self, figures: impl Collector) -> Metrics {
        self.registry.register_collector(Box::new(figures));
        self
    }

    /// As text for somebody who accepts these types: OpenMetrics where one of them is that, and else the format of
    /// Prometheus before it. Returns the type as well.
    ///
    /// # Errors
    /// As [`Metrics::encode`].
    pub fn encode_for<'a>(
        &self,
        mut accepted: impl Iterator<Item = &'a str>,
    ) -> Result<(&'static str, String), fmt::Error> {
        let text = self.encode()?;
        Ok(match accepted.any(plain::prefers_open_metrics) {
            true => (Metrics::CONTENT_TYPE, text),
            false => (plain::CONTENT_TYPE, plain::from_open_metrics(&text)),
        })
    }

    /// As text, with those of the node that were [published](Driver::summary) last.
    ///
    /// # Errors
    /// When they cannot be written, which has no cause of its own.
    pub fn encode(&self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

// === impl Figures ===

impl Collector for Figures {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        program(&mut encoder, &self.driver)?;
        process::encode(&mut encoder)?;
        let ready = f64::from(u8::from(self.driver.readiness().is_ok()));
        gauge(&mut encoder, "lessor_ready", "Whether requests make sense here, as /readyz says", ready)?;
        if let Some(reached) = self.driver.has_reached_parent() {
            let help = "Whether a server of the node above has answered since the start";
            gauge(&mut encoder, "lessor_parent_reached", help, f64::from(u8::from(reached)))?;
        }
        let reloads = self.driver.failed_reloads();
        counter(
            &mut encoder,
            "lessor_reloads_failed",
            "Repositories that could not be put in force",
            reloads,
        )?;
        let (has_succeeded, at) = self.driver.last_reload();
        let help = "Whether the configuration that was read last is in force";
        let succeeded = f64::from(u8::from(has_succeeded));
        gauge(&mut encoder, "lessor_config_last_reload_successful", help, succeeded)?;
        let help = "When a configuration was put in force last, in seconds since 1970";
        let name = "lessor_config_last_reload_success_timestamp_seconds";
        gauge(&mut encoder, name, help, at.as_secs_f64())?;
        templates(&mut encoder, &self.driver)?;
        leadership(&mut encoder, &self.driver)?;
        traffic::encode(&mut encoder, &self.driver)?;
        // What is broken has no figures; lessor_ready says so.
        let Some(summary) = self.driver.summary() else { return Ok(()) };
        let age = clock::now().since(summary.at).as_secs_f64();
        let help = "How long ago the figures of the node and its resources were read off it";
        gauge(&mut encoder, "lessor_summary_age_seconds", help, age)?;
        gauge(&mut encoder, "lessor_streams", "Streams that are open", summary.streams as f64)?;
        let help = "Those of holders of an earlier version, which know fewer kinds of message";
        gauge(&mut encoder, "lessor_streams_older", help, summary.older_streams as f64)?;
        node(&mut encoder, &summary.status)?;
        resources::encode(&mut encoder, &summary.status.resources)
    }
}

/// The program, the node and the one above it, for others to be joined with.
fn program(encoder: &mut DescriptorEncoder<'_>, driver: &Driver) -> fmt::Result {
    let (build, node, above) = driver.identity();
    let above = above.join(",");
    let labels = [("version", build.version.as_str()), ("commit", build.commit.as_str())];
    info(encoder, "lessor_build_info", "The program: 1", &labels)?;
    let help = "The node, and the servers of the node above it as they were given: 1";
    info(encoder, "lessor_node_info", help, &[("node", node), ("parent", above.as_str())])
}

/// The figures of the templates at etcd, on followers as on leaders.
fn templates(encoder: &mut DescriptorEncoder<'_>, driver: &Driver) -> fmt::Result {
    let Some(status) = driver.template_status() else { return Ok(()) };
    let help = "The number of the revision of the templates that this task has in force; 0: none";
    gauge(encoder, "lessor_config_in_force", help, status.in_force as f64)?;
    let help = "The number of the revision of the templates that this task refuses; 0: none";
    let refused = status.refused.as_ref().map_or(0, |refused| refused.number);
    gauge(encoder, "lessor_config_refused", help, refused as f64)?;
    let help = "Whether the revision in force stands at etcd with another content";
    gauge(encoder, "lessor_config_conflict", help, f64::from(u8::from(status.is_in_conflict)))?;
    let Some(read_at) = status.read_at else { return Ok(()) };
    let help = "How long ago the head of the templates was read at etcd: once a minute, if nothing fails";
    gauge(encoder, "lessor_config_sync_seconds", help, clock::now().since(read_at).as_secs_f64())
}

fn leadership(encoder: &mut DescriptorEncoder<'_>, driver: &Driver) -> fmt::Result {
    let whereabouts = driver.whereabouts();
    let leads = f64::from(u8::from(whereabouts.is_leader));
    gauge(encoder, "lessor_leads", "Whether this task leads its node and may act", leads)?;
    gauge(
        encoder,
        "lessor_epoch",
        "The number of the epoch",
        whereabouts.epoch.unwrap_or_default().0 as f64,
    )?;
    if let Some(seconds) = driver.authority_seconds() {
        let help = "How long this task may go on leading without hearing more from etcd";
        gauge(encoder, "lessor_authority_seconds", help, seconds)?;
    }
    if let Some(fault) = driver.state_fault() {
        let help = "Whether what is out is remembered in the state directory";
        gauge(encoder, "lessor_state_healthy", help, f64::from(u8::from(fault.is_none())))?;
    }
    let Some(healthy) = driver.is_etcd_healthy() else { return Ok(()) };
    gauge(
        encoder,
        "lessor_etcd_healthy",
        "Whether etcd does what is asked of it",
        f64::from(u8::from(healthy)),
    )
}

/// The figures of a server's certificates.
#[derive(Debug)]
pub(super) struct CertificateFigures(pub(super) Arc<Certificates>);

// === impl CertificateFigures ===

impl Collector for CertificateFigures {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let ends = self.0.ends();
        if ends.is_empty() {
            return Ok(());
        }
        let (reloads, failures) = self.0.reloads();
        let help = "Sets of certificates put in force since the start";
        counter(&mut encoder, "lessor_certificate_reloads", help, reloads)?;
        let help = "Sets of certificates that could not be put in force";
        counter(&mut encoder, "lessor_certificate_reloads_failed", help, failures)?;
        let help = "The date on which the certificate in force ends";
        let name = "lessor_certificate_expiry_timestamp_seconds";
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (use_of_it, end) in ends {
            let end = ConstGauge::<f64>::new(end.as_secs_f64());
            end.encode(family.encode_family(&[("use", use_of_it)])?)?;
        }
        Ok(())
    }
}

fn node(encoder: &mut DescriptorEncoder<'_>, status: &NodeStatus) -> fmt::Result {
    let tally = status.tally;
    counter(encoder, "lessor_asks", "Requests for capacity", tally.asks)?;
    counter(encoder, "lessor_asks_refused", "Requests for capacity that were refused", tally.refused)?;
    let help = "Records that were not believed: of another etcd, or shown by holders to be out of date";
    counter(encoder, "lessor_records_distrusted", help, tally.records_distrusted)?;
    counter(encoder, "lessor_asks_misdirected", "Requests meant for another epoch", tally.misdirected)?;
    counter(encoder, "lessor_grants", "Leases given or renewed", tally.granted)?;
    counter(encoder, "lessor_releases", "Releases", tally.releases)?;
    counter(encoder, "lessor_reloads", "Repositories put in force since the start", tally.reloads)?;
    counter(encoder, "lessor_mark_writes", "Changes of the record for successors", tally.mark_writes)?;
    let claims = tally.claims;
    counter(encoder, "lessor_claims_honoured", "Leases of earlier epochs taken over", claims.honoured)?;
    let refused = [
        ("lessor_claims_without_token", "Claims with no token behind them", claims.missing),
        ("lessor_claims_forged", "Claims whose token does not fit", claims.forged),
        ("lessor_claims_not_earlier", "Claims with a token that is of no earlier epoch", claims.not_earlier),
        ("lessor_claims_before_record", "Claims of what the node above counts", claims.before_record),
        ("lessor_claims_too_large", "Claims of more than was granted", claims.too_large),
    ];
    for (name, help, count) in refused {
        counter(encoder, name, help, count)?;
    }
    names(encoder, &status.names)?;
    gauge(encoder, "lessor_leading_seconds", "How long this leader has led", status.leading_seconds)?;
    let help = "The version of the configuration in force";
    gauge(encoder, "lessor_config_version", help, status.config_version as f64)?;
    let help = "Whether a later configuration was in force, so that nothing is granted";
    gauge(encoder, "lessor_config_outdated", help, f64::from(u8::from(status.later_config.is_some())))?;
    gauge(
        encoder,
        "lessor_resources",
        "Resources that somebody holds or wants",
        status.resources_in_all as f64,
    )?;
    let unlisted = status.resources_in_all.saturating_sub(status.resources.len());
    let help = "Those of them that have no figures of their own: the busiest have";
    gauge(encoder, "lessor_resources_unlisted", help, unlisted as f64)?;
    overrides(encoder, &status.overrides)
}

/// By kind, each of which has a figure.
fn overrides(encoder: &mut DescriptorEncoder<'_>, overrides: &[OverrideStatus]) -> fmt::Result {
    let help = "Overrides of operators that are in force";
    let mut family = encoder.encode_descriptor("lessor_overrides", help, None, MetricType::Gauge)?;
    for kind in OverrideKind::ALL {
        let count = overrides.iter().filter(|it| it.kind == kind.as_str()).count();
        ConstGauge::<f64>::new(count as f64).encode(family.encode_family(&[("kind", kind.as_str())])?)?;
    }
    Ok(())
}

fn names(encoder: &mut DescriptorEncoder<'_>, names: &NamesStatus) -> fmt::Result {
    let taken = f64::from(u8::from(names.name_taken));
    gauge(encoder, "lessor_node_name_taken", "Whether another process holds the name of this node", taken)?;
    let help = "Names of nodes below that two processes claim";
    gauge(encoder, "lessor_duplicate_node_names", help, names.duplicates.len() as f64)?;
    let help = "Whether this node stands above itself, and is served as without a parent";
    gauge(encoder, "lessor_node_loop", help, f64::from(u8::from(names.circle.is_some())))?;
    let help = "Requests of nodes above this one, which were refused";
    counter(encoder, "lessor_node_loops_refused", help, names.loops_refused)
}

/// A gauge that is 1, for its labels.
fn info(encoder: &mut DescriptorEncoder<'_>, name: &str, help: &str, labels: &[(&str, &str)]) -> fmt::Result {
    // Not an info metric of OpenMetrics, which the format before it does not have.
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    ConstGauge::<f64>::new(1.0).encode(family.encode_family(&labels)?)
}

fn gauge(encoder: &mut DescriptorEncoder<'_>, name: &str, help: &str, value: f64) -> fmt::Result {
    let gauge = ConstGauge::<f64>::new(value);
    gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)
}

fn counter(encoder: &mut DescriptorEncoder<'_>, name: &str, help: &str, value: u64) -> fmt::Result {
    let counter = ConstCounter::<u64>::new(value);
    counter.encode(encoder.encode_descriptor(name, help, None, counter.metric_type())?)
}
