//! A planned resource as a forecast says it.

use std::collections::BTreeMap;

use lessor_proto::message::HolderKind;
use lessor_proto::{Amount, Time};

use super::forecast::{BandChange, Mover, PlanNote, ResourceForecast, WatchedClients};
use super::node::SupplyForecast;
use super::{PlannedResource, notes};
use crate::config::NodeConfig;
use crate::repository::{Glob, Kind, SharePolicy, Template};
use crate::resource::{Rehearsal, RehearsedHolder};

/// The least change of a share that counts as one, as a part of the capacity.
pub(super) const LEAST_CHANGE: f64 = 1e-9;

/// A planned resource that is looked at when it has been supplied.
pub(super) struct ResourceView<'a> {
    pub(super) now: Time,
    pub(super) config: &'a NodeConfig,
    pub(super) planned: &'a PlannedResource,
    pub(super) watched: &'a [Glob],
}

// === impl ResourceView ===

impl ResourceView<'_> {
    pub(super) fn forecast(&self, watched: &mut [WatchedClients]) -> ResourceForecast {
        let planned = self.planned;
        let text = |of: fn(&Template) -> &'static str| {
            [&planned.before, &planned.after]
                .map(|template| template.as_ref().map_or("", |it| of(it)).to_owned())
        };
        let limit = planned.rehearsal.as_ref().map_or(Some(Amount::ZERO), Rehearsal::limit);
        let is_bounded = planned.before.as_ref().is_none_or(|before| before.policy.is_bounded());
        let mut forecast = ResourceForecast {
            resource: planned.id.to_string(),
            template: [&planned.before, &planned.after]
                .map(|template| template.as_ref().map(|template| template.glob.to_string())),
            kind: text(kind),
            algorithm: text(algorithm),
            capacity: [is_bounded.then_some(planned.figures.capacity), limit.map(Amount::as_f64)],
            out: planned.figures.out,
            wants: planned.figures.wants,
            levels: self.levels(),
            not_named: planned.rest.holders,
            domains: planned.domains.clone(),
            until: self.until(),
            ..ResourceForecast::default()
        };
        let least = forecast.capacity.into_iter().flatten().fold(0.0, f64::max) * LEAST_CHANGE;
        for (number, holder) in planned.holders.iter().enumerate() {
            if holder.kind == HolderKind::Client {
                self.add(&mut forecast, holder, planned.share(number), least);
                self.watch(watched, holder, planned.share(number));
            }
        }
        self.add_rest(&mut forecast);
        forecast.losers.rank();
        forecast.gainers.rank();
        forecast
    }

    fn add(&self, forecast: &mut ResourceForecast, holder: &RehearsedHolder, share: f64, least: f64) {
        forecast.shares[0] += holder.share;
        forecast.shares[1] += share;
        let mover = || Mover {
            node: self.config.name.clone(),
            client: holder.name.to_string(),
            has: holder.charge.as_f64(),
            wants: holder.said.iter().map(|band| band.wants).sum(),
            share: [holder.share, share],
        };
        match share - holder.share {
            change if change < -least => forecast.losers.add(mover()),
            change if change > least => forecast.gainers.add(mover()),
            _ => forecast.keep += 1,
        }
    }

    /// Those who are not looked at one by one: their shares are right together.
    fn add_rest(&self, forecast: &mut ResourceForecast) {
        let (first, rest) = (self.planned.holders.len(), &self.planned.rest);
        let shares: f64 = match self.planned.rehearsal.is_some() && !self.planned.changes_kind() {
            true => (0..rest.buckets.len()).map(|number| self.planned.share(first + number)).sum(),
            false => 0.0,
        };
        forecast.shares[0] += rest.share;
        forecast.shares[1] += shares;
        match shares - rest.share {
            change if change < 0.0 => {
                forecast.losers.count += rest.holders;
                forecast.losers.sum -= change;
            }
            change if change > 0.0 => {
                forecast.gainers.count += rest.holders;
                forecast.gainers.sum += change;
            }
            _ => forecast.keep += rest.holders,
        }
    }

    fn watch(&self, watched: &mut [WatchedClients], holder: &RehearsedHolder, share: f64) {
        for (glob, sums) in self.watched.iter().zip(watched) {
            if glob.matches(&holder.name) {
                sums.count += 1;
                sums.loss += (holder.share - share).max(0.0);
                sums.shares[0] += holder.share;
                sums.shares[1] += share;
            }
        }
    }

    fn levels(&self) -> Vec<BandChange> {
        let after = self.planned.rehearsal.as_ref().map(Rehearsal::levels).unwrap_or_default();
        let mut levels: BTreeMap<i64, BandChange> = BTreeMap::new();
        for (place, bands) in [&self.planned.levels, &after].into_iter().enumerate() {
            for band in bands {
                let change = levels.entry(band.priority).or_default();
                change.priority = band.priority;
                change.level[place] = band.level;
            }
        }
        levels.into_values().rev().collect()
    }

    /// The supply of each node below.
    pub(super) fn passed(&self) -> BTreeMap<String, SupplyForecast> {
        let mut passed: BTreeMap<String, SupplyForecast> = BTreeMap::new();
        for (number, holder) in self.planned.holders.iter().enumerate() {
            if holder.kind == HolderKind::Client {
                continue;
            }
            let after = self.planned.after.as_ref();
            let supply = SupplyForecast {
                resource: self.planned.id.clone(),
                granted: self.planned.granted(number),
                lease_length: after.map(|after| after.lease_length),
                kind: after.map_or(Kind::default(), |after| after.kind),
            };
            let name = holder.name.to_string();
            // Of two lives of one name the one that has more is the one that lives.
            if passed.get(&name).is_none_or(|before| before.granted < supply.granted) {
                passed.insert(name, supply);
            }
        }
        passed
    }

    pub(super) fn notes(&self, supply: Option<&SupplyForecast>) -> Vec<PlanNote> {
        notes::of_resource(self.config, self.planned, supply)
            .into_iter()
            .map(|note| PlanNote {
                resource: self.planned.id.to_string(),
                node: self.config.name.clone(),
                note,
            })
            .collect()
    }
}

fn kind(template: &Template) -> &'static str {
    match template.kind {
        Kind::Rate => "rate",
        Kind::Gauge => "gauge",
    }
}

/// As the configuration calls it.
fn algorithm(template: &Template) -> &'static str {
    match template.policy {
        SharePolicy::None => "NO_ALGORITHM",
        SharePolicy::Static => "STATIC",
        SharePolicy::ProportionalShare => "PROPORTIONAL_SHARE",
        SharePolicy::FairShare => "FAIR_SHARE",
    }
}
