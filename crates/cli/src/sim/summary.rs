//! Runs as a table for people: a row each, and the medians below them.

use comfy_table::{CellAlignment, Table, presets};
use lessor_sim::measure::median;
use lessor_sim::report::ReportLine;

/// A column: what it is called, what stands in it, how it is written.
struct Column {
    head: &'static str,
    figure: fn(&ReportLine) -> Option<f64>,
    text: fn(f64) -> String,
}

const COLUMNS: [Column; 11] = [
    Column { head: "used", figure: |line| line.b_mean_conv, text: percent },
    Column { head: "with start", figure: |line| line.b_mean_whole, text: percent },
    Column { head: "5th pct.", figure: |line| line.b_p5_conv, text: percent },
    Column { head: "misplaced", figure: |line| line.allocation_error_conv, text: percent },
    Column { head: "< 95 %", figure: |line| Some(line.below95_total_s? as f64), text: seconds },
    Column { head: "longest", figure: |line| Some(line.below95_longest_s? as f64), text: seconds },
    Column { head: "too much", figure: |line| Some(line.overshoot_s), text: seconds },
    Column { head: "by", figure: |line| Some(line.overshoot_max), text: short },
    Column { head: "good at", figure: |line| Some(line.conv_at_s? as f64), text: seconds },
    Column {
        head: "calls",
        figure: |line| Some(line.calls_per_client_minute),
        text: |number| format!("{number:.1}"),
    },
    Column { head: "took", figure: |line| Some(line.wall_s), text: |number| format!("{number:.2} s") },
];

/// The legend of the columns.
const KEY: &str = "\
used: mean of what clients believe they hold over what they could, once it was 95 %; with start: from second 0;
misplaced: the part of it that lies with the wrong client or nowhere; < 95 %, longest: seconds below, longest stretch;
too much, by: how long clients believed more than there is, and the most; calls: a client and minute, on all hops
";

/// All runs, which are of one scenario and mode.
pub(super) fn text(lines: &[ReportLine]) -> String {
    let Some(first) = lines.first() else { return String::new() };
    let mut table = Table::new();
    table.load_style(presets::UTF8_BORDERS_ONLY);
    table.set_header(["seed"].into_iter().chain(COLUMNS.iter().map(|column| column.head)));
    for index in 0..=COLUMNS.len() {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    for line in lines {
        table.add_row(row(&line.seed.to_string(), |column| (column.figure)(line)));
    }
    if lines.len() > 1 {
        table.add_row(row("median", |column| {
            median(&lines.iter().filter_map(|line| (column.figure)(line)).collect::<Vec<f64>>())
        }));
    }
    format!("scenario {}, mode {}, capacity {}\n{table}\n{KEY}", first.scenario, first.mode, first.capacity)
}

fn row(seed: &str, figure: impl Fn(&Column) -> Option<f64>) -> Vec<String> {
    let figures = COLUMNS.iter().map(|column| figure(column).map_or("-".to_owned(), column.text));
    [seed.to_owned()].into_iter().chain(figures).collect()
}

fn percent(share: f64) -> String {
    format!("{:.2} %", 100.0 * share)
}

fn seconds(number: f64) -> String {
    format!("{} s", short(number))
}

fn short(number: f64) -> String {
    let text = format!("{number:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_read_short() {
        assert_eq!(percent(0.990_512), "99.05 %");
        assert_eq!(
            (seconds(20.0).as_str(), seconds(0.5).as_str(), short(0.0).as_str()),
            ("20 s", "0.5 s", "0")
        );
    }
}
