//! A run as a picture: a lane for each tier, the highest on top, and below them what was granted and what was refused.
//!
//! It shows what the post's simulator draws: where a tier is the current one, where it is active below a higher one, where it
//! cools down, each hit and each refusal, each burst as an arrow, and the window whenever it has no room. As it stands
//! still where that moves, it shows in addition how full the window is all the time.

mod lane;
mod requests;

use std::time::Duration;

use self::lane::Drawn;
use super::figures::{Refused, TiersFigures, title};
use super::history::History;
use super::notation;
use super::text::step;
use crate::svg::{Area, Svg, TextPlace, at};

/// Colours that most of those who see colours differently tell apart.
const GRANTED: &str = "#0072B2";
const REFUSED: &str = "#D55E00";
const HARD: &str = "#AA3377";
const GLOBAL: &str = "#555555";
const CURRENT: &str = "#CFE5F3";
const SHADOWED: &str = "url(#shadowed)";
const COOLING: &str = "#FAE0C8";
const INK: &str = "#222222";
const GREY: &str = "#666666";
const WIDTH: f64 = 1400.0;
/// Where the time begins and ends.
const LEFT: f64 = 160.0;
const END: f64 = 1360.0;
const TOP: f64 = 118.0;
const LANE: f64 = 112.0;
const GAP: f64 = 14.0;
/// Of a line that names a policy, where there are several.
const NAME: f64 = 26.0;
const REQUESTS: f64 = 150.0;
const BELOW: f64 = 48.0;
const HATCH: &str = "<pattern id=\"shadowed\" width=\"7\" height=\"7\" patternUnits=\"userSpaceOnUse\" \
                     patternTransform=\"rotate(45)\"><rect width=\"7\" height=\"7\" fill=\"#F3F4F5\"/>\
                     <line x1=\"0\" y1=\"0\" x2=\"0\" y2=\"7\" stroke=\"#B4BAC0\" stroke-width=\"2\"/></pattern>\
                     <marker id=\"head\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" \
                     orient=\"auto\"><path d=\"M0,0 L8,4 L0,8 z\" fill=\"#222222\"/></marker>";

/// Where things are.
#[derive(Clone, Copy, Debug)]
struct Frame<'a> {
    history: &'a History,
    /// The lower end of everything that has a time.
    bottom: f64,
}

/// The run as an SVG image.
#[must_use]
pub fn svg(history: &History) -> String {
    let several = history.contract.policies().len() > 1;
    let names = if several { history.contract.policies().len() } else { 0 };
    let lanes = history.lanes.len() as f64 * (LANE + GAP) + names as f64 * NAME;
    let bottom = TOP + lanes + REQUESTS;
    let frame = Frame { history, bottom };
    let mut svg = Svg::default();
    frame.head(&mut svg);
    frame.axis(&mut svg);
    let mut top = TOP;
    for (policy, of) in history.contract.policies().iter().enumerate() {
        if several {
            let words = format!("policy {}: {}", policy + 1, notation::shown(of));
            svg.words(at(16.0, top + 15.0, 13.0), &words, &format!("fill=\"{INK}\" font-weight=\"bold\""));
            top += NAME;
        }
        let drawn: Vec<Drawn<'_>> = history
            .lanes
            .iter()
            .rev()
            .filter(|lane| lane.policy == policy)
            .zip(0_u32..)
            .map(|(lane, row)| Drawn { lane, top: top + f64::from(row) * (LANE + GAP) })
            .collect();
        drawn.iter().for_each(|lane| lane.draw(&mut svg, &frame));
        drawn.iter().for_each(|lane| lane.bursts(&drawn, &mut svg, &frame));
        top += drawn.len() as f64 * (LANE + GAP);
    }
    requests::draw(&mut svg, &frame, top);
    svg.finish(WIDTH, bottom + BELOW, HATCH)
}

// === impl Frame ===

