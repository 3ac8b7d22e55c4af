//! Figures for Prometheus, read off the summary that the driver publishes of its node: requests cost nothing for being
//! counted, and whoever reads them keeps nobody waiting.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lessor_client::internals::clock;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use super::driver::Driver;
use super::tls::certificates::Certificates;
use super::tls::handshake::{Ended, Handshakes};
use crate::node::{NamesStatus, NodeStatus, ResourceRow};
use crate::resource::DomainsStatus;

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

    /// The figures of what `driver` drives.
    #[must_use]
    pub fn new(driver: Arc<Driver>) -> Metrics {
        let mut registry = Registry::default();
        let help = "How long the lock of the node was held at once, in seconds";
        registry.register("lessor_turn_seconds", help, driver.turns().seconds().clone());
        if let Some(metered) = driver.turns().metered() {
            let help = "The same by a second clock";
            registry.register("lessor_turn_metered_seconds", help, metered.clone());
        }
        registry.register_collector(Box::new(Figures { driver }));
        Metrics { registry }
    }

    /// The same with the figures of something else.
    #[must_use]
    pub fn with(mut self, figures: impl Collector) -> Metrics {
        self.registry.register_collector(Box::new(figures));
        self
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
        leadership(&mut encoder, &self.driver)?;
        streams(&mut encoder, &self.driver)?;
        // What is broken has no figures; lessor_ready says so.
        let Some(summary) = self.driver.summary() else { return Ok(()) };
        let age = clock::now().since(summary.at).as_secs_f64();
        let help = "How long ago the figures of the node and its resources were read off it";
        gauge(&mut encoder, "lessor_summary_age_seconds", help, age)?;
        gauge(&mut encoder, "lessor_streams", "Streams that are open", summary.streams as f64)?;
        node(&mut encoder, &summary.status)?;
        resources(&mut encoder, &summary.status.resources)
    }
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

fn streams(encoder: &mut DescriptorEncoder<'_>, driver: &Driver) -> fmt::Result {
    let traffic = driver.traffic();
    let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
    counter(encoder, "lessor_stream_messages_sent", "Messages sent on streams", of(&traffic.sent))?;
    counter(
        encoder,
        "lessor_stream_messages_received",
        "Messages that came up streams",
        of(&traffic.received),
    )?;
    counter(
        encoder,
        "lessor_stream_reports_refused",
        "Reports on streams that were refused",
        of(&traffic.refused),
    )?;
    let help = "Connections that were turned away, as their address had too many";
    counter(encoder, "lessor_connections_turned_away", help, of(&traffic.turned_away))?;
    let help = "Connections that did not say in time what they speak";
    counter(encoder, "lessor_connections_silent", help, of(&traffic.silent))?;
    handshakes(encoder, &traffic.handshakes)
}

fn handshakes(encoder: &mut DescriptorEncoder<'_>, handshakes: &Handshakes) -> fmt::Result {
    let help = "Handshakes of TLS by how they ended";
    let mut family = encoder.encode_descriptor("lessor_handshakes", help, None, MetricType::Counter)?;
    for (ended, name) in Ended::ALL {
        let count = ConstCounter::<u64>::new(handshakes.count(ended));
        count.encode(family.encode_family(&[("result", name)])?)?;
    }
    Ok(())
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
    let help = "Records that holders have shown to be out of date";
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
    )
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

type Reading = fn(&ResourceRow) -> f64;

