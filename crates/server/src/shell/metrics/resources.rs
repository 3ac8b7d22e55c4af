//! The figures of each resource that is shown.

use std::fmt;

use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::node::ResourceRow;
use crate::resource::DomainsStatus;

type ResourceReading = fn(&ResourceRow) -> f64;

/// Of each resource: name, help, and how it is read.
const READINGS: [(&str, &str, ResourceReading); 17] = [
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
    ("lessor_unenforced", "The part of all clients that lets everything pass, from 0 to 1", |row| {
        row.resource.unenforced
    }),
    ("lessor_domains_unenforced", "Whether what policies of domains refuse is granted", |row| {
        f64::from(u8::from(row.resource.domains_unenforced))
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
    ("lessor_frozen", "Whether an override lets nobody have more", |row| f64::from(u8::from(row.frozen))),
    (
        "lessor_at_risk",
        "What an operator seized, and may be used twice until those leases have ended",
        |row| row.at_risk,
    ),
    ("lessor_short", "What holders miss of their shares, at least", |row| row.pressure.short),
];

/// Writes them.
pub(super) fn encode(encoder: &mut DescriptorEncoder<'_>, rows: &[ResourceRow]) -> fmt::Result {
    for (name, help, read) in READINGS {
        family(encoder, name, help, rows.iter().map(|row| (row, ConstGauge::new(read(row)))))?;
    }
    // A server that is alone writes nothing down.
    let marked = rows.iter().filter_map(|row| Some((row, ConstGauge::new(row.mark?))));
    family(encoder, "lessor_mark", "What is written down for successors: no more is out", marked)?;
    let ends = rows.iter().filter_map(|row| Some((row, ConstGauge::new(row.lease_ends_in_seconds?))));
    let help = "How long the lease from the node above lasts if nothing more is heard of it";
    family(encoder, "lessor_lease_seconds", help, ends)?;
    let free = rows.iter().filter_map(|row| Some((row, ConstGauge::new(row.pressure.headroom?))));
    family(encoder, "lessor_headroom", "What is free to be handed out", free)?;
    levels(encoder, rows)?;
    unenforced(encoder, rows)?;
    let seconds = rows.iter().map(|row| (row, ConstCounter::new(row.pressure.saturated_seconds)));
    let help = "For how long nothing was free and more was wanted";
    family(encoder, "lessor_saturated_seconds", help, seconds)?;
    domains(encoder, rows)?;
    let recalls = rows.iter().map(|row| (row, ConstCounter::new(row.recalls)));
    family(encoder, "lessor_recalls", "Grants that asked for something back", recalls)
}

/// Of the resources of which something is let pass, or was.
fn unenforced(encoder: &mut DescriptorEncoder<'_>, rows: &[ResourceRow]) -> fmt::Result {
    let has_silent = |row: &&ResourceRow| row.resource.unenforced > 0.0 || row.resource.unenforced_silent > 0;
    let silent = rows.iter().filter(has_silent);
    let silent = silent.map(|row| (row, ConstGauge::new(f64::from(row.resource.unenforced_silent))));
    let help = "Holders that are to let everything pass and have never said that they count it";
    family(encoder, "lessor_unenforced_silent", help, silent)?;
    let said = || rows.iter().filter(|row| row.resource.unenforced_asked > 0);
    let asked = said().map(|row| (row, ConstCounter::new(row.resource.unenforced_asked)));
    let help = "Units that clients were asked for while they let everything pass, as they have said";
    family(encoder, "lessor_unenforced_asked", help, asked)?;
    let passed = said().map(|row| (row, ConstCounter::new(row.resource.unenforced_passed)));
    let help = "Those of them that leases would have refused, or would have had somebody wait for";
    family(encoder, "lessor_unenforced_passed", help, passed)
}

/// The shares of those that want much, of the greatest and of the least priority.
fn levels(encoder: &mut DescriptorEncoder<'_>, rows: &[ResourceRow]) -> fmt::Result {
    let help = "The share of one client that wants so much, of the greatest and of the least priority";
    let bands = |row: &ResourceRow| [("top", row.pressure.level_top), ("bottom", row.pressure.level_bottom)];
    let mut levels =
        rows.iter().flat_map(|row| bands(row).map(|(band, level)| (row, band, level))).peekable();
    if levels.peek().is_none() {
        return Ok(());
    }
    let mut family = encoder.encode_descriptor("lessor_level", help, None, MetricType::Gauge)?;
    for (row, band, level) in levels {
        let Some(level) = level else { continue };
        let labels = [("resource", row.resource.resource.as_str()), ("band", band)];
        ConstGauge::<f64>::new(level).encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}

/// Of the resources whose clients tell each other what domains do.
fn domains(encoder: &mut DescriptorEncoder<'_>, rows: &[ResourceRow]) -> fmt::Result {
    type DomainReading = fn(&DomainsStatus) -> f64;
    let readings: [(&str, &str, DomainReading); 3] = [
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