impl Frame<'_> {
    /// Where a time is.
    fn x(&self, time: u64) -> f64 {
        LEFT + (END - LEFT) * time as f64 / self.history.end.max(1) as f64
    }

    /// As wide as a time is long.
    fn width(&self, time: Duration) -> f64 {
        (END - LEFT) * time.as_secs_f64() * 1e9 / self.history.end.max(1) as f64
    }

    fn head(&self, svg: &mut Svg) {
        let figures = TiersFigures::new(self.history);
        let ink = format!("fill=\"{INK}\"");
        svg.words(at(16.0, 34.0, 22.0), &title(self.history), &format!("{ink} font-weight=\"bold\""));
        svg.words(at(16.0, 58.0, 14.0), &summary(&figures, self.history.end), &ink);
        let mut x = 16.0;
        let mut entry = |draw: &dyn Fn(&mut Svg, f64), words: &str| {
            draw(svg, x);
            svg.words(at(x + 26.0, 90.0, 12.0), words, &ink);
            x += 46.0 + 7.0 * words.len() as f64;
        };
        let area = |fill: &'static str| {
            move |svg: &mut Svg, x: f64| {
                let area = Area { x, y: 78.0, width: 20.0, height: 14.0 };
                svg.rect(area, &format!("fill=\"{fill}\" stroke=\"{GREY}\" stroke-width=\"0.5\""), "");
            }
        };
        entry(&area(CURRENT), "current tier");
        entry(&area(SHADOWED), "active, shadowed by a higher one");
        entry(&area(COOLING), "cooldown");
        entry(&|svg, x| used(svg, Area { x, y: 81.0, width: 20.0, height: 11.0 }), "hits in the window");
        entry(&|svg, x| hit(svg, x + 10.0, 85.0, 5.0), "granted");
        entry(&|svg, x| cross(svg, x + 10.0, 85.0), "refused");
        entry(&|svg, x| arrow(svg, (x + 3.0, 94.0), (x + 10.0, 76.0)), "burst");
        entry(&|svg, x| bracket(svg, x, x + 20.0, 85.0, x), "a window without room");
    }

    /// The time below, and its marks behind everything.
    fn axis(&self, svg: &mut Svg) {
        let step = step(self.history.end / 12);
        let mut time = 0;
        while time <= self.history.end {
            let x = self.x(time);
            svg.line((x, TOP), (x, self.bottom), "stroke=\"#E3E5E8\" stroke-width=\"1\"");
            svg.line((x, self.bottom), (x, self.bottom + 5.0), &format!("stroke=\"{INK}\""));
            let place = TextPlace { x, y: self.bottom + 19.0, size: 12.0, anchor: "middle" };
            let words = notation::short(Duration::from_nanos(time));
            svg.words(place, &words, &format!("fill=\"{INK}\""));
            time += step;
        }
        svg.line((LEFT, self.bottom), (END, self.bottom), &format!("stroke=\"{INK}\""));
        let place = TextPlace { x: (LEFT + END) / 2.0, y: self.bottom + 39.0, size: 13.0, anchor: "middle" };
        svg.words(place, "time", &format!("fill=\"{INK}\""));
    }
}

fn summary(figures: &TiersFigures, end: u64) -> String {
    let Refused { tiers, hard, global } = figures.refused;
    let by = [("tiers", tiers), ("hard limit", hard), ("global limit", global)];
    let by: Vec<String> =
        by.iter().filter(|(_, hits)| *hits > 0).map(|(what, hits)| format!("{hits} by the {what}")).collect();
    let by = if by.is_empty() { String::new() } else { format!(" ({})", by.join(", ")) };
    let refused = figures.refused.sum();
    let (asked, granted, most) = (figures.asked, figures.granted, figures.most_in_a_second);
    let end = notation::short(Duration::from_nanos(end));
    format!(
        "{asked} hits asked for in {end}: {granted} granted, {refused} refused{by}; never more than {most} in a second"
    )
}

// === shapes that the legend shows as well ===

fn used(svg: &mut Svg, area: Area) {
    svg.rect(area, &format!("fill=\"{GRANTED}\" fill-opacity=\"0.45\""), "");
}

fn hit(svg: &mut Svg, x: f64, y: f64, radius: f64) {
    let style = format!("fill=\"{GRANTED}\" fill-opacity=\"0.85\" stroke=\"#ffffff\" stroke-width=\"0.6\"");
    svg.circle(x, y, radius, &style);
}

