//! `/v1/series`: the figures of the busiest resources over the last minutes, kept in memory.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use lessor_client::internals::clock;
use lessor_server::access::Role;
use lessor_server::node::{ResourceRow, StatusQuery};
use serde::Serialize;

use crate::desk::Desk;
use crate::parameters::Parameters;
use crate::problem::{Answer, ApiProblem};

/// The figures over time.
#[derive(Debug)]
pub(crate) struct SeriesRoom {
    history: Duration,
    lines: Mutex<Lines>,
}

/// The series of all resources, which end at the same tick.
#[derive(Debug, Default)]
struct Lines {
    ticks: u64,
    by_resource: BTreeMap<String, Line>,
}

/// The series of one resource.
#[derive(Default, Debug)]
struct Line {
    points: VecDeque<Point>,
    /// The tick of the last point that was seen.
    seen: u64,
}

/// The figures at one moment, in the order of [`FIELDS`].
type Point = [f32; 6];

/// The figures that are kept.
const FIELDS: [&str; 6] = ["capacity", "outstanding", "wants", "ghost", "mark", "level"];
/// Points of one resource.
const POINTS: usize = 900;
/// Resources of which there are any.
const RESOURCES: usize = 200;

/// Series of one resource.
#[derive(Serialize)]
struct OneSeries {
    resource: String,
    step_seconds: f64,
    /// Each figure from the oldest point to the newest; null where nothing was known.
    series: BTreeMap<&'static str, Vec<f32>>,
}

/// One figure of all resources.
#[derive(Serialize)]
struct AllSeries {
    field: &'static str,
    step_seconds: f64,
    rows: BTreeMap<String, Vec<f32>>,
}

// === impl SeriesRoom ===

impl SeriesRoom {
    pub(crate) fn new(history: Duration) -> SeriesRoom {
        SeriesRoom { history, lines: Mutex::default() }
    }

    /// The time for which figures are kept.
    pub(crate) fn history(&self) -> Duration {
        self.history
    }

    /// The time from one point to the next.
    pub(crate) fn step(&self) -> Duration {
        (self.history / u32::try_from(POINTS).unwrap_or(u32::MAX)).max(Duration::from_secs(1))
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a point of each of the busiest rows.
    fn sample(&self, rows: &[ResourceRow]) {
        let most = usize::try_from(self.history.as_secs() / self.step().as_secs().max(1)).unwrap_or(POINTS);
        self.lines().sample(rows, most.clamp(1, POINTS));
    }
}

// === impl Lines ===

impl Lines {
    fn sample(&mut self, rows: &[ResourceRow], most: usize) {
        self.ticks += 1;
        let mut busiest: Vec<&ResourceRow> = rows.iter().collect();
        busiest.sort_by_key(|row| (Reverse(row.resource.clients), &row.resource.resource));
        for row in busiest.into_iter().take(RESOURCES) {
            let line = self.by_resource.entry(row.resource.resource.clone()).or_default();
            line.push(point(row), self.ticks, most);
        }
        let ticks = self.ticks;
        self.by_resource.retain(|_, line| ticks - line.seen < most as u64);
        while self.by_resource.len() > RESOURCES {
            let oldest = self.by_resource.iter().min_by_key(|(_, line)| line.seen);
            let Some(name) = oldest.map(|(name, _)| name.clone()) else { break };
            self.by_resource.remove(&name);
        }
    }

