//! A run as a picture: what every level of the tree wants, may give and has given, and what went wrong when.
//!
//! Wants grow to many times the capacity, so they have a panel and a scale of their own. All panels have the same time
//! below them and the same faults behind them.

use kuva::backend::svg::SvgBackend;
use kuva::plot::LinePlot;
use kuva::plot::legend::{LegendEntry, LegendShape};
use kuva::render::annotations::{ReferenceLine, ShadedRegion};
use kuva::render::figure::{Figure, FigureLegendPosition};
use kuva::render::layout::{Layout, TickFormat};
use kuva::render::plots::Plot;

use super::ReportRun;
use crate::measure::{Level, Mark, Recording};

/// Of one quantity, all levels.
struct LevelPanel {
    title: &'static str,
    quantity: fn(&Level) -> f64,
}

const PANELS: [LevelPanel; 3] = [
    LevelPanel { title: "wants: what is asked for", quantity: |level| level.wants },
    LevelPanel { title: "capacity: what each level may give out", quantity: |level| level.capacity },
    LevelPanel { title: "has: what each level has given out", quantity: |level| level.has },
];

/// Colours that most of those who see colours differently tell apart, the clients' first, then upwards.
const COLOURS: [&str; 4] = ["#0072B2", "#E69F00", "#009E73", "#555555"];
const SPIKE: &str = "#B8B8B8";
const LOSS: &str = "#D55E00";
/// The colour of a loss on white.
const LOSS_ON_WHITE: &str = "#F8E5D6";
const ELECTION: &str = "#AA3377";
const LIMIT: &str = "#000000";
const WIDTH: f64 = 1400.0;
const HEIGHT: f64 = 960.0;
/// Around the axes of a panel, in pixels; the same for all, so that the same time is in the same site.
const LEFT: f64 = 80.0;
const RIGHT: f64 = 20.0;
const ABOVE: f64 = 40.0;
/// Below a panel that has another one below it.
const BETWEEN: f64 = 24.0;
/// Below the last.
const BELOW: f64 = 54.0;
/// Mishaps up to this many are named; of more, only the losses that more than one data centre feels.
const NAMED: usize = 8;
/// The part of the whole time that one name takes.
const NAME: f64 = 0.06;

/// The run as an SVG image.
#[must_use]
pub fn svg(run: &ReportRun<'_>, recording: &Recording) -> String {
    let (plots, layouts) =
        PANELS.iter().enumerate().map(|(row, panel)| draw(panel, row, run, recording)).unzip();
    let title = format!("Scenario {}, seed {}, mode {}", run.scenario, run.seed, run.mode);
    let scene = Figure::new(PANELS.len(), 1)
        .with_title(title)
        .with_title_size(24)
        .with_plots(plots)
        .with_layouts(layouts)
        .with_shared_legend_entries(legend(run, recording))
        .with_shared_legend_position(FigureLegendPosition::RightTop)
        .with_figure_size(WIDTH, HEIGHT)
        .render();
    SvgBackend::new().render_scene(&scene)
}

fn draw(panel: &LevelPanel, row: usize, run: &ReportRun<'_>, recording: &Recording) -> (Vec<Plot>, Layout) {
    let lines = levels(run).map(|(index, name, colour)| {
        let points = series(recording, index, panel.quantity);
        let line = LinePlot::new().with_data(points).with_color(colour).with_legend(name);
        Plot::Line(line.with_stroke_width(if index == run.plan.depth() { 2.5 } else { 1.5 }))
    });
    let plots: Vec<Plot> = lines.collect();
    let mut layout = Layout::auto_from_plots(&plots)
        .with_title(panel.title)
        .with_y_label("units of capacity")
        .with_x_axis_min(0.0)
        .with_x_axis_max(run.plan.seconds as f64)
        .with_x_tick_step(run.plan.seconds as f64 / 12.0)
        .with_tick_format(TickFormat::Integer)
        .with_y_axis_min(0.0)
        .with_force_margins(LEFT, RIGHT);
    layout = match row + 1 == PANELS.len() {
        true => layout.with_x_label("time in seconds").with_force_margins_y(ABOVE, BELOW),
        false => layout.with_force_margins_y(ABOVE, BETWEEN),
    };
    let highest = recording.samples.iter().flat_map(|sample| &sample.levels).map(panel.quantity);
    let (top, step) = scale(highest.fold(recording.capacity, f64::max));
    layout = layout.with_y_axis_max(top).with_y_tick_step(step);
    (plots, behind(layout, row, run, recording))
}

