//! The outcome for those who hold something: when a change would be in force for them, and who would be refused.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use lessor_proto::Amount;

use super::forecast::{RefusedHolders, UntilForecast};
use super::planned::Refused;
use super::view::{LEAST_CHANGE, ResourceView};
use crate::repository::{Kind, Template};
use crate::resource::{Rehearsal, RehearsedHolder};

/// The reason of no time at all.
const NOBODY: &str = "nobody has to be told";
/// The time that it takes to tell somebody on a stream, and to hear of it.
const PROMPT_SECONDS: f64 = 0.2;
/// The time until who listens has certainly been told.
const LISTENER_SECONDS: f64 = 5.0;
/// Holders of those who are refused that are named.
const MOST_NAMED: usize = 10;

// === impl ResourceView ===

impl ResourceView<'_> {
    /// Whether anybody's share is another one, or more is out than may be. What is lent beyond shares is not, and has not to shrink for
    /// itself.
    fn moves(&self) -> bool {
        let planned = self.planned;
        let limit = planned.rehearsal.as_ref().map_or(Some(Amount::ZERO), Rehearsal::limit);
        let is_other = |(number, holder): (usize, &RehearsedHolder)| {
            let (before, after) = (holder.share, planned.share(number));
            (before - after).abs() > before.max(after) * LEAST_CHANGE
        };
        let is_too_much = limit.is_some_and(|limit| planned.figures.out > limit.as_f64());
        is_too_much || planned.changes_kind() || planned.holders.iter().enumerate().any(is_other)
    }

    /// The time until all that has to shrink has, and those who gain have been told.
    pub(super) fn until(&self) -> UntilForecast {
        let planned = self.planned;
        let changes_kind = planned.changes_kind();
        let (mut shrinks, mut pollers, mut listeners) = (0.0_f64, 0, 0);
        let mut grows = 0.0_f64;
        let refresh =
            planned.before.as_ref().or(planned.after.as_ref()).map(|template| template.refresh_interval);
        let refresh = refresh.unwrap_or_default().as_secs_f64();
        if !self.moves() {
            return UntilForecast { because: NOBODY.to_owned(), ..UntilForecast::default() };
        }
        for (number, holder) in planned.holders.iter().enumerate() {
            let share = Amount::from_f64(planned.share(number));
            let has_too_much = changes_kind || holder.charge > share;
            let has_too_little = holder.charge < share;
            if !has_too_much && !has_too_little {
                continue;
            }
            if has_too_much && let Some(ends) = holder.ends {
                shrinks = shrinks.max(ends.since(self.now).as_secs_f64());
            }
            grows =
                grows.max(if holder.listens { LISTENER_SECONDS } else { refresh * 2.0 + LISTENER_SECONDS });
            *(if holder.listens { &mut listeners } else { &mut pollers }) += 1;
        }
        let ghost = planned.figures.ghost_ends.unwrap_or(0.0);
        let because = match (pollers, shrinks > 0.0) {
            _ if ghost > shrinks => "what is out from before to nobody known ends then".to_owned(),
            (0, false) if listeners == 0 => NOBODY.to_owned(),
            (0, false) => "nobody has to give anything up".to_owned(),
            (1, false) => "1 holder polls, and hears of it then".to_owned(),
            (pollers, false) => format!("{pollers} holders poll, and have heard of it then"),
            (0, true) => {
                "the last lease ends then that has to shrink, should its holder say nothing".to_owned()
            }
            (1, true) => "the last lease ends then that has to shrink; 1 holder polls".to_owned(),
            (pollers, true) => format!("the last lease ends then that has to shrink; {pollers} holders poll"),
        };
        let waits = shrinks.max(ghost);
        let likely_s = if pollers > 0 { refresh } else { PROMPT_SECONDS };
        UntilForecast {
            likely_s: if pollers + listeners > 0 { likely_s.max(ghost) } else { 0.0 },
            latest_s: self.config.drift.outlasting(Duration::from_secs_f64(waits)).as_secs_f64() + grows,
            because,
        }
    }

    /// Those who would be refused.
    pub(super) fn refused(&self) -> Vec<RefusedHolders> {
        let mut all: BTreeMap<Refused, Vec<&RehearsedHolder>> = BTreeMap::new();
        for holder in &self.planned.holders {
            if let Some(why) = self.planned.refused(self.config, holder) {
                all.entry(why).or_default().push(holder);
            }
        }
        let told = |(why, holders): (Refused, Vec<&RehearsedHolder>)| {
            let is_of_all = why != Refused::Legacy;
            let ends = holders.iter().filter_map(|holder| holder.ends).max();
            RefusedHolders {
                resource: self.planned.id.to_string(),
                node: self.config.name.clone(),
                count: holders.len() + if is_of_all { self.planned.rest.holders } else { 0 },
                some: holders.iter().take(MOST_NAMED).map(|holder| holder.name.to_string()).collect(),
                why: self.why(why),
                by_s: ends.map_or(0.0, |ends| ends.since(self.now).as_secs_f64()),
            }
        };
        all.into_iter().map(told).collect()
    }

    fn why(&self, why: Refused) -> String {
        match why {
            Refused::NoTemplate => "no template covers it".to_owned(),
            Refused::OtherKind => {
                let after = self.planned.after.as_ref();
                let name = |after: &Arc<Template>| match after.kind {
                    _ if after.window.is_some() => "a limit on windows",
                    Kind::Rate => "a rate",
                    Kind::Gauge => "a gauge",
                };
                format!("it becomes {}: they have to open it as one", after.map_or("", name))
            }
            Refused::Legacy => "they draw no incarnation, and the template does not let such".to_owned(),
        }
    }
}
