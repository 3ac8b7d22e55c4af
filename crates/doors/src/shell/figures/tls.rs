//! The figures of TLS at doors.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::{LoadLabel, LoadOutcome};

/// The figures.
#[derive(Debug, Default)]
pub(in crate::shell) struct TlsFigures {
    pub(in crate::shell) handshakes_failed: Counter,
    loads: Family<LoadLabel, Counter>,
    ends: Family<CertificateLabel, Gauge>,
}

/// The certificate that is meant: there is one, or none.
#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct CertificateLabel {
    certificate: &'static str,
}

// === impl TlsFigures ===

impl TlsFigures {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "lessor_door_handshakes_failed",
            "Handshakes of TLS that failed",
            self.handshakes_failed.clone(),
        );
        let help = "Readings of certificates that have changed";
        registry.register("lessor_door_certificate_loads", help, self.loads.clone());
        let help = "The date on which the certificate in force ends";
        registry.register("lessor_certificate_expiry_timestamp_seconds", help, self.ends.clone());
    }

    /// A certificate with that end is in force.
    pub(in crate::shell) fn ends(&self, end: Duration) {
        let label = CertificateLabel { certificate: "door" };
        self.ends.get_or_create(&label).set(i64::try_from(end.as_secs()).unwrap_or(i64::MAX));
    }

    /// Counts a reading of certificates that have changed.
    pub(in crate::shell) fn loaded(&self, is_in_force: bool) {
        let outcome = if is_in_force { LoadOutcome::InForce } else { LoadOutcome::Faulty };
        self.loads.get_or_create(&LoadLabel { outcome }).inc();
    }
}
