//! The metrics of a client as a collector of `prometheus-client`: read when they are scraped, so that a permit costs nothing
//! for being counted.

use std::fmt;
use std::sync::{Arc, Weak};

use lessor_proto::Amount;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use super::clock;
use super::metrics::{Metrics, ResourceMetrics};
use super::registry::Registry;
use crate::domain::{DomainCounts, Row};
use crate::holding::{Kind, Rung};
use crate::session::{SessionCounts, Transport};

/// The metrics of one client for a registry of `prometheus-client`, all named `lessor_client_…`.
///
/// ```no_run
/// # fn metrics(client: &lessor_client::Client) {
/// let mut registry = prometheus_client::registry::Registry::default();
/// registry.register_collector(Box::new(client.collector(10)));
/// # }
/// ```
#[derive(Debug)]
pub struct Collector {
    registry: Weak<Registry>,
    /// Domains by name, of each rate.
    most: usize,
}

/// Names of figures with what they say, and how each is read.
type Readings<Of, Value, const N: usize> = [(&'static str, &'static str, fn(&Of) -> Value); N];

const COUNTS: Readings<SessionCounts, u64, 9> = [
    ("asks", "Requests for capacity sent", |of| of.asks),
    ("answers", "Answers with grants", |of| of.answers),
    ("redirects", "Answers that named another server, or nobody", |of| of.redirects),
    ("failures", "Requests and releases without a usable answer", |of| of.failures),
    ("releases", "Releases sent", |of| of.releases),
    ("streams", "Streams opened", |of| of.streams),
    ("stream_messages_sent", "Messages sent on streams", |of| of.sent),
    ("stream_messages_received", "Messages that came down on streams", |of| of.received),
    ("unknown_messages", "Those of a kind that is not known, which were passed over", |of| of.unknown),
];

const LEVELS: Readings<ResourceMetrics, f64, 6> = [
    ("capacity", "What is allowed, in units or units a second", |of| {
        of.capacity.map_or(f64::INFINITY, Amount::as_f64)
    }),
    ("lease_seconds", "How long that lasts if nothing is renewed", |of| {
        of.until.map_or(f64::INFINITY, |until| until.since(clock::now()).as_secs_f64())
    }),
    ("wants", "What was asked for last, in units or units a second", |of| of.wants),
    ("learning", "Whether the server that granted the lease was learning what is out", |of| {
        f64::from(u8::from(of.is_learning))
    }),
    ("lets_pass", "Whether everything is let pass that the lease would refuse", |of| {
        f64::from(u8::from(of.lets_pass))
    }),
    ("beside", "Whether a second limit is tried, and leased", |of| f64::from(u8::from(of.beside.is_tried))),
];

const USES: Readings<ResourceMetrics, u64, 5> = [
    ("granted", "Units granted to the program", |of| of.granted),
    ("denied", "Units denied to the program", |of| of.denied),
    ("unenforced", "Units that the lease would have denied, and that were let pass", |of| of.unenforced),
    ("beside_asked", "Units that have passed and were asked of the second limit that is tried", |of| {
        of.beside.asked
    }),
    ("beside_refused", "Those of them that the second limit would have denied", |of| of.beside.refused),
];

const OF_DOMAINS: Readings<DomainCounts, u64, 7> = [
    ("domain_hits_granted", "Hits of domains granted", |of| of.granted),
    ("domain_requests_refused", "Requests of domains that were granted nothing", |of| of.refused),
    ("domain_requests_refused_by_lease", "Of these, those that the lease was too little for", |of| {
        of.refused_by_lease
    }),
    ("domain_requests_overruled", "Requests granted against their policies, which are switched off", |of| {
        of.overruled
    }),
    ("domain_requests_degraded", "Requests of domains granted without a lease", |of| of.degraded),
    ("domain_requests_unheard", "Requests granted because other clients are out of hearing", |of| of.unheard),
    ("domain_requests_untracked", "Requests whose domain could not be remembered", |of| of.untracked),
];

const OF_DOMAIN: Readings<Row, f64, 6> = [
    ("domain_hits_in_second", "Hits of the last second of one of the busiest domains", |row| {
        row.hits_in_second.into()
    }),
    ("domain_tier", "The current tier, counted from 1; 0 where none is active", |row| row.tier as f64),
    ("domain_remaining", "The part of that tier's limit that is left, from 0 to 1", |row| row.remaining),
    ("domain_debt", "Hits that are owed", |row| row.debt.into()),
    ("domain_granted", "Hits granted since the domain was last idle", |row| row.granted as f64),
    ("domain_refused", "Requests refused since the domain was last idle", |row| row.refused as f64),
];

