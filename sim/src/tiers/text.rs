//! A run as a picture of characters.
//!
//! Two rows for each tier, the highest on top: how full its window is, and what it does; then what was granted and what was
//! refused, and the time.

use std::ops::Range;
use std::time::Duration;

use super::figures::title;
use super::history::{COLUMNS, Column, Doing, History, Lane, cell};
use super::{notation, seconds};

/// The look of a picture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TextStyle {
    /// Characters of a line, at least 60.
    pub width: usize,
    /// Whether it has colours.
    pub has_colours: bool,
}

/// A tone of a terminal.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tone {
    Plain,
    Blue,
    Faint,
    Orange,
    Red,
}

/// Names of rows.
const LEFT: usize = 9;
/// The width of the meaning of a row.
const RIGHT: usize = 18;
const LEAST: usize = 60;
const HEIGHTS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const CURRENT: char = '█';
const SHADOWED: char = '▒';
const COOLING: char = '░';
const ENTERED: char = '↑';
const KEY: &str = "upper row of a tier: how full its window is; lower row: █ current, ▒ active below a higher one,\n\
                   ░ cools down, ↑ entered by a burst\n";

/// The run as lines of characters.
#[must_use]
pub fn text(history: &History, look: TextStyle) -> String {
    let width = look.width.max(LEAST) - LEFT - RIGHT;
    let graph = Graph { history, width, look };
    let mut lines =
        vec![format!("{}, {} s, one column is {}", title(history), seconds(history.end), graph.unit())];
    let policies = history.contract.policies();
    for (policy, of) in policies.iter().enumerate() {
        if policies.len() > 1 {
            lines.push(format!("policy {}: {}", policy + 1, notation::shown(of)));
        }
        for lane in history.lanes.iter().rev().filter(|lane| lane.policy == policy) {
            lines.extend(graph.tier(lane));
        }
    }
    lines.extend(graph.requests());
    lines.extend(graph.axis());
    lines.iter().map(|line| format!("{}\n", line.trim_end())).chain([KEY.to_owned()]).collect()
}

struct Graph<'a> {
    history: &'a History,
    /// Of what is between the names and the meanings.
    width: usize,
    look: TextStyle,
}

// === impl Graph ===

impl Graph<'_> {
    /// The columns of a history that a character stands for.
    fn range(&self, at: usize) -> Range<usize> {
        let begin = at * COLUMNS / self.width;
        begin..((at + 1) * COLUMNS / self.width).max(begin + 1)
    }

    /// The time that a character stands for.
    fn unit(&self) -> String {
        format!("{} s", seconds(self.history.end / self.width as u64))
    }

    fn row(&self, name: &str, cells: &[(char, Tone)], meaning: &str) -> String {
        let mut row = format!("{name:LEFT$}");
        let mut tone = Tone::Plain;
        for &(cell, next) in cells {
            if self.look.has_colours && next != tone && cell != ' ' {
                row.push_str(next.code());
                tone = next;
            }
            row.push(cell);
        }
        if tone != Tone::Plain {
            row.push_str(Tone::Plain.code());
        }
        format!("{row} {meaning}")
    }

    fn tier(&self, lane: &Lane) -> [String; 2] {
        let tier = &lane.tier;
        let fullest = |column: &Column| u64::from(column.fullest);
        let full: Vec<_> = (0..self.width)
            .map(|at| {
                let most = lane.columns[self.range(at)].iter().map(fullest).max().unwrap_or(0);
                (height(most, u64::from(tier.limit)), Tone::Blue)
            })
            .collect();
        let rests = if tier.cooldown.is_zero() {
            format!("active {}", notation::short(tier.active))
        } else {
            format!("{}, rests {}", notation::short(tier.active), notation::short(tier.cooldown))
        };
        let allows = format!("{} in {}", tier.limit, notation::short(tier.window));
        [self.row(&format!("tier {}", lane.number), &full, &allows), self.row("", &self.does(lane), &rests)]
    }

    /// The state that a tier mostly has in the time of each character.
    fn does(&self, lane: &Lane) -> Vec<(char, Tone)> {
        let shown = |doing: Option<Doing>| match doing {
            None => (' ', Tone::Plain),
            Some(Doing::Current) => (CURRENT, Tone::Blue),
            Some(Doing::Shadowed) => (SHADOWED, Tone::Faint),
            Some(Doing::Cooling) => (COOLING, Tone::Orange),
        };
        let mut cells: Vec<_> = lane.mostly(self.history.end, self.width).into_iter().map(shown).collect();
        // Into the first there is no burst.
        for entered in lane.entered.iter().filter(|_| lane.number > 1) {
            cells[cell(entered.at, self.history.end, self.width)] = (ENTERED, Tone::Blue);
        }
        cells
    }

    fn requests(&self) -> [String; 2] {
        let (mut granted, mut refused) = (vec![0_u64; self.width], vec![0_u64; self.width]);
        for request in &self.history.requests {
            let at = cell(request.arrival.at, self.history.end, self.width);
            granted[at] += u64::from(request.decision.granted);
            refused[at] += u64::from(request.arrival.copies - request.decision.granted);
        }
        let row = |name: &str, counts: &[u64], tone| {
            let most = counts.iter().copied().max().unwrap_or(0);
            let cells: Vec<_> = counts.iter().map(|&count| (height(count, most), tone)).collect();
            self.row(name, &cells, &format!("most {most} in one"))
        };
        [row("granted", &granted, Tone::Blue), row("refused", &refused, Tone::Red)]
    }

    /// The marks of the time, and what they say.
    fn axis(&self) -> [String; 2] {
        let step = step(self.history.end / (self.width as u64 / 10).max(1));
        let (mut marks, mut said) = (vec!['─'; self.width], vec![' '; self.width]);
        let mut time = 0;
        while time < self.history.end {
            let at = cell(time, self.history.end, self.width);
            let words = notation::short(Duration::from_nanos(time));
            marks[at] = '┬';
            if at + words.len() <= self.width {
                said.iter_mut().skip(at).zip(words.chars()).for_each(|(cell, word)| *cell = word);
            }
            time += step;
        }
        [marks, said].map(|cells| format!("{:LEFT$}{}", "", cells.into_iter().collect::<String>()))
    }
}