/// A round height with room for names above the highest line, and the distance of its ticks.
fn scale(highest: f64) -> (f64, f64) {
    let step = if highest < 1000.0 { 100.0 } else { 1000.0 };
    ((highest * 1.12 / step).ceil() * step, step)
}

/// Puts the faults and the capacity behind the lines; the first panel names them.
fn behind(mut layout: Layout, row: usize, run: &ReportRun<'_>, recording: &Recording) -> Layout {
    let end = recording.seconds.len() as u64;
    let mut names = if row == 0 { names(run, recording) } else { Vec::new() }.into_iter().peekable();
    for (index, mark) in recording.faults.iter().enumerate() {
        let at = mark.at_seconds as f64;
        let (colour, dashes) = match mark.kind.as_str() {
            "spike" => (SPIKE, "2 3"),
            "elect" => (ELECTION, "6 3"),
            "lose" => (LOSS, "6 0"),
            _ => continue,
        };
        if mark.kind == "lose" {
            let until = restored(&recording.faults[index..], &mark.target).unwrap_or(end) as f64;
            let region = ShadedRegion::vertical(at, until).with_color(LOSS).with_opacity(0.16);
            layout = layout.with_shaded_region(region);
        }
        let mut line = ReferenceLine::vertical(at).with_color(colour).with_dasharray(dashes);
        if let Some((_, name)) = names.next_if(|(of, _)| *of == index) {
            line = line.with_label(name);
        }
        layout = layout.with_reference_line(line);
    }
    let limit = ReferenceLine::horizontal(recording.capacity).with_color(LIMIT).with_stroke_width(1.0);
    layout.with_reference_line(limit.with_dasharray("8 4"))
}

/// Positions and names of faults: those of one second together, and none where another one still stands.
fn names(run: &ReportRun<'_>, recording: &Recording) -> Vec<(usize, String)> {
    let (all, faults) = (recording.faults.len() <= NAMED, recording.faults.iter().enumerate());
    let mut names: Vec<(usize, String)> = Vec::new();
    for (index, mark) in faults.filter(|(_, mark)| mark.kind != "restore" && (all || is_wide(run, mark))) {
        let since = |of: usize| mark.at_seconds - recording.faults[of].at_seconds;
        match names.last_mut() {
            Some((of, name)) if since(*of) == 0 => name.push_str(&format!(", {}", mark.target)),
            Some((of, _)) if (since(*of) as f64) < NAME * recording.seconds.len() as f64 => {}
            _ => names.push((index, mark.target.clone())),
        }
    }
    names
}

/// Whether a master is lost or changed that has other servers below it.
fn is_wide(run: &ReportRun<'_>, mark: &Mark) -> bool {
    let jobs = &run.plan.jobs;
    let above = jobs.iter().filter_map(|job| job.parent);
    above.map(|parent| &jobs[parent].name).any(|name| *name == mark.target)
}

/// When `target` has a master again.
pub(super) fn restored(faults: &[Mark], target: &str) -> Option<u64> {
    let mut back = faults.iter().filter(|mark| mark.target == target);
    back.find(|mark| mark.kind == "restore" || mark.kind == "elect").map(|mark| mark.at_seconds)
}

/// Position, name and colour of every level, from the root down to the clients, so that those are drawn on top.
fn levels(run: &ReportRun<'_>) -> impl DoubleEndedIterator<Item = (usize, &'static str, &'static str)> {
    let names = run.plan.level_names();
    let colour = move |index: usize| COLOURS[(names.len() - 1 - index).min(COLOURS.len() - 1)];
    names.iter().enumerate().map(move |(index, name)| (index, *name, colour(index)))
}