/// Of each resource: name, help, and how it is read.
const READINGS: [(&str, &str, Reading); 12] = [
    (
        "lessor_capacity",
        "What may be handed out: as configured, or by the lease from the node above",
        |row| row.resource.capacity,
    ),
    ("lessor_leased", "What is charged to holders", |row| row.resource.leased),
    ("lessor_ghost", "What may be out under earlier leaders and nobody has shown yet", |row| row.ghost),
    ("lessor_outstanding", "All that may be out: what is charged to holders, and the ghost", |row| {
        row.outstanding
    }),
    ("lessor_wants", "What holders want", |row| row.resource.wants),
    ("lessor_clients", "Holders", |row| row.resource.clients as f64),
    ("lessor_subclients", "Clients that the holders stand for", |row| row.resource.subclients as f64),
    ("lessor_learning", "Whether only what was out before the start is leased", |row| {
        f64::from(u8::from(row.resource.learning))
    }),
    ("lessor_in_debt", "Whether more is out than a lowered capacity allows", |row| {
        f64::from(u8::from(row.resource.in_debt))
    }),
    ("lessor_overcommitment", "What passes the capacity without a cut that explains it: 0", |row| {
        row.resource.overcommitment
    }),
    (
        "lessor_safe_capacity_out",
        "What clients were advised to use if cut off for good, all together; nothing is reserved for it",
        |row| row.resource.safe_capacity_out.unwrap_or(f64::INFINITY),
    ),
    ("lessor_duplicate_client_ids", "Lives of a client id that went on beside another", |row| {
        row.resource.duplicate_client_ids as f64
    }),
];

fn resources(encoder: &mut DescriptorEncoder<'_>, rows: &[ResourceRow]) -> fmt::Result {
    for (name, help, read) in READINGS {
        family(encoder, name, help, rows.iter().map(|row| (row, ConstGauge::new(read(row)))))?;
    }
    // A server that is alone writes nothing down.
    let marked = rows.iter().filter_map(|row| Some((row, ConstGauge::new(row.mark?))));
    family(encoder, "lessor_mark", "What is written down for successors: no more is out", marked)?;
    let ends = rows.iter().filter_map(|row| Some((row, ConstGauge::new(row.lease_ends_in_seconds?))));
    let help = "How long the lease from the node above lasts if nothing more is heard of it";
    family(encoder, "lessor_lease_seconds", help, ends)?;
    domains(encoder, rows)?;
    let recalls = rows.iter().map(|row| (row, ConstCounter::new(row.recalls)));
    family(encoder, "lessor_recalls", "Grants that asked for something back", recalls)
}

/// Of the resources whose clients tell each other what domains do.
fn domains(encoder: &mut DescriptorEncoder<'_>, rows: &[ResourceRow]) -> fmt::Result {
    type Reading = fn(&DomainsStatus) -> f64;
    let readings: [(&str, &str, Reading); 3] = [
        ("lessor_domain_clients", "Clients that tell each other what domains do", |of| of.clients as f64),
        ("lessor_domains_told", "Domains that clients tell of", |of| of.told as f64),
        ("lessor_domains_hot", "Domains near a limit, or in a tier that rests afterwards", |of| {
            of.hot as f64
        }),
    ];
    let shared = || rows.iter().filter_map(|row| Some((row, row.resource.domains.as_ref()?)));
    for (name, help, read) in readings {
        family(encoder, name, help, shared().map(|(row, of)| (row, ConstGauge::new(read(of)))))?;
    }
    let passed_over = shared().map(|(row, of)| (row, ConstCounter::new(of.passed_over)));
    let help = "Reports of domains passed over because too many were told of";
    family(encoder, "lessor_domains_passed_over", help, passed_over)
}

/// One figure of many resources.
fn family<'a, M: EncodeMetric>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    figures: impl Iterator<Item = (&'a ResourceRow, M)>,
) -> fmt::Result {
    let mut figures = figures.peekable();
    let Some((_, first)) = figures.peek() else { return Ok(()) };
    let mut family = encoder.encode_descriptor(name, help, None, first.metric_type())?;
    for (row, figure) in figures {
        let labels = [("resource", row.resource.resource.as_str())];
        figure.encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}

fn gauge(encoder: &mut DescriptorEncoder<'_>, name: &str, help: &str, value: f64) -> fmt::Result {
    let gauge = ConstGauge::<f64>::new(value);
    gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)
}

fn counter(encoder: &mut DescriptorEncoder<'_>, name: &str, help: &str, value: u64) -> fmt::Result {
    let counter = ConstCounter::<u64>::new(value);
    counter.encode(encoder.encode_descriptor(name, help, None, counter.metric_type())?)
}