/// A bar of a part of a whole; whatever is more than nothing can be seen.
fn height(part: u64, whole: u64) -> char {
    let eighths = (8 * part.min(whole)).checked_div(whole).unwrap_or(0);
    let least = u64::from(part > 0);
    HEIGHTS[usize::try_from(eighths.max(least)).unwrap_or(8)]
}

/// The least time of at least that many nanoseconds that reads well on an axis.
pub(super) fn step(least: u64) -> u64 {
    const MINUTE: u64 = 60;
    const HOUR: u64 = 60 * MINUTE;
    let minutes = [1, 2, 5, 10, 15, 30].map(|minutes| minutes * MINUTE);
    let hours = [1, 2, 4, 6, 12, 24, 48, 168].map(|hours| hours * HOUR);
    let decades = [1_000_000, 10_000_000, 100_000_000].into_iter();
    let below = decades.flat_map(|unit| [unit, 2 * unit, 5 * unit]);
    let seconds = [1, 2, 5, 10, 20, 30].into_iter().chain(minutes).chain(hours);
    let mut all = below.chain(seconds.map(|seconds| seconds * super::SECOND));
    all.find(|step| *step >= least).unwrap_or(least)
}

// === impl Tone ===

impl Tone {
    fn code(self) -> &'static str {
        match self {
            Tone::Plain => "\x1b[0m",
            Tone::Blue => "\x1b[34m",
            Tone::Faint => "\x1b[90m",
            Tone::Orange => "\x1b[33m",
            Tone::Red => "\x1b[31m",
        }
    }
}

#[cfg(test)]
mod tests {
    use lessor_algorithms::tiers::Contract;

    use super::super::{Pattern, SECOND, Tiers, arrivals, run};
    use super::*;

    fn picture(policy: &str, pattern: &str, seconds: u64, look: TextStyle) -> String {
        let policy = policy.parse::<Tiers>().unwrap().policy(None, None).unwrap();
        let pattern: Pattern = pattern.parse().unwrap();
        let asked = arrivals(&[pattern], 1, 1, seconds * SECOND, 1).unwrap();
        text(&run(&Contract::from(policy), &asked, &[], seconds * SECOND), look)
    }

    /// The post's "Penalties", and somebody who asks for ten a second.
    #[test]
    fn the_picture_shows_bursts_cooldowns_and_shadows() {
        let look = TextStyle { width: 60, has_colours: false };
        let found = picture("4/1s:8s, 30/4s:4s:15s", "10/s", 33, look);
        let wanted = "\
4/1s:8s, 30/4s:4s:15s, 33 s, one column is 1 s
tier 2   ▁▄▆██▆▃▁           ▁▄▆██▆▃▁       30 in 4s
         ↑███░░░░░░░░░░░░░░░↑███░░░░░░░░░░ 4s, rests 15s
tier 1   ██  ████████████████▂  ██████████ 4 in 1s
         ▒▒▒▒███████████████▒▒▒▒██████████ active 8s
granted  ███▃▃▃▃▂▂▂▂▃▃▃▃▃▃▃▂▅██▃▃▃▃▂▂▂▂▃▃▃ most 10 in one
refused     ▆▆▆▆████▆▆▆▆▆▆▆█▃  ▆▆▆▆████▆▆▆ most 7 in one
";
        assert!(found.starts_with(wanted), "{found}");
    }

    #[test]
    fn colours_only_where_they_are_wanted_and_lines_as_wide_as_said() {
        let plain = picture("5/1s", "9/s", 30, TextStyle { width: 90, has_colours: false });
        assert!(!plain.contains('\x1b'));
        assert!(plain.lines().skip(1).take(6).all(|line| line.chars().count() <= 90), "{plain}");
        let coloured = picture("5/1s", "9/s", 30, TextStyle { width: 90, has_colours: true });
        assert!(coloured.contains("\x1b[34m") && coloured.contains("\x1b[31m"));
        let codes = ["\x1b[0m", "\x1b[34m", "\x1b[31m", "\x1b[33m", "\x1b[90m"];
        assert_eq!(codes.iter().fold(coloured, |text, code| text.replace(code, "")), plain);
    }

    #[test]
    fn steps_read_well() {
        assert_eq!(step(3 * SECOND), 5 * SECOND);
        assert_eq!(step(61 * SECOND), 120 * SECOND);
        assert_eq!(step(SECOND / 3), SECOND / 2);
        assert_eq!(step(40_000 * SECOND), 43_200 * SECOND);
    }
}
