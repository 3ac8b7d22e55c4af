//! A comparison of scopes as a picture: what clients granted beyond the center, and what they refused although there was
//! room.

use super::{TenantsReport, TenantsRun, TenantsTraffic};
use crate::svg::{Area, Svg, TextPlace, at, bold, ink};

/// A colour for each traffic, which most of those who see colours differently tell apart.
const COLOURS: [&str; 3] = ["#0072B2", "#E69F00", "#009E73"];
const INK: &str = "#222222";
const GREY: &str = "#666666";
const WIDTH: f64 = 1400.0;
const TOP: f64 = 168.0;
const BAR: f64 = 13.0;
/// Between the bars of one scope and those of the next.
const BETWEEN: f64 = 16.0;
/// Beside a bar, for its figure.
const FIGURE: f64 = 66.0;

/// Bars side by side with the same scale.
struct BarPanel {
    title: &'static str,
    left: f64,
    right: f64,
    /// Per cent.
    figure: fn(&TenantsReport) -> f64,
    has_sign: bool,
}

const PANELS: [BarPanel; 2] = [
    BarPanel {
        title: "granted beyond one who is asked for every hit (%)",
        left: 200.0,
        right: 860.0,
        figure: |report| 100.0 * report.over(),
        has_sign: true,
    },
    BarPanel {
        title: "refused although there was room (% of requests)",
        left: 920.0,
        right: 1384.0,
        figure: |report| 100.0 * report.incorrect as f64 / report.asked.max(1) as f64,
        has_sign: false,
    },
];

/// The rows of a comparison, those of one scope one after the other, as an SVG image; `about` says in a line what was run.
#[must_use]
pub fn svg(rows: &[(TenantsRun, TenantsReport)], about: &str) -> String {
    let mut svg = Svg::default();
    svg.words(at(16.0, 38.0, 24.0), "Clients keep to the tiers of one domain together", &bold(INK));
    svg.words(at(16.0, 64.0, 14.0), about, &ink(GREY));
    legend(&mut svg, rows);
    let places = places(rows);
    let bottom = places.last().copied().unwrap_or(TOP) + BAR + BETWEEN / 2.0;
    names(&mut svg, rows, &places);
    for panel in &PANELS {
        panel.draw(&mut svg, rows, &places, bottom);
    }
    svg.finish(WIDTH, bottom + 24.0, "")
}

/// Whether two rows are of the same scope, in the same tree.
fn alike(one: &TenantsRun, other: &TenantsRun) -> bool {
    (one.way, one.levels) == (other.way, other.levels)
}

/// The upper edge of the bar of each row.
fn places(rows: &[(TenantsRun, TenantsReport)]) -> Vec<f64> {
    let mut y = TOP;
    let mut place = |index: usize| {
        if index > 0 {
            y += BAR + if alike(&rows[index - 1].0, &rows[index].0) { 0.0 } else { BETWEEN };
        }
        y
    };
    (0..rows.len()).map(&mut place).collect()
}

/// The scope of each group, beside it.
fn names(svg: &mut Svg, rows: &[(TenantsRun, TenantsReport)], places: &[f64]) {
    let mut first = 0;
    for group in rows.chunk_by(|one, other| alike(&one.0, &other.0)) {
        let last = first + group.len() - 1;
        let (run, y) = (&group[0].0, f64::midpoint(places[first], places[last] + BAR));
        let levels = match run.levels {
            1 => "one server".to_owned(),
            levels => format!("{levels} levels of servers"),
        };
        svg.words(at(16.0, y - 1.0, 14.0), &run.way.to_string(), &bold(INK));
        svg.words(at(16.0, y + 15.0, 12.0), &levels, &ink(GREY));
        first = last + 1;
    }
}

fn legend(svg: &mut Svg, rows: &[(TenantsRun, TenantsReport)]) {
    let mut x = 16.0;
    let mut entry = |style: &str, words: &str| {
        svg.rect(Area { x, y: 83.0, width: 22.0, height: 13.0 }, style, "");
        svg.words(at(x + 30.0, 94.0, 14.0), words, &ink(INK));
        x += 60.0 + 7.6 * words.len() as f64;
    };
    for (traffic, colour) in TenantsTraffic::ALL.into_iter().zip(COLOURS) {
        entry(&ink(colour), &format!("{traffic} traffic"));
    }
    for clients in counts(rows) {
        let style = format!("fill=\"{GREY}\" fill-opacity=\"{}\"", opacity(rows, clients));
        entry(&style, &format!("{clients} client{}", if clients == 1 { "" } else { "s" }));
    }
}

