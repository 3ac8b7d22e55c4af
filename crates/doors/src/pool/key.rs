//! Keys: who works and waits at this door for each, in order, and the gauges out of which that is leased.

use std::collections::VecDeque;
use std::sync::Arc;

use smallvec::SmallVec;

use super::caller_id::CallerId;
use crate::name::{Joint, KeyName};

/// The gauge of a key with one number of workers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PoolGauge {
    /// The name of the resource.
    pub name: Box<str>,
    pub(super) key: Box<[u8]>,
    pub(super) workers: u32,
}

/// Those who work and wait for one key.
#[derive(Default, Debug)]
pub(super) struct PoolKey {
    pub(super) working: u32,
    pub(super) for_me: VecDeque<CallerId>,
    pub(super) for_anyone: VecDeque<CallerId>,
    /// One for each number of workers that somebody named, which is one where all are of one mind.
    gauges: SmallVec<[GaugeUse; 1]>,
}

/// The use of a gauge.
#[derive(Clone, Debug)]
pub(super) struct GaugeUse {
    pub(super) gauge: Arc<PoolGauge>,
    pub(super) working: u32,
    pub(super) waiting: u32,
}

// === impl PoolGauge ===

impl PoolGauge {
    /// The gauge of `key`. A key can write the name of no other: what has a meaning in names is encoded, and a long one is cut
    /// and told apart by a hash.
    #[must_use]
    pub fn new(key: &[u8], workers: u32) -> PoolGauge {
        let prefix = format!("pool|w:{workers}|");
        let mut text = KeyName::new(Joint::Comma);
        text.push(key);
        let name = format!("{prefix}{}", text.within(&prefix)).into();
        PoolGauge { name, key: key.into(), workers }
    }

    /// The number of workers that there are in all.
    #[must_use]
    pub fn workers(&self) -> u32 {
        self.workers
    }
}

// === impl PoolKey ===

impl PoolKey {
    /// Those who work or wait.
    pub(super) fn count(&self) -> usize {
        self.working as usize + self.for_me.len() + self.for_anyone.len()
    }

    /// The use of the gauge with that number of workers, which is made if there is none.
    pub(super) fn gauge(&mut self, key: &[u8], workers: u32) -> &mut GaugeUse {
        let place = self.gauges.iter().position(|known| known.gauge.workers == workers);
        let place = place.unwrap_or_else(|| {
            let gauge = Arc::new(PoolGauge::new(key, workers));
            self.gauges.push(GaugeUse { gauge, working: 0, waiting: 0 });
            self.gauges.len() - 1
        });
        &mut self.gauges[place]
    }

    /// The units of a gauge that are in use, and those that are waited for and would be given.
    pub(super) fn need(&self, gauge: &PoolGauge) -> (u32, u32) {
        let Some(of) = self.gauges.iter().find(|known| known.gauge.workers == gauge.workers) else {
            return (0, 0);
        };
        (of.working, of.waiting.min(gauge.workers.saturating_sub(self.working)))
    }

    /// The gauges, one for each number of workers.
    pub(super) fn gauges(&self) -> impl Iterator<Item = &Arc<PoolGauge>> {
        self.gauges.iter().map(|known| &known.gauge)
    }

    /// Takes a caller out of the line in which it waits.
    pub(super) fn leave(&mut self, caller: CallerId, for_anyone: bool) {
        let line = if for_anyone { &mut self.for_anyone } else { &mut self.for_me };
        // The first leaves most often.
        if let Some(place) = line.iter().position(|&waiting| waiting == caller) {
            line.remove(place);
        }
    }
}
