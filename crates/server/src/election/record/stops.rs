//! The stops of leaders: when the last one had stopped, and those before it, each by its own clock.

use lessor_proto::{Epoch, Time};

use super::fault::{BadRecord, bad};
use super::words::number;
use crate::election::call::Stored;
use crate::record::EarlierStop;

/// The value of the key `stop`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::election) struct Stop {
    pub(in crate::election) epoch: Epoch,
    pub(in crate::election) write: u64,
    pub(in crate::election) clock: Time,
}

/// The value of the key `earlier`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::election) struct EarlierStops {
    pub(in crate::election) epoch: Epoch,
    pub(in crate::election) stops: Vec<EarlierStop>,
}

const STOP: &str = "1 epoch _ write _ clock_ns _ (numbers for _)";
const EARLIER: &str = "1 epoch _ and of each stopped _ clock_ns _ until_ns _ (numbers for _)";

// === impl Stop ===

impl Stop {
    pub(in crate::election) fn encode(&self) -> String {
        format!("1 epoch {} write {} clock_ns {}", self.epoch, self.write, self.clock.as_nanos())
    }

    pub(in crate::election) fn decode(stored: &Stored) -> Result<Stop, BadRecord> {
        let read = || {
            let mut words = std::str::from_utf8(&stored.value).ok()?.split_whitespace();
            (words.next()? == "1").then_some(())?;
            let (epoch, write) = (Epoch(number(&mut words, "epoch")?), number(&mut words, "write")?);
            let clock = Time::from_nanos(number(&mut words, "clock_ns")?);
            words.next().is_none().then_some(Stop { epoch, write, clock })
        };
        read().ok_or_else(|| bad(stored, STOP))
    }
}

// === impl EarlierStops ===

impl EarlierStops {
    pub(in crate::election) fn encode(&self) -> String {
        let stops = self.stops.iter().map(|EarlierStop { epoch, stop, until }| {
            format!(" stopped {epoch} clock_ns {} until_ns {}", stop.as_nanos(), until.as_nanos())
        });
        format!("1 epoch {}{}", self.epoch, stops.collect::<String>())
    }

    pub(in crate::election) fn decode(stored: &Stored) -> Result<EarlierStops, BadRecord> {
        let read = || {
            let text = std::str::from_utf8(&stored.value).ok()?;
            let mut words = text.split_whitespace();
            (words.next()? == "1").then_some(())?;
            let epoch = Epoch(number(&mut words, "epoch")?);
            let mut stops = Vec::new();
            while words.clone().next().is_some() {
                let epoch = Epoch(number(&mut words, "stopped")?);
                let stop = Time::from_nanos(number(&mut words, "clock_ns")?);
                let until = Time::from_nanos(number(&mut words, "until_ns")?);
                stops.push(EarlierStop { epoch, stop, until });
            }
            Some(EarlierStops { epoch, stops })
        };
        read().ok_or_else(|| bad(stored, EARLIER))
    }
}
