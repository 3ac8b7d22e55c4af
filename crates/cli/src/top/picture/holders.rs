//! The picture of one resource: how full it is, and who has it, wants it and misses it, a row each.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::super::board::CloseLook;
use super::super::figure::{figure, percent, some};
use super::super::order::RowOrder as _;
use super::Appearance;
use super::columns::{BAR, List, TableColumn, TableRow, bar, caption};
use super::resources::colour_of;
use crate::status::lines::fullness;
use crate::status::node::{Holder, Resource};

const COLUMNS: [TableColumn; 11] = [
    TableColumn::left("client", 0),
    TableColumn::left("has ░ wants", BAR as u16 + 2),
    TableColumn::right("has", 7),
    TableColumn::right("wants", 7),
    TableColumn::right("share", 7),
    TableColumn::right("short", 7),
    TableColumn::left("state", 10),
    TableColumn::right("priority", 8),
    TableColumn::right("ends in", 8),
    TableColumn::right("heard", 10),
    TableColumn::left("stands for", 12),
];

/// The wants that are shown in full, in multiples of the most that anybody has or is due.
const WIDEST: f64 = 3.0;

/// All of it.
pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, close: &CloseLook, look: Appearance) {
    let Some(row) = close.row() else {
        let name = Line::raw(close.resource.clone()).bold();
        let why = if close.is_known { "nobody holds or wants it" } else { "asks who has it …" };
        frame.render_widget(Paragraph::new(vec![name, Line::raw(why).dim()]), area);
        return;
    };
    let [about, level, above, list] = Layout::vertical([
        Constraint::Length(2),
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Min(2),
    ])
    .areas(area);
    let text = row.about();
    let (name, figures) = text.split_once('\n').unwrap_or((&text, ""));
    let lines = vec![Line::raw(name.to_owned()).bold(), Line::raw(figures.trim().to_owned())];
    frame.render_widget(Paragraph::new(lines), about);
    frame.render_widget(Paragraph::new(whole(row, level.width, look)), level);
    let rows = close.holders.rows(&row.holders);
    frame.render_widget(Paragraph::new(caption(&counts(close, row, &rows), look)), above);
    let most = widest(&rows);
    let chosen = close.holders.chosen(&rows);
    let rows = rows.into_iter().map(|holder| table_row(holder, most, look)).collect();
    let sorted = (close.holders.order.label(), close.holders.is_reversed);
    List { columns: &COLUMNS, rows, sorted, chosen }.draw(frame, list);
}

/// The amount that a whole bar stands for. One that wants everything does not press all others into the corner.
fn widest(rows: &[&Holder]) -> f64 {
    let due = rows.iter().map(|holder| holder.has.max(holder.share)).fold(0.0, f64::max);
    rows.iter().map(|holder| holder.wants.min(WIDEST * due)).fold(due, f64::max)
}

/// The whole capacity in one bar.
fn whole(row: &Resource, width: u16, look: Appearance) -> Line<'static> {
    let full = fullness(row);
    let mut spans =
        bar(full, 1.0 - full.min(1.0), colour_of(row, look), usize::from(width).saturating_sub(7));
    spans.push(Span::raw(format!("{:>6}", percent(full))));
    Line::from(spans)
}

fn counts(close: &CloseLook, row: &Resource, rows: &[&Holder]) -> Vec<String> {
    let known = row.holders.len();
    let which = match row.clients > known {
        true => format!("the {known} of {} holders that have the most", row.clients),
        false => format!("{known} holder{}", if known == 1 { "" } else { "s" }),
    };
    let filter = match close.holders.filter.as_str() {
        "" => String::new(),
        filter => format!("{} with {filter:?}", rows.len()),
    };
    let short = rows.iter().filter(|holder| holder.short() > 0.0);
    let missing: f64 = short.clone().map(|holder| holder.short()).sum();
    let short = match short.count() {
        0 => "nobody is short".to_owned(),
        count => format!("{count} short by {} together", figure(missing)),
    };
    vec![which, filter, short]
}

fn table_row(holder: &Holder, most: f64, look: Appearance) -> TableRow {
    let short = holder.short();
    let colour = look.colour(if short > 0.0 || holder.unmet() > 0.0 { Color::Yellow } else { Color::Green });
    let part = |amount: f64| if most > 0.0 { amount / most } else { 0.0 };
    let life = if holder.superseded { " (earlier life)" } else { "" };
    let stands_for = match holder.kind.as_str() {
        "node" => format!("{} clients", holder.subclients),
        _ => String::new(),
    };
    let cells = vec![
        Line::raw(format!("{}{life}", holder.client)),
        Line::from(bar(part(holder.has), part(holder.unmet()), colour, BAR)),
        Line::raw(figure(holder.has)),
        Line::raw(figure(holder.wants)),
        Line::raw(figure(holder.share)),
        Line::styled(some(short), if short > 0.0 { colour } else { Style::new() }),
        Line::raw(holder.state.clone()),
        Line::raw(holder.priority.to_string()),
        Line::raw(format!("{:.1} s", holder.ends_in_seconds)),
        Line::raw(format!("{:.1} s ago", holder.heard_seconds_ago)),
        Line::raw(stands_for),
    ];
    let style = if holder.superseded { Style::new().dim() } else { Style::new() };
    TableRow { cells, style }
}
