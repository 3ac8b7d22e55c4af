//! The figures of the traffic: connections, streams and requests, the lock that they share, the node above, and etcd.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;

use super::{counter, gauge};
use crate::shell::driver::Driver;
use crate::shell::etcd::EtcdTraffic;
use crate::shell::measure::{Counts, Label, TimingSnapshot};

/// Writes them.
pub(super) fn encode(encoder: &mut DescriptorEncoder<'_>, driver: &Driver) -> fmt::Result {
    locks(encoder, driver)?;
    connections(encoder, driver)?;
    streams(encoder, driver)?;
    waits(encoder, driver)?;
    parent(encoder, driver)?;
    driver.etcd_traffic().map_or(Ok(()), |traffic| etcd(encoder, traffic))
}

fn of(count: &AtomicU64) -> u64 {
    count.load(Ordering::Relaxed)
}

/// The lock of the node.
fn locks(encoder: &mut DescriptorEncoder<'_>, driver: &Driver) -> fmt::Result {
    let turns = driver.turns();
    let help = "How long the lock of the node was held at once, in seconds";
    if let Some(all) = TimingSnapshot::of_all(turns.holds().all()) {
        all.encode_alone(encoder, "lessor_turn_seconds", help)?;
    }
    if let Some(metered) = turns.metered() {
        let help = "The same by a second clock";
        metered.snapshot().encode_alone(encoder, "lessor_turn_metered_seconds", help)?;
    }
    turns.holds().encode(encoder, "lessor_lock_hold_seconds", "The same by what for")
}

fn connections(encoder: &mut DescriptorEncoder<'_>, driver: &Driver) -> fmt::Result {
    let traffic = driver.traffic();
    let help = "Connections that were turned away, as their address had too many";
    counter(encoder, "lessor_connections_turned_away", help, of(&traffic.turned_away))?;
    let help = "Connections that did not say in time what they speak";
    counter(encoder, "lessor_connections_silent", help, of(&traffic.silent))?;
    let help = "Handshakes of TLS by how they ended";
    traffic.handshakes.counts().encode(encoder, "lessor_handshakes", help)?;
    let help = "Handshakes, calls and messages that had to wait, as there were too many";
    traffic.throttled.encode(encoder, "lessor_throttled", help)?;
    gauges(encoder, "lessor_connections", "Connections that are open", &traffic.connections)?;
    let help = "Whether others wait outside, as all places are taken";
    gauges(encoder, "lessor_connections_waiting", help, &traffic.waiting)?;
    traffic.admin_calls.encode(encoder)?;
    let help = "Requests, reports and streams that were refused";
    traffic.refusals.encode(encoder, "lessor_refused", help)?;
    let help = "How long answers took from when their request was there, in seconds";
    traffic.requests.encode(encoder, "lessor_request_seconds", help)
}

fn streams(encoder: &mut DescriptorEncoder<'_>, driver: &Driver) -> fmt::Result {
    let traffic = driver.traffic();
    let counts = [
        ("lessor_stream_messages_sent", "Messages sent on streams", &traffic.sent),
        ("lessor_stream_messages_received", "Messages that came up streams", &traffic.received),
        ("lessor_stream_reports_refused", "Reports on streams that were refused", &traffic.refused),
        ("lessor_streams_opened", "Streams that were opened", &traffic.streams_opened),
    ];
    for (name, help, count) in counts {
        counter(encoder, name, help, of(count))?;
    }
    traffic.streams_ended.encode(encoder, "lessor_streams_ended", "Streams that have ended")?;
    let help = "Messages on streams that are of a kind of a later version, and were passed over";
    traffic.unknown.encode(encoder, "lessor_unknown_messages", help)?;
    let help = "Streams that do not read what is there for them";
    gauge(encoder, "lessor_stream_stalled", help, of(&traffic.streams_stalled) as f64)
}

fn waits(encoder: &mut DescriptorEncoder<'_>, driver: &Driver) -> fmt::Result {
    let traffic = driver.traffic();
    let help = "How long holders on streams were short of their shares, by the way to them, in seconds";
    traffic.waits.encode(encoder, "lessor_grant_wait_seconds", help)?;
    let help = "How long it took until something that was recalled was back, in seconds";
    traffic.recalls.snapshot().encode_alone(encoder, "lessor_recall_seconds", help)
}

/// The node above, if there is one.
fn parent(encoder: &mut DescriptorEncoder<'_>, driver: &Driver) -> fmt::Result {
    let Some(has_reached) = driver.has_reached_parent() else { return Ok(()) };
    let traffic = driver.traffic();
    let serves = has_reached && !traffic.parent_fails.load(Ordering::Relaxed);
    // Whoever does not lead asks nothing of it.
    if driver.whereabouts().is_leader {
        gauge(encoder, "lessor_parent_up", "Whether the node above serves", f64::from(u8::from(serves)))?;
    }
    let help = "Requests and streams that the node above did not answer, or broke off";
    counter(encoder, "lessor_parent_failures", help, of(&traffic.parent_failures))?;
    let help = "How long answers of the node above took, in seconds";
    traffic.parent_answers.snapshot().encode_alone(encoder, "lessor_parent_rtt_seconds", help)
}

fn etcd(encoder: &mut DescriptorEncoder<'_>, traffic: &EtcdTraffic) -> fmt::Result {
    traffic.calls.encode(encoder, "lessor_etcd_call_seconds", "How long calls of etcd took, in seconds")?;
    let help = "Calls of etcd that failed, and watches that ended";
    traffic.failures.encode(encoder, "lessor_etcd_failures", help)?;
    let help = "Elections that this task has won";
    counter(encoder, "lessor_elections_won", help, of(&traffic.elections))?;
    let help = "Times that this task has left it to another to lead";
    counter(encoder, "lessor_resignations", help, of(&traffic.resignations))
}

fn gauges<L: Label>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    counts: &Counts<L>,
) -> fmt::Result {
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for (value, count) in counts.iter() {
        ConstGauge::<f64>::new(count as f64).encode(family.encode_family(&[(L::NAME, value)])?)?;
    }
    Ok(())
}
