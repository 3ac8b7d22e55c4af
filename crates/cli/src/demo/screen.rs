//! What is shown: a live picture in a terminal, else a line a second.

use std::ops::ControlFlow;
use std::time::Duration;

use ratatui::crossterm::event::{self, Event, KeyCode, KeyModifiers};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize};
use ratatui::symbols::Marker;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Axis, Block, Chart, Dataset, GraphType, Paragraph};
use ratatui::{DefaultTerminal, Frame};

use super::town::{ClientView, Town, View};

pub(super) enum Screen {
    Live(Live),
    Plain(Plain),
}

/// The whole terminal, given back when dropped.
pub(super) struct Live {
    terminal: DefaultTerminal,
}

pub(super) struct Plain {
    next_second: f64,
}

// === impl Screen ===

impl Screen {
    /// Breaks when the person has had enough.
    pub(super) fn show(&mut self, town: &Town) -> anyhow::Result<ControlFlow<()>> {
        match self {
            Screen::Live(live) => live.show(town),
            Screen::Plain(plain) => {
                plain.show(town);
                Ok(ControlFlow::Continue(()))
            }
        }
    }
}

// === impl Plain ===

impl Plain {
    pub(super) fn open(town: &Town) -> Plain {
        println!("{}", headline(town));
        Plain { next_second: 1.0 }
    }

    fn show(&mut self, town: &Town) {
        let View { judge, clients, held, seconds } = &town.view;
        if *seconds < self.next_second {
            return;
        }
        self.next_second += 1.0;
        let each: String = clients.iter().map(|client| format!(" {:.0}", client.has)).collect();
        let wanted: f64 = clients.iter().map(|client| client.wants).sum();
        println!(
            "{seconds:5.1} s  target {:4}/s  wanted {wanted:5.0}  leased {held:5.1} :{each}",
            judge.rate()
        );
    }
}

fn headline(town: &Town) -> String {
    let (limit, leased, clients) = (town.limit, town.leased_out, town.client_count());
    format!("a target that takes {limit}/s, {leased}/s of it leased to {clients} clients by one server")
}

// === impl Live ===

impl Live {
    pub(super) fn open() -> anyhow::Result<Live> {
        Ok(Live { terminal: ratatui::try_init()? })
    }

    fn show(&mut self, town: &Town) -> anyhow::Result<ControlFlow<()>> {
        self.terminal.draw(|frame| draw(frame, town))?;
        while event::poll(Duration::ZERO)? {
            if let Event::Key(key) = event::read()? {
                let interrupted =
                    key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
                if interrupted || matches!(key.code, KeyCode::Char('q') | KeyCode::Esc) {
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        // There is nobody left to tell if the terminal does not take it.
        let _ = ratatui::try_restore();
    }
}

/// The picture: clients above, the target below.
pub(super) fn draw(frame: &mut Frame<'_>, town: &Town) {
    let clients = u16::try_from(town.view.clients.len()).unwrap_or(u16::MAX);
    let [head, bars, target, foot] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(clients.saturating_add(2)),
        Constraint::Min(6),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    frame.render_widget(Paragraph::new(headline(town).bold()), head);
    draw_clients(frame, bars, town);
    draw_target(frame, target, town);
    frame.render_widget(Paragraph::new(town.summary().dim()), foot);
}

fn draw_clients(frame: &mut Frame<'_>, area: Rect, town: &Town) {
    let View { clients, held, .. } = &town.view;
    let title = format!(" {held:.1} of {} leased: █ has  ░ wants  (q to quit) ", town.leased_out);
    let width = usize::from(area.width.saturating_sub(52));
    // One that wants everything would press all others into the corner: what is beyond is cut off.
    let widest = 4.0 * town.leased_out / clients.len().max(1) as f64;
    let lines: Vec<Line<'_>> = clients.iter().map(|client| client_line(client, width, widest)).collect();
    frame.render_widget(Paragraph::new(lines).block(Block::bordered().title(title)), area);
}

fn client_line(client: &ClientView, width: usize, widest: f64) -> Line<'static> {
    let cells = |amount: f64| ((amount / widest * width as f64).round() as usize).min(width);
    let (has, wants) = (cells(client.has), cells(client.wants));
    Line::from(vec![
        Span::raw(format!("{} ", client.name)),
        Span::styled("█".repeat(has), Style::new().fg(Color::Green)),
        Span::styled("░".repeat(wants.saturating_sub(has)), Style::new().fg(Color::Yellow)),
        Span::raw(" ".repeat(width.saturating_sub(has.max(wants)))),
        Span::raw(format!(" has {:6.1} wants {:6.1} {:7}", client.has, client.wants, client.rung)),
    ])
}

fn draw_target(frame: &mut Frame<'_>, area: Rect, town: &Town) {
    let judge = &town.view.judge;
    let title = format!(
        " target: {}/s, highest second {}, limit {}, refused {} ",
        judge.rate(),
        judge.highest,
        town.limit,
        judge.refused
    );
    let limit = f64::from(town.limit);
    let end = town.view.seconds.max(10.0);
    let line = [(0.0, limit), (end, limit)];
    let style = |color| Style::new().fg(color);
    let datasets = vec![
        Dataset::default()
            .marker(Marker::Braille)
            .graph_type(GraphType::Line)
            .style(style(Color::Red))
            .data(&line),
        Dataset::default()
            .marker(Marker::Braille)
            .graph_type(GraphType::Line)
            .style(style(Color::Green))
            .data(&town.history),
    ];
    let chart = Chart::new(datasets)
        .block(Block::bordered().title(title))
        .x_axis(Axis::default().bounds([0.0, end]).labels(["0 s".to_owned(), format!("{end:.0} s")]))
        .y_axis(
            Axis::default()
                .bounds([0.0, limit * 1.1])
                .labels(["0".to_owned(), format!("{:.0}", limit * 1.1)]),
        );
    frame.render_widget(chart, area);
}
