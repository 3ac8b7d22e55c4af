//! The figures of the process, by the names that all programs have for them, as the system tells them.

use std::fmt;
use std::sync::LazyLock;

use procfs::process::Process;
use procfs::{WithCurrentSystemInfo, boot_time_secs};
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;

use super::gauge;

/// Read once: a system that sets its clock must not make the process look as if it had started again.
static BOOTED: LazyLock<Option<u64>> = LazyLock::new(|| boot_time_secs().ok());

/// Writes them; those that the system does not tell are not there.
pub(super) fn encode(encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let Ok(process) = Process::myself() else { return Ok(()) };
    let ticks = procfs::ticks_per_second() as f64;
    if let Ok(stat) = process.stat() {
        let seconds = (stat.utime + stat.stime) as f64 / ticks;
        let help = "Processor time of the process, of user and system";
        let family = encoder.encode_descriptor("process_cpu_seconds", help, None, MetricType::Counter)?;
        ConstCounter::<f64>::new(seconds).encode(family)?;
        let help = "Memory of the process that is resident";
        let resident = stat.rss_bytes().get() as f64;
        gauge(encoder, "process_resident_memory_bytes", help, resident)?;
        if let Some(booted) = *BOOTED {
            let help = "When the process started, in seconds since 1970";
            let started = booted as f64 + stat.starttime as f64 / ticks;
            gauge(encoder, "process_start_time_seconds", help, started)?;
        }
    }
    if let Ok(open) = process.fd_count() {
        gauge(encoder, "process_open_fds", "Open files and sockets", open as f64)?;
    }
    let Ok(limits) = process.limits() else { return Ok(()) };
    if let procfs::process::LimitValue::Value(most) = limits.max_open_files.soft_limit {
        gauge(encoder, "process_max_fds", "Files and sockets that may be open", most as f64)?;
    }
    Ok(())
}
