//! Columns, of which those at the right are left out where there is no room for them.

use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Rect};
use ratatui::style::{Style, Stylize};
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Cell, Row, Table, TableState};

use super::super::figure::cells;
use super::Appearance;

/// The title of a column, and the cells that it takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct TableColumn {
    pub(super) title: &'static str,
    pub(super) width: u16,
    pub(super) is_right: bool,
}

/// A row: what stands in each column, and how it is drawn.
pub(super) struct TableRow {
    pub(super) cells: Vec<Line<'static>>,
    pub(super) style: Style,
}

/// A list: its columns and rows, the column by which they are sorted, and the chosen row.
pub(super) struct List<'a> {
    pub(super) columns: &'a [TableColumn],
    pub(super) rows: Vec<TableRow>,
    pub(super) sorted: (&'static str, bool),
    pub(super) chosen: Option<usize>,
}

/// The bounds of the width of the first column, which has the names.
const NAMES: (u16, u16) = (12, 48);
/// Cells of a bar.
pub(super) const BAR: usize = 10;

// === impl TableColumn ===

impl TableColumn {
    pub(super) const fn left(title: &'static str, width: u16) -> TableColumn {
        TableColumn { title, width, is_right: false }
    }

    pub(super) const fn right(title: &'static str, width: u16) -> TableColumn {
        TableColumn { title, width, is_right: true }
    }
}

// === impl List ===

impl List<'_> {
    pub(super) fn draw(self, frame: &mut Frame<'_>, area: Rect) {
        let widths = self.widths(area.width);
        let columns = &self.columns[..widths.len()];
        let align = |column: &TableColumn, line: Line<'static>| {
            let right = if column.is_right { Alignment::Right } else { Alignment::Left };
            Cell::from(Text::from(line).alignment(right))
        };
        let titles = columns.iter().map(|column| align(column, Line::raw(self.title(column))));
        let header = Row::new(titles.collect::<Vec<_>>()).style(Style::new().bold().underlined());
        let rows = self.rows.into_iter().map(|row| {
            let cells = columns.iter().zip(row.cells).map(|(column, cell)| align(column, cell));
            Row::new(cells.collect::<Vec<_>>()).style(row.style)
        });
        let table = Table::new(rows.collect::<Vec<_>>(), widths.into_iter().map(Constraint::Length))
            .header(header)
            .column_spacing(1)
            .row_highlight_style(Style::new().reversed());
        let mut state = TableState::new().with_selected(self.chosen);
        frame.render_stateful_widget(table, area, &mut state);
    }

    /// The title of a column, with an arrow where it sorts the rows.
    fn title(&self, column: &TableColumn) -> String {
        match self.sorted {
            (title, is_reversed) if title == column.title => {
                format!("{title}{}", if is_reversed { "▲" } else { "▼" })
            }
            _ => column.title.to_owned(),
        }
    }

    /// The widths of the columns that there is room for: at least that of the names.
    fn widths(&self, room: u16) -> Vec<u16> {
        let longest =
            self.rows.iter().filter_map(|row| row.cells.first()).map(Line::width).max().unwrap_or(0);
        let mut left = room.saturating_sub(NAMES.0);
        let mut widths = vec![NAMES.0.min(room)];
        for column in &self.columns[1..] {
            let Some(rest) = left.checked_sub(column.width + 1) else { break };
            left = rest;
            widths.push(column.width);
        }
        let wanted = u16::try_from(longest).unwrap_or(u16::MAX).clamp(NAMES.0, NAMES.1);
        let more = (wanted - NAMES.0).min(left);
        widths[0] += more;
        // The rest is for the notes, if they are in sight.
        if widths.len() == self.columns.len()
            && let Some(last) = widths.last_mut()
        {
            *last += left - more;
        }
        widths
    }
}

/// A bar: the part of it that is full, and of the rest what is missing.
pub(super) fn bar(full: f64, missing: f64, style: Style, width: usize) -> Vec<Span<'static>> {
    let solid = cells(full, width);
    let hatched = cells(full + missing, width).max(solid) - solid;
    vec![
        Span::styled("█".repeat(solid), style),
        Span::raw("░".repeat(hatched)).dim(),
        Span::raw(" ".repeat(width - solid - hatched)),
    ]
}

/// Numbers and words in a line beneath each other: what is in sight, of how many, and by which order.
pub(super) fn caption(parts: &[String], look: Appearance) -> Line<'static> {
    let between = Span::styled(" · ", look.colour(ratatui::style::Color::DarkGray));
    let mut spans: Vec<Span<'static>> = Vec::new();
    for part in parts.iter().filter(|part| !part.is_empty()) {
        if !spans.is_empty() {
            spans.push(between.clone());
        }
        spans.push(Span::raw(part.clone()));
    }
    Line::from(spans)
}