const RUNGS: [Rung; 5] = [Rung::Waiting, Rung::Leased, Rung::Safe, Rung::Pessimistic, Rung::Optimistic];

// === impl Collector ===

impl Collector {
    pub(super) fn new(registry: &Arc<Registry>, most: usize) -> Collector {
        Collector { registry: Arc::downgrade(registry), most }
    }
}

impl prometheus_client::collector::Collector for Collector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let Some(registry) = self.registry.upgrade() else { return Ok(()) };
        let Metrics { counts, transport, resources, .. } = registry.metrics(Some(self.most));
        let mut pen = Pen(&mut encoder);
        for (name, help, read) in COUNTS {
            pen.write_one(name, help, &ConstCounter::new(read(&counts)))?;
        }
        let polls = f64::from(u8::from(transport == Transport::Poll));
        pen.write_one("polls", "Whether it polls, and has no stream", &ConstGauge::new(polls))?;
        pen.resources(&resources)?;
        pen.domains(&resources)
    }
}

/// Writes figures.
struct Pen<'a, 'b>(&'a mut DescriptorEncoder<'b>);

// === impl Pen ===

impl Pen<'_, '_> {
    fn resources(&mut self, resources: &[ResourceMetrics]) -> fmt::Result {
        for (name, help, read) in LEVELS {
            self.write(name, help, resources.iter().map(|of| (named(of), ConstGauge::new(read(of)))))?;
        }
        for (name, help, read) in USES {
            self.write(name, help, resources.iter().map(|of| (named(of), ConstCounter::new(read(of)))))?;
        }
        let shortness = resources.iter().flat_map(|of| {
            of.short.iter().map(|(by, time)| {
                let labels = [("resource", of.resource.as_str()), ("reason", by.as_str())];
                (labels, ConstCounter::new(time.as_secs_f64()))
            })
        });
        self.write("short_seconds", "How long less was held than was wanted, by what bound it", shortness)?;
        let gauges = resources.iter().filter(|of| of.kind == Kind::Gauge);
        let in_use = gauges.map(|of| (named(of), ConstGauge::new(f64::from(of.in_use))));
        self.write("in_use", "Units of a gauge in use", in_use)?;
        let rungs = resources.iter().flat_map(|of| {
            RUNGS.map(|rung| {
                let labels = [("resource", of.resource.as_str()), ("rung", rung.name())];
                (labels, ConstGauge::new(f64::from(u8::from(of.rung == rung))))
            })
        });
        self.write("rung", "Where the allowance comes from: 1 at one of the rungs", rungs)
    }

    fn domains(&mut self, resources: &[ResourceMetrics]) -> fmt::Result {
        let rates = || resources.iter().filter(|of| of.kind == Kind::Rate);
        for (name, help, read) in OF_DOMAINS {
            self.write(name, help, rates().map(|of| (named(of), ConstCounter::new(read(&of.domains)))))?;
        }
        let busiest = || rates().filter_map(|of| Some((of, of.busiest.as_ref()?)));
        for (name, help, read) in OF_DOMAIN {
            let figures = busiest().flat_map(|(of, snapshot)| {
                snapshot.rows.iter().map(move |row| {
                    let labels = [("resource", of.resource.as_str()), ("domain", row.domain.as_str())];
                    (labels, ConstGauge::new(read(row)))
                })
            });
            self.write(name, help, figures)?;
        }
        let known = busiest()
            .map(|(of, found)| (named(of), ConstGauge::new((found.rows.len() + found.rest.domains) as f64)));
        self.write("domains", "Domains that are remembered", known)
    }

    /// One figure of the client.
    fn write_one(&mut self, name: &str, help: &str, value: &impl EncodeMetric) -> fmt::Result {
        let name = format!("lessor_client_{name}");
        value.encode(self.0.encode_descriptor(&name, help, None, value.metric_type())?)
    }

    /// One figure of many, with the labels of each value; nothing where there is none.
    fn write<'a, M: EncodeMetric, const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = ([(&'a str, &'a str); N], M)>,
    ) -> fmt::Result {
        let mut values = values.into_iter().peekable();
        let Some((_, first)) = values.peek() else { return Ok(()) };
        let name = format!("lessor_client_{name}");
        let mut family = self.0.encode_descriptor(&name, help, None, first.metric_type())?;
        for (labels, value) in values {
            value.encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

fn named(of: &ResourceMetrics) -> [(&str, &str); 1] {
    [("resource", of.resource.as_str())]
}
