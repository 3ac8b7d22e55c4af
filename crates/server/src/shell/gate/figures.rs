//! The figures of a gate.

use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;

use super::Gate;
use crate::access::Why;

/// The figures of what a gate has denied, for Prometheus.
#[derive(Debug)]
pub(in crate::shell) struct GateFigures(pub(in crate::shell) Arc<Gate>);

impl Collector for GateFigures {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let denials = self.0.denials();
        let help = "What the rules of access refused, by why";
        by_why(&mut encoder, "lessor_denied", help, |why| denials.refused(why))?;
        let help = "What the rules of access would have refused or cut down, by why";
        by_why(&mut encoder, "lessor_audited", help, |why| denials.noted(why))
    }
}

fn by_why(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    count: impl Fn(Why) -> u64,
) -> Result<(), std::fmt::Error> {
    let kind = ConstCounter::new(0_u64).metric_type();
    let mut family = encoder.encode_descriptor(name, help, None, kind)?;
    for why in Why::ALL {
        let labels = [("why", why.as_str())];
        ConstCounter::new(count(why)).encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}