    /// The points of a resource up to now, at most `most` of them.
    fn points(&self, resource: &str, most: usize) -> Option<Vec<Point>> {
        let line = self.by_resource.get(resource)?;
        let missing = usize::try_from(self.ticks - line.seen).unwrap_or(POINTS);
        let gap = std::iter::repeat_n([f32::NAN; 6], missing);
        let points: Vec<Point> = line.points.iter().copied().chain(gap).collect();
        Some(points[points.len().saturating_sub(most)..].to_vec())
    }
}

// === impl Line ===

impl Line {
    fn push(&mut self, point: Point, tick: u64, most: usize) {
        if !self.points.is_empty() {
            let missing = usize::try_from(tick - self.seen - 1).unwrap_or(POINTS).min(most);
            self.points.extend(std::iter::repeat_n([f32::NAN; 6], missing));
        }
        self.points.push_back(point);
        self.seen = tick;
        let over = self.points.len().saturating_sub(most);
        self.points.drain(..over);
    }
}

fn point(row: &ResourceRow) -> Point {
    let level = row.pressure.level_bottom.filter(|level| level.is_finite());
    [
        row.resource.capacity as f32,
        row.outstanding as f32,
        row.resource.wants as f32,
        row.ghost as f32,
        row.mark.map_or(f32::NAN, |mark| mark as f32),
        level.map_or(f32::NAN, |level| level as f32),
    ]
}

/// Keeps the figures of the busiest resources, until the server is told to stop.
pub(crate) fn keep(desk: &Desk) {
    if desk.series.history().is_zero() {
        return;
    }
    let (desk, mut stopped) = (desk.clone(), desk.parts.stopped.clone());
    tokio::spawn(async move {
        let mut next = clock::now();
        loop {
            next = (next + desk.series.step()).max(clock::now());
            tokio::select! {
                // An error means that the server is gone, which is a stop as well.
                _ = stopped.wait_for(|&stop| stop) => return,
                () = clock::sleep_until(next) => {}
            }
            // Of a node that is broken, or late, nothing is known.
            if let Ok(summary) = desk.parts.driver.look(&StatusQuery::FIGURES).await {
                desk.series.sample(&summary.status.resources);
            }
        }
    });
}

/// Answers `/v1/series`.
pub(crate) async fn series(State(desk): State<Desk>, request: Request) -> Result<Response, ApiProblem> {
    let asked = Parameters::read(request.uri(), &["resource", "field", "points"])?;
    let resource = asked.text("resource");
    desk.may(&request, Role::See, resource)?;
    let most = asked.number("points", (1, POINTS as u64))?.and_then(|most| usize::try_from(most).ok());
    let most = most.unwrap_or(POINTS);
    let step_seconds = desk.series.step().as_secs_f64();
    let Some(resource) = resource else {
        let name = asked.text("field").unwrap_or("outstanding");
        let field = FIELDS.iter().position(|field| *field == name).ok_or_else(|| {
            ApiProblem::invalid("field", name, &format!("one of {}", FIELDS.join(", "))).knowing(FIELDS)
        })?;
        let lines = desk.series.lines();
        let rows = lines.by_resource.keys().filter_map(|resource| {
            let points = lines.points(resource, most)?;
            Some((resource.clone(), points.iter().map(|point| point[field]).collect()))
        });
        let all = AllSeries { field: FIELDS[field], step_seconds, rows: rows.collect() };
        return Ok(Answer::new(all).into_response());
    };
    let points = desk.series.lines().points(resource, most);
    let points = points.ok_or_else(|| {
        let why = match desk.series.history().is_zero() {
            true => "no figures are kept here (--history 0)".to_owned(),
            false => format!(
                "nothing is kept of {resource:?}: only of the {RESOURCES} busiest, while this task leads"
            ),
        };
        ApiProblem::missing(why)
    })?;
    let column = |index: usize| points.iter().map(|point| point[index]).collect();
    let series = FIELDS.iter().enumerate().map(|(index, field)| (*field, column(index))).collect();
    Ok(Answer::new(OneSeries { resource: resource.to_owned(), step_seconds, series }).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(lines: &mut Lines, name: &str, value: f32, most: usize) {
        let tick = lines.ticks;
        lines.by_resource.entry(name.to_owned()).or_default().push([value; 6], tick, most);
    }

    fn values(lines: &Lines, name: &str, most: usize) -> Vec<Option<f32>> {
        let points = lines.points(name, most).expect("there are some");
        points.iter().map(|point| Some(point[0]).filter(|value| !value.is_nan())).collect()
    }

    #[test]
    fn a_series_ends_now_and_has_gaps_where_nothing_was_known() {
        let mut lines = Lines::default();
        for tick in 1..=6_u8 {
            lines.ticks += 1;
            if [1, 2, 5].contains(&tick) {
                push(&mut lines, "db", tick.into(), 4);
            }
        }
        assert_eq!(values(&lines, "db", 9), [Some(2.0), None, None, Some(5.0), None]);
        assert_eq!(values(&lines, "db", 2), [Some(5.0), None]);
        assert!(lines.points("other", 1).is_none());
    }

    #[test]
    fn history_has_at_most_nine_hundred_points() {
        for (history, step) in [(900, 1), (60, 1), (9_000, 10)] {
            let room = SeriesRoom::new(Duration::from_secs(history));
            assert_eq!(room.step(), Duration::from_secs(step));
        }
    }
}
