//! Several systems on the same workload in one picture: what all clients believe they may use, and in red what of that is
//! more than there is.

use std::fmt::Write as _;

use super::ReportRun;
use super::plot::restored;
use crate::measure::Recording;
use crate::scenario::Mode;
use crate::svg::{Area, Pixels, Svg, TextPlace, at, bold, ink};

const BELIEVED: &str = "#0072B2";
const BELIEVED_ON_WHITE: &str = "#CFE5F3";
const TOO_MUCH: &str = "#CC0000";
const LOSS: &str = "#F3D9B8";
const INK: &str = "#222222";
const GREY: &str = "#666666";
const WIDTH: f64 = 1400.0;
/// Where the time begins and ends.
const LEFT: f64 = 80.0;
const END: f64 = 1350.0;
/// The upper edge of the first panel.
const TOP: f64 = 150.0;
const PANEL: f64 = 220.0;
/// Below it, what is too much, on a scale of its own.
const STRIP: f64 = 70.0;
const GAP: f64 = 12.0;
/// From the lower edge of a strip to the upper one of the next panel.
const BETWEEN: f64 = 62.0;
/// The least width of what is too much, so that a second of an hour is seen.
const LEAST: f64 = 1.6;
const BELOW: f64 = 52.0;
/// The marks on the axis of time, at most.
const MARKS: u64 = 12;

/// A system, and where it is drawn.
#[derive(Clone, Copy)]
struct SystemPanel<'a> {
    run: &'a ReportRun<'a>,
    recording: &'a Recording,
    top: f64,
    /// The greatest amount on the scale, which all panels share.
    most: f64,
    /// The greatest amount that is too much, on the scale of the strips.
    most_too_much: f64,
}

/// The runs, all of the same workload, as an SVG image.
#[must_use]
pub fn beside(runs: &[(ReportRun<'_>, Recording)]) -> String {
    let greatest =
        |of: fn(&Recording) -> f64| runs.iter().map(|(_, recording)| of(recording)).fold(1.0, f64::max);
    let most = greatest(|recording| recording.believed_max.max(recording.capacity));
    let most = (most * 1.08 / 100.0).ceil() * 100.0;
    let most_too_much = greatest(|recording| recording.believed_max - recording.capacity);
    let mut svg = Svg::default();
    if let Some((run, recording)) = runs.first() {
        head(&mut svg, run, recording);
    }
    let mut bottom = TOP;
    for ((run, recording), row) in runs.iter().zip(0_u32..) {
        let top = TOP + f64::from(row) * (PANEL + GAP + STRIP + BETWEEN);
        let panel = SystemPanel { run, recording, top, most, most_too_much };
        panel.draw(&mut svg);
        bottom = top + PANEL + GAP + STRIP;
    }
    if let Some((_, recording)) = runs.last() {
        time(&mut svg, recording, bottom);
    }
    svg.finish(WIDTH, bottom + BELOW, "")
}

/// The system of a mode in words.
fn system(mode: Mode) -> &'static str {
    match mode {
        Mode::Stream => "Lessor, over streams",
        Mode::Poll => "Lessor, polling",
        Mode::Doorman => "Doorman's simulated system",
    }
}

/// The part of a recording that is too much, in words.
fn too_much(recording: &Recording) -> String {
    let Recording { capacity, overshoot_seconds, overshoot_amount, believed_max, seconds, .. } = recording;
    if recording.overshoot_events == 0 {
        return format!("never above {capacity}");
    }
    format!(
        "above {capacity} for {overshoot_seconds:.1} of {} s, {overshoot_amount:.0} unit-seconds in all, {believed_max:.0} at most",
        seconds.len()
    )
}

fn head(svg: &mut Svg, run: &ReportRun<'_>, recording: &Recording) {
    let ReportRun { scenario, seed, .. } = run;
    let title = format!("Scenario {scenario}, seed {seed}: what all clients believe they may use");
    svg.words(at(16.0, 36.0, 24.0), &title, &bold(INK));
    let clients = recording.clients;
    let words = format!(
        "{clients} clients share {} units; every system has the same wants and the same faults",
        recording.capacity
    );
    svg.words(at(16.0, 62.0, 15.0), &words, &ink(GREY));
    let mut x = 16.0;
    let mut entry = |style: &str, words: &str| {
        svg.rect(Area { x, y: 79.0, width: 22.0, height: 14.0 }, style, "");
        svg.words(at(x + 30.0, 91.0, 14.0), words, &ink(INK));
        x += 62.0 + 7.6 * words.len() as f64;
    };
    let believed = format!("fill=\"{BELIEVED_ON_WHITE}\" stroke=\"{BELIEVED}\"");
    entry(&believed, "believed, the most in each second");
    entry(&ink(TOO_MUCH), "more than there is");
    if recording.faults.iter().any(|mark| mark.kind == "lose") {
        entry(&ink(LOSS), "a server without leader");
    }
}

/// The axis of time, below the last panel.
fn time(svg: &mut Svg, recording: &Recording, bottom: f64) {
    let seconds = recording.seconds.len() as u64;
    let (unit, word) = if seconds > 600 { (60, "min") } else { (1, "s") };
    let steps = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1_200, 3_600].map(|step| step * unit);
    let step = steps.into_iter().find(|step| seconds / step <= MARKS).unwrap_or(seconds.max(1));
    for second in (0..=seconds).step_by(usize::try_from(step).unwrap_or(usize::MAX)) {
        let x = LEFT + (END - LEFT) * second as f64 / seconds.max(1) as f64;
        svg.line((x, bottom), (x, bottom + 6.0), &format!("stroke=\"{INK}\""));
        let place = TextPlace { x, y: bottom + 23.0, size: 14.0, anchor: "middle" };
        svg.words(place, &format!("{} {word}", second / unit), &ink(INK));
    }
}

