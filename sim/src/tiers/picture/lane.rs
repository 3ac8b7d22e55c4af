//! The lane of one tier.

use std::fmt::Write as _;

use lessor_algorithms::tiers::{Bound, Window};

use super::{COOLING, CURRENT, END, Frame, GRANTED, GREY, INK, LANE, LEFT, SHADOWED};
use crate::svg::{Area, Pixels, Svg, TextPlace};
use crate::tiers::history::{COLUMNS, Doing, Lane, begin, cell};
use crate::tiers::{notation, seconds};

/// A lane and where it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Drawn<'a> {
    pub(super) lane: &'a Lane,
    pub(super) top: f64,
}

/// Above the hits of the window: those that are granted and those that are refused, one by one.
const STRIP: f64 = 32.0;
/// Where a window is full, below the strip.
const FULL: f64 = STRIP + 8.0;
/// As many hits and refusals are drawn in a lane at most.
const MARKS: usize = 200;
/// The least of what is drawn as a length, in pixels.
const LEAST: f64 = 8.0;

// === impl Drawn ===

impl Drawn<'_> {
    pub(super) fn draw(&self, svg: &mut Svg, frame: &Frame<'_>) {
        self.phases(svg, frame);
        self.used(svg);
        self.limit(svg);
        self.windows(svg, frame);
        self.marks(svg);
        let area = Area { x: LEFT, y: self.top, width: END - LEFT, height: LANE };
        svg.rect(area, "fill=\"none\" stroke=\"#9AA1A8\" stroke-width=\"1\"", "");
        self.name(svg);
    }

    /// An arrow for each time that this tier was entered, from the one that was left, whose window is full; or from below
    /// where there was none. That the first tier begins is no burst.
    pub(super) fn bursts(&self, policy: &[Drawn<'_>], svg: &mut Svg, frame: &Frame<'_>) {
        let mut last = f64::MIN;
        for entered in self.lane.entered.iter().filter(|_| self.lane.number > 1) {
            let x = frame.x(entered.at);
            if x - last <= 3.0 {
                continue;
            }
            let left = policy.iter().find(|drawn| drawn.lane.number == entered.from);
            let below = policy.last().map_or(self.top, |lowest| lowest.top) + LANE;
            super::arrow(svg, (x, left.map_or(below, |left| left.top + FULL)), (x, self.top + 18.0));
            last = x;
        }
    }

    fn phases(&self, svg: &mut Svg, frame: &Frame<'_>) {
        let columns = self.lane.mostly(frame.history.end, COLUMNS);
        let mut from = 0;
        for run in columns.chunk_by(|one, other| one == other) {
            let until = from + run.len();
            if let Some(doing) = run[0] {
                let (x, width) = (column_x(from), column_x(until) - column_x(from));
                let area = Area { x, y: self.top, width, height: LANE };
                svg.rect(area, &style(doing), &self.said(doing, frame.history.end, from, until));
            }
            from = until;
        }
    }

    /// The state of the tier and the time of it there, in words; exactly, if it is one phase.
    fn said(&self, doing: Doing, end: u64, from: usize, until: usize) -> String {
        let what = match doing {
            Doing::Current => "is the current one",
            Doing::Shadowed => "is active below a higher one",
            Doing::Cooling => "cools down",
        };
        let (first, last) = (begin(from, end, COLUMNS), begin(until, end, COLUMNS));
        let mut here = self.lane.phases.iter().filter(|phase| phase.doing == doing);
        let here = here.find(|phase| {
            cell(phase.from, end, COLUMNS).abs_diff(from) <= 1 && phase.until.abs_diff(last) <= last - first
        });
        let (first, last) = here.map_or((first, last), |phase| (phase.from, phase.until));
        format!("tier {} {what} from {} s until {} s", self.lane.number, seconds(first), seconds(last))
    }

    /// Draws how full the window is.
    fn used(&self, svg: &mut Svg) {
        if self.lane.columns.iter().all(|column| column.fullest == 0) {
            return;
        }
        let base = self.top + LANE;
        let mut path = format!("M{LEFT},{}", Pixels(base));
        let mut last = 0;
        for (at, column) in self.lane.columns.iter().enumerate() {
            if column.fullest != last {
                let (x, before, after) = (column_x(at), self.height(last), self.height(column.fullest));
                let [x, before, after] = [x, before, after].map(Pixels);
                write!(path, " L{x},{before} L{x},{after}").expect("a string takes everything");
                last = column.fullest;
            }
        }
        let last = Pixels(self.height(last));
        write!(path, " L{END},{last} L{END},{} Z", Pixels(base)).expect("a string takes everything");
        svg.path(
            &path,
            &format!("fill=\"{GRANTED}\" fill-opacity=\"0.45\" stroke=\"{GRANTED}\" stroke-width=\"0.8\""),
        );
    }

    /// Where so many hits of the window are.
    fn height(&self, hits: u32) -> f64 {
        let full = f64::from(hits.min(self.lane.tier.limit)) / f64::from(self.lane.tier.limit);
        self.top + LANE - full * (LANE - FULL)
    }

    fn limit(&self, svg: &mut Svg) {
        let y = self.top + FULL;
        let style = format!("stroke=\"{INK}\" stroke-width=\"0.8\" stroke-dasharray=\"5 4\"");
        svg.line((LEFT, y), (END, y), &style);
        let words = |hits: &str, y: f64, svg: &mut Svg| {
            let place = TextPlace { x: LEFT - 6.0, y: y + 4.0, size: 11.0, anchor: "end" };
            svg.words(place, hits, &format!("fill=\"{GREY}\""));
        };
        words(&self.lane.tier.limit.to_string(), y, svg);
        words("0", self.top + LANE - 4.0, svg);
    }

    /// Windows, as far as they are long enough to be seen.
    fn windows(&self, svg: &mut Svg, frame: &Frame<'_>) {
        let width = frame.width(self.lane.tier.window);
        match self.lane.tier.kind {
            _ if width < LEAST => {}
            Window::Exact | Window::Sliding { .. } => self.full(svg, frame, width),
            Window::Fixed => self.ticks(svg, frame, width),
            Window::Bucket => {}
        }
    }

    /// Windows that end with a refusal, and not within another one.
    fn full(&self, svg: &mut Svg, frame: &Frame<'_>, width: f64) {
        let mut last = f64::MIN;
        for request in &frame.history.requests {
            let decision = &request.decision;
            let is_full = decision.bound == Some(Bound::Tiers)
                && (decision.policy, decision.tier) == (self.lane.policy, self.lane.number)
                && decision.hits_in_tier >= decision.tier_limit;
            let x = frame.x(request.arrival.at);
            if is_full && x - width > last {
                super::bracket(svg, x - width, x, self.top + FULL, LEFT);
                if width > 40.0 {
                    let place = TextPlace { x: x - 4.0, y: self.top + FULL - 3.0, size: 10.0, anchor: "end" };
                    let words = notation::short(self.lane.tier.window);
                    svg.words(place, &words, &format!("fill=\"{INK}\""));
                }
                last = x;
            }
        }
    }

    /// Where windows begin that begin by themselves.
    fn ticks(&self, svg: &mut Svg, frame: &Frame<'_>, width: f64) {
        let style = format!("stroke=\"{INK}\" stroke-width=\"0.6\"");
        let (active, mut last) = (frame.width(self.lane.tier.active), f64::MIN);
        for entered in self.lane.entered.iter().map(|entered| frame.x(entered.at)) {
            if entered - last < 1.0 {
                continue;
            }
            let mut x = entered;
            while x <= (entered + active).min(END) {
                svg.line((x, self.top + FULL), (x, self.top + LANE), &style);
                (x, last) = (x + width, x);
            }
        }
    }

    /// Hits and refusals.
    fn marks(&self, svg: &mut Svg) {
        let each = COLUMNS / MARKS;
        let parts = self.lane.columns.chunks(each).map(|part| {
            let sum =
                |of: fn(&crate::tiers::Column) -> u32| part.iter().map(|one| u64::from(of(one))).sum::<u64>();
            (sum(|column| column.granted), sum(|column| column.refused))
        });
        let parts: Vec<(u64, u64)> = parts.collect();
        let most = parts.iter().map(|(granted, _)| *granted).max().unwrap_or(0).max(1) as f64;
        for (index, (granted, refused)) in parts.into_iter().enumerate() {
            let x = column_x(index * each) + 3.0;
            if granted > 0 {
                let radius = (6.0 * (granted as f64 / most).sqrt()).max(1.8);
                super::hit(svg, x, self.top + 10.0, radius);
            }
            if refused > 0 {
                super::cross(svg, x, self.top + 24.0);
            }
        }
    }

    fn name(&self, svg: &mut Svg) {
        let tier = &self.lane.tier;
        let mut lines = vec![
            format!("{} in {}", tier.limit, notation::short(tier.window)),
            format!("active {}", notation::short(tier.active)),
        ];
        if !tier.cooldown.is_zero() {
            lines.push(format!("cooldown {}", notation::short(tier.cooldown)));
        }
        lines.extend(tier.is_skippable.then(|| "skippable".to_owned()));
        lines.extend(match tier.kind {
            Window::Exact => None,
            Window::Sliding { slices } => Some(format!("{slices} slices")),
            Window::Fixed => Some("fixed windows".to_owned()),
            Window::Bucket => Some("bucket".to_owned()),
        });
        let name = format!("tier {}", self.lane.number);
        let style = format!("fill=\"{INK}\" font-weight=\"bold\"");
        svg.words(super::at(16.0, self.top + 16.0, 14.0), &name, &style);
        for (line, row) in lines.iter().zip(1_u32..) {
            let y = self.top + 17.0 + 16.0 * f64::from(row);
            svg.words(super::at(16.0, y, 12.0), line, &format!("fill=\"{GREY}\""));
        }
    }
}

fn style(doing: Doing) -> String {
    let fill = match doing {
        Doing::Current => CURRENT,
        Doing::Shadowed => SHADOWED,
        Doing::Cooling => COOLING,
    };
    format!("fill=\"{fill}\" stroke=\"#9AA1A8\" stroke-width=\"0.5\"")
}

/// Where a column of a history begins.
fn column_x(column: usize) -> f64 {
    LEFT + (END - LEFT) * column as f64 / COLUMNS as f64
}
