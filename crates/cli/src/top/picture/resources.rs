//! The picture of all resources, a row each.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::super::board::Board;
use super::super::figure::{figure, percent, some, spark};
use super::super::order::RowOrder as _;
use super::Appearance;
use super::columns::{BAR, List, TableColumn, TableRow, bar, caption};
use crate::status::lines::{fullness, notes};
use crate::status::node::{NodePage, Resource};

/// The part of the capacity from which on it is full, as it is rounded.
const FULL: f64 = 0.995;
/// Cells of a trend.
const TREND: u16 = 16;
const COLUMNS: [TableColumn; 9] = [
    TableColumn::left("resource", 0),
    TableColumn::left("full", 16),
    TableColumn::right("out", 7),
    TableColumn::right("of", 8),
    TableColumn::right("wanted", 7),
    TableColumn::right("short", 7),
    TableColumn::right("clients", 8),
    TableColumn::left("trend", TREND),
    TableColumn::left("", 16),
];

/// All of it: the list, and more about the row that is chosen.
pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, board: &Board, look: Appearance) {
    if board.heard.is_none() {
        return;
    }
    let [list, about] = Layout::vertical([Constraint::Min(2), Constraint::Length(1)]).areas(area);
    draw_rows(frame, list, board, look, true);
    let rows = board.resources.rows(board.all_resources());
    if let Some(row) = board.resources.chosen(&rows).map(|at| rows[at]) {
        frame.render_widget(Paragraph::new(about_row(row)).dim(), about);
    }
}

/// The list, with nothing chosen.
pub(super) fn draw_list(frame: &mut Frame<'_>, area: Rect, board: &Board, look: Appearance) {
    draw_rows(frame, area, board, look, false);
}

fn draw_rows(frame: &mut Frame<'_>, area: Rect, board: &Board, look: Appearance, has_choice: bool) {
    let [above, list] = Layout::vertical([Constraint::Length(1), Constraint::Min(1)]).areas(area);
    let rows = board.resources.rows(board.all_resources());
    frame.render_widget(Paragraph::new(caption(&counts(board, &rows), look)), above);
    if rows.is_empty() {
        let why = match board.all_resources().is_empty() {
            true => "nobody holds or wants anything of that",
            false => "no resource has such a name",
        };
        frame.render_widget(Paragraph::new(why).dim(), list);
        return;
    }
    let chosen = board.resources.chosen(&rows).filter(|_| has_choice);
    let rows = rows.into_iter().map(|row| table_row(row, board, look)).collect();
    let sorted = (board.resources.order.label(), board.resources.is_reversed);
    List { columns: &COLUMNS, rows, sorted, chosen }.draw(frame, list);
}

/// Counts of the rows in sight.
fn counts(board: &Board, rows: &[&Resource]) -> Vec<String> {
    let count = |is: fn(&Resource) -> bool| rows.iter().filter(|row| is(row)).count();
    let clients: usize = rows.iter().map(|row| row.clients).sum();
    let (shown, there) =
        (board.all_resources().len(), board.node.as_ref().map_or(0, NodePage::resources_in_all));
    let which = match there > shown && board.pattern().is_none() {
        true => format!("the busiest {shown} of {there} resources"),
        false => format!("{shown} resource{}", if shown == 1 { "" } else { "s" }),
    };
    let filter = match board.resources.filter.as_str() {
        "" => String::new(),
        filter => format!("{} with {filter:?}", rows.len()),
    };
    vec![
        which,
        filter,
        format!("{} full", count(|row| fullness(row) >= FULL)),
        format!("{} short", count(|row| row.short > 0.0)),
        format!("{clients} client{}", if clients == 1 { "" } else { "s" }),
        board.pattern().map(|pattern| format!("of {pattern}")).unwrap_or_default(),
    ]
}

fn table_row(row: &Resource, board: &Board, look: Appearance) -> TableRow {
    let (full, unit) = (fullness(row), if row.kind == "gauge" { "" } else { "/s" });
    let colour = colour_of(row, look);
    let mut level = bar(full, 1.0 - full.min(1.0), colour, BAR);
    level.push(Span::raw(format!("{:>6}", percent(full))));
    let cells = vec![
        Line::raw(row.resource.clone()),
        Line::from(level),
        Line::raw(figure(row.outstanding)),
        Line::raw(format!("{}{unit}", figure(row.capacity))),
        Line::raw(figure(row.wants)),
        Line::styled(some(row.short), if row.short > 0.0 { colour } else { Style::new() }),
        Line::raw(row.clients.to_string()),
        Line::styled(spark(board.trend(&row.resource), TREND.into()), colour),
        Line::raw(notes(row)),
    ];
    let style = if row.overcommitment > 0.0 { look.colour(Color::Red).bold() } else { Style::new() };
    TableRow { cells, style }
}

/// The colour of a resource: of one of which too much is out, of one that is not enough for all, and of any other.
pub(super) fn colour_of(row: &Resource, look: Appearance) -> Style {
    let is_scarce = row.short > 0.0 || (row.wants > row.capacity && fullness(row) >= FULL);
    match (row.overcommitment > 0.0, is_scarce) {
        (true, _) => look.colour(Color::Red),
        (_, true) => look.colour(Color::Yellow),
        _ => look.colour(Color::Green),
    }
}

/// The row in words, with all that is out of the ordinary.
fn about_row(row: &Resource) -> String {
    let template = row.template.as_deref().unwrap_or("none any more");
    let notes = notes(row);
    let between = if notes.is_empty() { "" } else { ": " };
    format!("{} ({}, {}, template {template}){between}{notes}", row.resource, row.kind, row.algorithm)
}
