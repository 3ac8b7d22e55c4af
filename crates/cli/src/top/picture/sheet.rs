//! The picture of a sheet: its title, the names of its columns, and the lines that are in sight.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::Line;
use ratatui::widgets::{Paragraph, Wrap};

use super::super::sheet::Sheet;
use super::Appearance;
use super::columns::caption;

/// All of it.
pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, sheet: &Sheet, look: Appearance) {
    let (heads, lines) = sheet.lines();
    let rows = u16::try_from(heads.len()).unwrap_or(0);
    let [title, head, body] =
        Layout::vertical([Constraint::Length(1), Constraint::Length(rows), Constraint::Min(1)]).areas(area);
    let shown = match sheet.filter.as_str() {
        "" => String::new(),
        filter => format!("{} lines with {filter:?}", lines.len()),
    };
    let above = match sheet.offset {
        0 => String::new(),
        lines => format!("{lines} above"),
    };
    frame.render_widget(Paragraph::new(caption(&[sheet.kind.title(), shown, above], look)).bold(), title);
    if !sheet.is_known() {
        frame.render_widget(Paragraph::new("asks …").dim(), body);
        return;
    }
    let heads: Vec<Line<'_>> = heads.into_iter().map(Line::raw).collect();
    frame.render_widget(Paragraph::new(heads).style(Style::new().bold().underlined()), head);
    let lines: Vec<Line<'_>> = lines
        .into_iter()
        .skip(sheet.offset)
        .take(usize::from(body.height))
        .map(|line| styled(line, look))
        .collect();
    let text = Paragraph::new(lines);
    // Where words go on in the next line nothing of them is out of sight.
    let text = if sheet.kind.is_prose() { text.wrap(Wrap { trim: false }) } else { text };
    frame.render_widget(text, body);
}

/// A line in the colour of how bad it is.
fn styled<'a>(line: &'a str, look: Appearance) -> Line<'a> {
    let colour = match line.split(' ').next() {
        Some("FAULT") => Some(Color::Red),
        Some("WARNING") => Some(Color::Yellow),
        _ => None,
    };
    colour.map_or_else(|| Line::raw(line), |colour| Line::styled(line, look.colour(colour)))
}
