//! The picture of a board: who leads, what is full, or who has one resource, and which keys there are.

mod columns;
mod holders;
mod resources;
mod sheet;

use ratatui::backend::TestBackend;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph, Wrap};
use ratatui::{Frame, Terminal};

use super::board::{Board, Moment, Outage};
use super::figure::{clock_time, length};
use crate::status::node::NodePage;

/// The moment at which it is drawn, and whether it has colours.
#[derive(Clone, Copy, Debug)]
pub(super) struct Appearance {
    pub(super) now: Moment,
    pub(super) has_colours: bool,
}

/// The least that something can be seen in.
const LEAST: (u16, u16) = (40, 8);
/// Lines of what is out of the ordinary about the node.
const MOST_NOTES: usize = 3;
/// All keys.
const KEYS: [(&str, &str); 11] = [
    ("↑ ↓ PgUp PgDn Home End", "choose (or k j g G)"),
    ("Enter", "who has the resource"),
    ("Esc", "back: without the filter, or to what was there before"),
    ("r t d f h", "resources, tree, hot domains, findings, revisions"),
    ("e", "why the chosen one has what it has"),
    ("s", "sort by the next column"),
    ("S", "sort the other way round"),
    ("/", "filter by a part of the name, or a pattern (db/*)"),
    ("p", "pause, and go on"),
    ("?", "these keys"),
    ("q", "leave"),
];

// === impl Appearance ===

impl Appearance {
    /// A style of that colour, where there are any.
    fn colour(self, colour: Color) -> Style {
        if self.has_colours { Style::new().fg(colour) } else { Style::new() }
    }
}

/// All of it.
pub(super) fn draw(frame: &mut Frame<'_>, board: &Board, look: Appearance) {
    let area = frame.area();
    if area.width < LEAST.0 || area.height < LEAST.1 {
        let text = format!(
            "the terminal has {}×{} cells; wanted {}×{} or more (q leaves)",
            area.width, area.height, LEAST.0, LEAST.1
        );
        frame.render_widget(Paragraph::new(text).wrap(Wrap { trim: true }), area);
        return;
    }
    let alarm = board.outage.as_ref().map(|outage| alarm(board, outage, look));
    let notes = notes(board);
    let rows = |count: usize| Constraint::Length(u16::try_from(count).unwrap_or(u16::MAX));
    let [head, notes_area, alarm_area, body, foot] = Layout::vertical([
        Constraint::Length(1),
        rows(notes.len()),
        rows(usize::from(alarm.is_some())),
        Constraint::Min(3),
        Constraint::Length(1),
    ])
    .areas(area);
    draw_head(frame, head, board, look);
    let notes = notes.into_iter().map(|note| Line::styled(note, look.colour(Color::Yellow)));
    frame.render_widget(Paragraph::new(notes.collect::<Vec<_>>()), notes_area);
    if let Some(alarm) = alarm {
        frame.render_widget(alarm, alarm_area);
    }
    match (&board.sheet, &board.close) {
        (Some(sheet), _) => sheet::draw(frame, body, sheet, look),
        (None, Some(close)) => holders::draw(frame, body, close, look),
        (None, None) => resources::draw(frame, body, board, look),
    }
    frame.render_widget(foot_line(board, look), foot);
    if board.shows_keys {
        draw_keys(frame, area);
    }
}

/// The resources as plain lines of so many columns.
pub(super) fn lines(board: &Board, columns: u16) -> String {
    let columns = columns.max(LEAST.0);
    let rows = u16::try_from(board.all_resources().len()).unwrap_or(u16::MAX);
    let mut terminal = Terminal::new(TestBackend::new(columns, rows.saturating_add(2)))
        .unwrap_or_else(|never| match never {});
    let now = board.heard.unwrap_or(Moment::ZERO);
    let look = Appearance { now, has_colours: false };
    let drawn = terminal.draw(|frame| resources::draw_list(frame, frame.area(), board, look));
    drawn.unwrap_or_else(|never| match never {});
    let buffer = terminal.backend().buffer();
    let line = |row: u16| -> String { (0..columns).map(|column| buffer[(column, row)].symbol()).collect() };
    let mut text = board.node.as_ref().map_or_else(String::new, NodePage::heading);
    for row in 0..buffer.area.height {
        text.push_str(line(row).trim_end());
        text.push('\n');
    }
    format!("{}\n", text.trim_end())
}