fn cross(svg: &mut Svg, x: f64, y: f64) {
    let (left, right, up, down) = (x - 2.6, x + 2.6, y - 2.6, y + 2.6);
    let path = format!("M{left:.1},{up:.1} L{right:.1},{down:.1} M{left:.1},{down:.1} L{right:.1},{up:.1}");
    svg.path(&path, &format!("stroke=\"{REFUSED}\" stroke-width=\"1.5\" fill=\"none\""));
}

/// A burst, from below to above.
fn arrow(svg: &mut Svg, from: (f64, f64), to: (f64, f64)) {
    let bend = from.0 - 14.0;
    let middle = f64::midpoint(from.1, to.1);
    let path = format!("M{:.1},{:.1} Q{bend:.1},{middle:.1} {:.1},{:.1}", from.0, from.1, to.0, to.1);
    svg.path(
        &path,
        &format!("stroke=\"{INK}\" stroke-width=\"1.2\" fill=\"none\" marker-end=\"url(#head)\""),
    );
}

/// From the begin to the end of a window, but not left of `least`.
fn bracket(svg: &mut Svg, from: f64, to: f64, y: f64, least: f64) {
    let (up, down, begin) = (y - 4.0, y + 4.0, from.max(least));
    let mut path = format!("M{begin:.1},{y:.1} L{to:.1},{y:.1} M{to:.1},{up:.1} L{to:.1},{down:.1}");
    if begin <= from {
        path.push_str(&format!(" M{from:.1},{up:.1} L{from:.1},{down:.1}"));
    }
    svg.path(&path, &format!("stroke=\"{INK}\" stroke-width=\"1.2\" fill=\"none\""));
}

#[cfg(test)]
mod tests {
    use lessor_algorithms::tiers::Contract;

    use super::super::{Arrival, Pattern, SECOND, Tiers, arrivals, run};
    use super::*;

    fn picture(policies: &[&str], pattern: &str, seconds: u64) -> String {
        let policies = policies.iter().map(|text| text.parse::<Tiers>().unwrap().policy(None, None).unwrap());
        let contract = Contract::new(policies.collect()).unwrap();
        let pattern: Pattern = pattern.parse().unwrap();
        let asked = arrivals(&[pattern], 1, 1, seconds * SECOND, 1).unwrap();
        svg(&run(&contract, &asked, &[], seconds * SECOND))
    }

    fn count(svg: &str, what: &str) -> usize {
        svg.matches(what).count()
    }

    #[test]
    fn each_phase_burst_and_tier_is_drawn() {
        let svg = picture(&["4/1s:8s, 30/4s:4s:15s"], "10/s", 33);
        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>"), "{} bytes", svg.len());
        for words in [
            "4/1s:8s, 30/4s:4s:15s",
            "330 hits asked for in 33s",
            ">tier 1<",
            ">tier 2<",
            "<title>tier 2 is the current one from 0.4 s until 4.4 s</title>",
            "<title>tier 1 is active below a higher one from 0.4 s until 4.4 s</title>",
            "<title>tier 2 cools down from 4.4 s until 19.4 s</title>",
        ] {
            assert!(svg.contains(words), "no {words:?} in {svg}");
        }
        // Two bursts, and the one of the legend.
        assert_eq!(count(&svg, "marker-end"), 3);
    }

    #[test]
    fn each_policy_of_a_contract_has_lanes_of_its_own() {
        let svg = picture(&["20/1h", "30/1day"], "6/h on 10m off 10m", 7200);
        assert!(svg.contains(">policy 1: 20/1h<") && svg.contains(">policy 2: 30/1day<"), "{svg}");
        assert_eq!(count(&svg, ">tier 1<"), 2);
    }

    #[test]
    fn many_requests_make_no_larger_picture() {
        let few = picture(&["1/1ms"], "1/ms", 1).len();
        let many = picture(&["1/1ms"], "100/ms", 1).len();
        assert!(few < 1_000_000 && many < 1_000_000, "{few} and {many} bytes");
    }

    #[test]
    fn nothing_at_all_can_be_drawn() {
        let closed = Contract::from(Tiers(Vec::new()).policy(None, None).unwrap());
        let ask = Arrival { at: 0, copies: 1, min: 1 };
        assert!(svg(&run(&closed, &[ask], &[], SECOND)).contains("1 refused"));
        assert!(svg(&run(&closed, &[], &[], SECOND)).contains("0 hits asked for"));
    }
}