// === impl SystemPanel ===

impl SystemPanel<'_> {
    fn draw(&self, svg: &mut Svg) {
        let SystemPanel { run, recording, top, .. } = *self;
        svg.words(at(LEFT, top - 12.0, 18.0), system(run.mode), &bold(INK));
        let colour = if recording.overshoot_events == 0 { INK } else { TOO_MUCH };
        let place = TextPlace { x: END, y: top - 12.0, size: 16.0, anchor: "end" };
        svg.words(place, &too_much(recording), &bold(colour));
        self.scale(svg);
        self.believed(svg);
        self.losses(svg);
        self.too_much(svg);
        let y = self.y(recording.capacity);
        svg.line((LEFT, y), (END, y), &format!("stroke=\"{INK}\" stroke-dasharray=\"8 4\""));
        let area = Area { x: LEFT, y: top, width: END - LEFT, height: PANEL };
        svg.rect(area, &format!("fill=\"none\" stroke=\"{GREY}\""), "");
    }

    /// The times in which a server had no leader.
    fn losses(&self, svg: &mut Svg) {
        let (faults, end) = (&self.recording.faults, self.recording.seconds.len() as u64);
        for (index, mark) in faults.iter().enumerate().filter(|(_, mark)| mark.kind == "lose") {
            let until = restored(&faults[index..], &mark.target).unwrap_or(end);
            let (x, right) = (self.x(mark.at_seconds), self.x(until));
            let area = Area { x, y: self.top, width: right - x, height: PANEL };
            svg.rect(
                area,
                &format!("{} fill-opacity=\"0.6\"", ink(LOSS)),
                &format!("{} has no leader", mark.target),
            );
        }
    }

    fn scale(&self, svg: &mut Svg) {
        let step = if self.most > 800.0 { 200 } else { 100 };
        for amount in (0..=self.most as u64).step_by(step) {
            let y = self.y(amount as f64);
            svg.line((LEFT, y), (END, y), "stroke=\"#D5D8DC\"");
            let place = TextPlace { x: LEFT - 8.0, y: y + 5.0, size: 14.0, anchor: "end" };
            svg.words(place, &amount.to_string(), &ink(INK));
        }
    }

    /// Draws the beliefs, as far as there is so much.
    fn believed(&self, svg: &mut Svg) {
        let capacity = self.recording.capacity;
        let within: Vec<f64> =
            self.recording.seconds.iter().map(|second| second.believed_max.min(capacity)).collect();
        svg.path(&self.steps(&within, 0.0), &format!("fill=\"{BELIEVED_ON_WHITE}\" stroke=\"{BELIEVED}\""));
    }

    /// Draws what is too much: above the capacity, and in the strip by itself.
    fn too_much(&self, svg: &mut Svg) {
        let capacity = self.recording.capacity;
        let (top, bottom) = (self.top + PANEL + GAP, self.top + PANEL + GAP + STRIP);
        for (second, at) in self.recording.seconds.iter().zip(0_u64..) {
            let amount = second.believed_max - capacity;
            if self.recording.overshoot_events == 0 || amount < 0.01 {
                continue;
            }
            let (x, width) = (self.x(at), (self.x(at + 1) - self.x(at)).max(LEAST));
            let y = self.y(capacity + amount);
            svg.rect(Area { x, y, width, height: self.y(capacity) - y }, &ink(TOO_MUCH), "");
            let height = STRIP * amount / self.most_too_much;
            let said = format!("{amount:.1} too much in second {at}");
            svg.rect(Area { x, y: bottom - height, width, height }, &ink(TOO_MUCH), &said);
        }
        let area = Area { x: LEFT, y: top, width: END - LEFT, height: STRIP };
        svg.rect(area, &format!("fill=\"none\" stroke=\"{GREY}\""), "");
        for (words, y) in [(format!("{:.0}", self.most_too_much), top + 12.0), ("0".to_owned(), bottom)] {
            let place = TextPlace { x: LEFT - 8.0, y, size: 14.0, anchor: "end" };
            svg.words(place, &words, &ink(TOO_MUCH));
        }
        svg.words(at(LEFT + 6.0, top + 16.0, 13.0), "too much", &ink(TOO_MUCH));
    }

    /// The outline of an amount for each second, above `base`.
    fn steps(&self, amounts: &[f64], base: f64) -> String {
        let mut path = format!("M{},{}", Pixels(LEFT), Pixels(self.y(base)));
        let mut last = base;
        for (amount, second) in amounts.iter().zip(0_u64..) {
            if (amount - last).abs() > 0.01 {
                let (x, before, after) = (self.x(second), self.y(last), self.y(*amount));
                let [x, before, after] = [x, before, after].map(Pixels);
                write!(path, " L{x},{before} L{x},{after}").expect("a string takes everything");
                last = *amount;
            }
        }
        let [end, last, base] = [END, self.y(last), self.y(base)].map(Pixels);
        path + &format!(" L{end},{last} L{end},{base} Z")
    }

    fn x(&self, second: u64) -> f64 {
        LEFT + (END - LEFT) * second as f64 / self.recording.seconds.len().max(1) as f64
    }

    fn y(&self, amount: f64) -> f64 {
        self.top + PANEL * (1.0 - amount / self.most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Recorder;
    use crate::workload::Scenario;

    /// A run of ten seconds under a capacity of 100, of which two more are believed in two of them.
    fn recording(too_much: bool) -> Recording {
        let mut recorder = Recorder::new(100.0, 1, 10);
        recorder.fault(1, "lose", "root");
        recorder.fault(5, "restore", "root");
        for (time, believes) in [(0.0, 90.0), (2.5, if too_much { 102.0 } else { 100.0 }), (4.5, 80.0)] {
            recorder.event(time, &[200.0], &[believes], &[100.0]);
        }
        recorder.finish(None)
    }

    #[test]
    fn what_is_too_much_is_red_and_summed_up() {
        let plan = Scenario::Seven.plan();
        let run = |mode| ReportRun { scenario: Scenario::Seven, plan: &plan, seed: 3, mode };
        let ours = (run(Mode::Stream), recording(false));
        let picture = beside(&[ours.clone(), (run(Mode::Doorman), recording(true))]);
        for words in [
            ">Scenario seven, seed 3: what all clients believe they may use<",
            ">Lessor, over streams<",
            ">never above 100<",
            ">Doorman's simulated system<",
            ">above 100 for 2.0 of 10 s, 4 unit-seconds in all, 102 at most<",
            "<title>root has no leader</title>",
        ] {
            assert!(picture.contains(words), "no {words:?} in {picture}");
        }
        // Of the three seconds that it touches.
        let red = |picture: &str| picture.matches("<title>2.0 too much in second").count();
        assert_eq!((red(&picture), red(&beside(&[ours]))), (3, 0));
    }
}
