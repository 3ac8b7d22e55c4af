//! A swarm as a picture: what was judged, and what went wrong how often.

use super::SwarmReport;
use crate::oracle::Rule;
use crate::svg::{Area, Svg, TextPlace, at, bold, ink};

const FAULT: &str = "#D55E00";
const GOOD: &str = "#007A5A";
const BROKEN: &str = "#CC0000";
const INK: &str = "#222222";
const GREY: &str = "#666666";
const WIDTH: f64 = 1200.0;
/// The upper edge of the tiles, and their size.
const TILES: f64 = 64.0;
const TILE: (f64, f64) = (184.0, 84.0);
const GAP: f64 = 12.0;
/// The upper edge of the first bar, and how far from one to the next.
const TOP: f64 = 232.0;
const ROW: f64 = 24.0;
/// Where bars begin and the longest ends.
const LEFT: f64 = 380.0;
const END: f64 = 1070.0;

/// A swarm as an SVG image: what was judged, and what went wrong.
#[must_use]
pub fn svg(report: &SwarmReport) -> String {
    let mut kinds: Vec<(&str, u64)> = report.faults.counts().collect();
    kinds.sort_by_key(|&(name, count)| (std::cmp::Reverse(count), name));
    let (happened, others): (Vec<_>, Vec<_>) = kinds.into_iter().partition(|(_, count)| *count > 0);
    let mut svg = Svg::default();
    let title = format!("{} simulated trees in which everything goes wrong", grouped(report.seeds));
    svg.words(at(16.0, 38.0, 24.0), &title, &bold(INK));
    tiles(&mut svg, report);
    svg.words(at(16.0, TOP - 42.0, 18.0), "what went wrong, and how often", &bold(INK));
    let bottom = TOP + ROW * happened.len() as f64;
    let digits = happened.first().map_or(1, |(_, most)| most.ilog10() + 1);
    scale(&mut svg, digits, bottom);
    for ((name, count), row) in happened.iter().zip(0_u32..) {
        bar(&mut svg, TOP + ROW * f64::from(row), name, *count, digits);
    }
    let names: Vec<&str> = others.iter().map(|(name, _)| *name).collect();
    let lines = wrapped(&names);
    for (line, row) in lines.iter().zip(1_u32..) {
        svg.words(at(16.0, bottom + 12.0 + 20.0 * f64::from(row), 14.0), line, &ink(GREY));
    }
    svg.finish(WIDTH, bottom + 32.0 + 20.0 * lines.len() as f64, "")
}

/// The figures that a talk would name.
fn tiles(svg: &mut Svg, report: &SwarmReport) {
    let broken = report.violations.len() as u64;
    let figures = [
        (report.events, "events judged"),
        (Rule::ALL.len() as u64, "rules looked at"),
        (broken, if broken == 1 { "rule broken" } else { "rules broken" }),
        (report.messages, "messages"),
        (report.hits, "hits of limiters"),
        (report.operations, "operations of gauges"),
    ];
    let mut x = 16.0;
    for ((figure, words), index) in figures.into_iter().zip(0..) {
        let colour = match (index, figure) {
            (2, 0) => GOOD,
            (2, _) => BROKEN,
            _ => INK,
        };
        let area = Area { x, y: TILES, width: TILE.0, height: TILE.1 };
        svg.rect(area, "fill=\"#F3F4F5\" rx=\"6\"", "");
        svg.words(middle(x + TILE.0 / 2.0, TILES + 42.0, 26.0), &grouped(figure), &bold(colour));
        svg.words(middle(x + TILE.0 / 2.0, TILES + 68.0, 14.0), words, &ink(GREY));
        x += TILE.0 + GAP;
    }
}

/// Powers of ten: what is rare could not be seen beside messages that are lost by the thousand.
fn scale(svg: &mut Svg, digits: u32, bottom: f64) {
    for power in 0..=digits {
        let x = LEFT + (END - LEFT) * f64::from(power) / f64::from(digits);
        svg.line((x, TOP - 6.0), (x, bottom), "stroke=\"#D5D8DC\"");
        svg.words(middle(x, TOP - 12.0, 13.0), &grouped(10_u64.pow(power)), &ink(GREY));
    }
}

fn bar(svg: &mut Svg, top: f64, name: &str, count: u64, digits: u32) {
    let place = TextPlace { x: LEFT - 10.0, y: top + 16.0, size: 14.0, anchor: "end" };
    svg.words(place, name, &ink(INK));
    // One of a kind is seen as well.
    let width = ((count as f64).log10() / f64::from(digits) * (END - LEFT)).max(3.0);
    let area = Area { x: LEFT, y: top + 3.0, width, height: ROW - 7.0 };
    svg.rect(area, &ink(FAULT), "");
    svg.words(at(LEFT + width + 8.0, top + 16.0, 14.0), &grouped(count), &ink(INK));
}

/// The names of what did not happen, in lines that fit.
fn wrapped(names: &[&str]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for name in names {
        match lines.last_mut() {
            None => lines.push(format!("never: {name}")),
            Some(line) if line.len() + name.len() < 150 => line.push_str(&format!(", {name}")),
            Some(line) => {
                line.push(',');
                lines.push((*name).to_owned());
            }
        }
    }
    lines
}

/// A number in groups of three figures.
fn grouped(number: u64) -> String {
    let figures = number.to_string();
    let mut text = String::new();
    for (figure, left) in figures.chars().zip((0..figures.len()).rev()) {
        text.push(figure);
        if left > 0 && left % 3 == 0 {
            text.push(',');
        }
    }
    text
}

fn middle(x: f64, y: f64, size: f64) -> TextPlace {
    TextPlace { x, y, size, anchor: "middle" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::Tally;

    #[test]
    fn what_happened_has_a_bar_and_what_did_not_is_named() {
        let faults = Tally { lost: 12_345, twice: 1, ..Tally::default() };
        let report = SwarmReport { seeds: 24, events: 1_234_567, faults, ..SwarmReport::default() };
        let picture = svg(&report);
        for words in [
            ">24 simulated trees in which everything goes wrong<",
            ">1,234,567<",
            ">message lost<",
            ">12,345<",
            ">100,000<",
            ">message doubled<",
            ">never: ",
        ] {
            assert!(picture.contains(words), "no {words:?} in {picture}");
        }
        assert_eq!(picture.matches(FAULT).count(), 2);
        assert_eq!(
            ["0", "999", "1,000", "1,234,567"].map(str::len),
            [0, 999, 1_000, 1_234_567].map(|number| grouped(number).len())
        );
    }

    /// The page has a row for each rule, or for two.
    #[test]
    fn as_many_rules_are_named_as_the_page_about_simulation_has() {
        let page = include_str!("../../../docs/simulation.md");
        let (_, page) = page.split_once("## The oracle").unwrap();
        let (page, _) = page.split_once("\n## ").unwrap();
        let heads = page.lines().filter_map(|line| line.strip_prefix("| I")?.split('|').next());
        let numbers =
            heads.flat_map(|head| head.split(", I")).map(|number| number.trim().parse::<u8>().unwrap());
        let mut numbers: Vec<u8> = numbers.collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers, Rule::ALL);
    }

    #[test]
    fn nothing_at_all_can_be_drawn() {
        assert!(svg(&SwarmReport::default()).ends_with("</svg>"));
    }
}