fn legend(run: &ReportRun<'_>, recording: &Recording) -> Vec<LegendEntry> {
    let entry = |label: String, color: &str, shape, dashes: Option<&str>| LegendEntry {
        label,
        color: color.to_owned(),
        shape,
        dasharray: dashes.map(str::to_owned),
    };
    let lines = levels(run).rev();
    let mut entries: Vec<LegendEntry> =
        lines.map(|(_, name, colour)| entry(name.to_owned(), colour, LegendShape::Line, None)).collect();
    entries.push(entry(format!("limit {}", recording.capacity), LIMIT, LegendShape::Line, Some("8 4")));
    for (kind, label, colour, shape, dashes) in [
        ("lose", "without master", LOSS_ON_WHITE, LegendShape::Rect, None),
        ("elect", "other master", ELECTION, LegendShape::Line, Some("6 3")),
        ("spike", "spike of wants", SPIKE, LegendShape::Line, Some("2 3")),
    ] {
        if recording.faults.iter().any(|mark| mark.kind == kind) {
            entries.push(entry(label.to_owned(), colour, shape, dashes));
        }
    }
    entries
}

/// The points of one line, without those that lie between two of the same height.
fn series(recording: &Recording, level: usize, quantity: fn(&Level) -> f64) -> Vec<(f64, f64)> {
    let heights: Vec<(f64, f64)> = recording
        .samples
        .iter()
        .filter_map(|sample| Some((sample.at_seconds as f64, quantity(sample.levels.get(level)?))))
        .collect();
    let mut points: Vec<(f64, f64)> = Vec::new();
    for (index, point) in heights.iter().enumerate() {
        let same = |other: Option<&(f64, f64)>| other.is_some_and(|other| (other.1 - point.1).abs() < 0.01);
        let before = index.checked_sub(1).and_then(|before| heights.get(before));
        if !(same(before) && same(heights.get(index + 1))) {
            points.push(*point);
        }
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Recorder;
    use crate::scenario::{Mode, run as run_mode};
    use crate::workload::{Scenario, Workload};

    #[test]
    fn the_picture_says_what_it_shows() {
        let workload = Workload::draw(Scenario::Six, 4);
        let recording = run_mode(&workload, Mode::Doorman).unwrap();
        let run = ReportRun { scenario: Scenario::Six, plan: &workload.plan, seed: 4, mode: Mode::Doorman };
        let svg = svg(&run, &recording);
        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>"), "{} bytes", svg.len());
        for words in
            ["Scenario six, seed 4, mode doorman", "time in seconds", "clients", "region", "spike of wants"]
        {
            assert!(svg.contains(words), "no {words:?}");
        }
        assert!(!svg.contains("without master"), "nothing was lost");
    }

    #[test]
    fn names_do_not_stand_on_each_other() {
        let plan = Scenario::Seven.plan();
        let run = ReportRun { scenario: Scenario::Seven, plan: &plan, seed: 4, mode: Mode::Doorman };
        let mut recorder = Recorder::new(1.0, 1, 300);
        for (at, kind, target) in [
            (10, "lose", "root"),
            (10, "spike", "client:1:1:1"),
            (12, "restore", "root"),
            (15, "elect", "dc:1:1"),
            (60, "lose", "region:1"),
        ] {
            recorder.fault(at, kind, target);
        }
        let found = names(&run, &recorder.finish(None));
        assert_eq!(found, [(0, "root, client:1:1:1".to_owned()), (4, "region:1".to_owned())]);
    }

    #[test]
    fn a_flat_line_has_two_points() {
        let mut recorder = Recorder::new(1.0, 1, 10);
        for second in 0..=10 {
            recorder.sample(
                second,
                vec![Level { wants: if second < 5 { 1.0 } else { 2.0 }, ..Level::default() }],
            );
        }
        let recording = recorder.finish(None);
        assert_eq!(series(&recording, 0, |level| level.has), [(0.0, 0.0), (10.0, 0.0)]);
        assert_eq!(series(&recording, 0, |level| level.wants).len(), 4);
    }
}