/// The numbers of clients, each once.
fn counts(rows: &[(TenantsRun, TenantsReport)]) -> Vec<usize> {
    let mut counts: Vec<usize> = rows.iter().map(|(run, _)| run.clients).collect();
    counts.sort_unstable();
    counts.dedup();
    counts
}

/// The more clients, the fainter.
fn opacity(rows: &[(TenantsRun, TenantsReport)], clients: usize) -> f64 {
    if counts(rows).first() == Some(&clients) { 1.0 } else { 0.5 }
}

// === impl BarPanel ===

impl BarPanel {
    fn draw(&self, svg: &mut Svg, rows: &[(TenantsRun, TenantsReport)], places: &[f64], bottom: f64) {
        let figures: Vec<f64> = rows.iter().map(|(_, report)| (self.figure)(report)).collect();
        let (least, most) =
            figures.iter().fold((0.0, 1.0), |(least, most), &figure| (figure.min(least), figure.max(most)));
        svg.words(at(self.left, TOP - 40.0, 15.0), self.title, &bold(INK));
        // Figures stand beside both ends.
        let left = self.left + if least < 0.0 { FIGURE } else { 0.0 };
        let width = self.right - FIGURE - left;
        let x = |figure: f64| left + width * (figure - least) / (most - least);
        let step = step(most - least);
        let mut mark = (least / step).ceil() * step;
        while mark <= most {
            svg.line((x(mark), TOP - 8.0), (x(mark), bottom), "stroke=\"#D5D8DC\"");
            let place = TextPlace { x: x(mark), y: TOP - 14.0, size: 12.0, anchor: "middle" };
            svg.words(place, &format!("{mark:.0}"), &ink(GREY));
            mark += step;
        }
        for (((run, _), &figure), &y) in rows.iter().zip(&figures).zip(places) {
            let colour =
                COLOURS[TenantsTraffic::ALL.iter().position(|traffic| *traffic == run.traffic).unwrap_or(0)];
            let (from, to) = (x(figure.min(0.0)), x(figure.max(0.0)));
            let area = Area { x: from, y: y + 1.0, width: (to - from).max(1.0), height: BAR - 2.0 };
            let said = format!("{}, {} traffic, {} clients", run.way, run.traffic, run.clients);
            svg.rect(
                area,
                &format!("fill=\"{colour}\" fill-opacity=\"{}\"", opacity(rows, run.clients)),
                &said,
            );
            let (x, anchor) = if figure < 0.0 { (from - 5.0, "end") } else { (to + 5.0, "start") };
            let words = if self.has_sign { format!("{figure:+.1}") } else { format!("{figure:.2}") };
            svg.words(TextPlace { x, y: y + BAR - 3.0, size: 11.0, anchor }, &words, &ink(INK));
        }
        svg.line((x(0.0), TOP - 8.0), (x(0.0), bottom), &format!("stroke=\"{INK}\""));
    }
}

/// The distance of marks on a scale that is so long.
fn step(length: f64) -> f64 {
    let steps = [0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0];
    steps.into_iter().find(|step| length / step <= 8.0).unwrap_or(length)
}

#[cfg(test)]
mod tests {
    use super::super::TenantsWay;
    use super::*;

    fn row(way: TenantsWay, clients: usize, granted: u64, incorrect: u64) -> (TenantsRun, TenantsReport) {
        let report = TenantsReport {
            asked: 1_000,
            granted,
            granted_by_center: 400,
            incorrect,
            ..TenantsReport::default()
        };
        (TenantsRun { way, clients, levels: 1, ..TenantsRun::default() }, report)
    }

    #[test]
    fn each_row_has_a_bar_in_both_panels_with_its_figure() {
        let rows = [
            row(TenantsWay::Alone, 4, 600, 3),
            row(TenantsWay::Alone, 16, 500, 20),
            row(TenantsWay::Strict, 4, 300, 700),
        ];
        let picture = svg(&rows, "a line");
        for words in [">a line<", ">strict<", ">16 clients<", ">+50.0<", ">-25.0<", ">0.30<", ">70.00<"] {
            assert!(picture.contains(words), "no {words:?} in {picture}");
        }
        assert_eq!(picture.matches("<title>").count(), 2 * rows.len());
        assert_eq!(picture.matches(">client<").count(), 1, "rows of one scope share its name");
    }
}