/// The first line: which node, who leads it, and when that was heard.
fn draw_head(frame: &mut Frame<'_>, area: Rect, board: &Board, look: Appearance) {
    let page = board.close.as_ref().and_then(|close| close.node.as_ref()).or(board.node.as_ref());
    let heading = page.map(NodePage::heading);
    let heading = heading.as_deref().and_then(|text| text.lines().next()).unwrap_or("asks who leads …");
    let left = Line::from(vec![
        Span::styled("lessor top", look.colour(Color::Cyan)).bold(),
        Span::raw("  "),
        Span::raw(heading.to_owned()).bold(),
    ]);
    frame.render_widget(Paragraph::new(left), area);
    let date = board.heard.map(|heard| clock_time(heard.date)).unwrap_or_default();
    let time = if board.is_paused { format!(" PAUSED at {date}") } else { format!(" {date}") };
    let width = u16::try_from(time.len()).unwrap_or(u16::MAX).min(area.width);
    let corner = Rect { x: area.right() - width, width, ..area };
    let style = if board.is_paused { look.colour(Color::Yellow).bold() } else { Style::new().dim() };
    frame.render_widget(Paragraph::new(time).style(style), corner);
}

/// Lines about what is out of the ordinary: overrides, a configuration that is not in force.
fn notes(board: &Board) -> Vec<String> {
    let Some(page) = &board.node else { return Vec::new() };
    let heading = page.heading();
    let mut notes: Vec<String> = heading.lines().skip(1).map(str::to_owned).collect();
    if notes.len() > MOST_NOTES {
        let more = notes.len() + 1 - MOST_NOTES;
        notes.truncate(MOST_NOTES - 1);
        notes.push(format!("… and {more} more"));
    }
    notes
}

fn alarm(board: &Board, outage: &Outage, look: Appearance) -> Paragraph<'static> {
    let since = board.heard.unwrap_or(outage.since);
    let lasts = length(look.now.at.since(since.at));
    let why = outage.why.replace('\n', " ");
    let text = format!(" NO NEWS since {}, for {lasts}: {why}", clock_time(since.date));
    let style = look.colour(Color::Red).bold().reversed();
    Paragraph::new(text).style(style)
}

/// The last line: the filter that is typed, or the keys.
fn foot_line(board: &Board, look: Appearance) -> Paragraph<'static> {
    if board.is_typing {
        let typed = vec![
            Span::styled("/", look.colour(Color::Yellow)).bold(),
            Span::raw(board.filter().to_owned()),
            Span::raw("█").dim(),
            Span::raw("   Enter keeps it, Esc takes it away").dim(),
        ];
        return Paragraph::new(Line::from(typed));
    }
    let enter = match (&board.sheet, &board.close) {
        (Some(_), _) => ("Esc", "back"),
        (None, Some(_)) => ("Esc", "all resources"),
        (None, None) => ("Enter", "holders"),
    };
    let pause = if board.is_paused { ("p", "go on") } else { ("p", "pause") };
    let sort = (board.sheet.is_none()).then_some(("s", "sort"));
    let keys = [("q", "leave"), ("?", "keys"), enter, ("/", "filter")];
    let views = ("r t d f h e", "views");
    let spans = keys
        .into_iter()
        .chain(sort)
        .chain([pause, views])
        .flat_map(|(key, does)| [Span::raw(key).bold(), Span::raw(format!(" {does}   ")).dim()]);
    Paragraph::new(Line::from(spans.collect::<Vec<_>>()))
}

/// All keys, above the rest.
fn draw_keys(frame: &mut Frame<'_>, area: Rect) {
    let line = |(key, does): (&'static str, &'static str)| {
        Line::from(vec![Span::raw(format!(" {key:>22}  ")).bold(), Span::raw(does)])
    };
    let lines: Vec<Line<'_>> = KEYS.into_iter().map(line).collect();
    let width = 78.min(area.width);
    let height = u16::try_from(lines.len() + 2).unwrap_or(u16::MAX).min(area.height);
    let middle =
        Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height };
    let block = Block::bordered().title(" keys ").title_alignment(Alignment::Center);
    frame.render_widget(Clear, middle);
    frame.render_widget(Paragraph::new(lines).block(block), middle);
}

#[cfg(test)]
mod tests;
