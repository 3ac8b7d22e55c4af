//! The screen of the demonstration: a live picture in a terminal, else a line a second.

use std::io::{self, Write as _};
use std::ops::ControlFlow;
use std::time::Duration;

use ratatui::DefaultTerminal;
use ratatui::buffer::{Buffer, Cell};
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::{Color, Modifier};

use super::picture;
use super::view::{Root, View};

pub(super) enum Screen {
    Live(Live),
    Plain(Plain),
}

/// The whole terminal, given back when dropped.
pub(super) struct Live {
    terminal: DefaultTerminal,
    /// The frame that is seen.
    seen: Buffer,
}

pub(super) struct Plain {
    next_second: f64,
    said: &'static str,
}

// === impl Screen ===

impl Screen {
    pub(super) fn live() -> anyhow::Result<Screen> {
        Ok(Screen::Live(Live { terminal: ratatui::try_init()?, seen: Buffer::default() }))
    }

    pub(super) fn plain(view: &View) -> Screen {
        println!("{}", picture::headline(view));
        Screen::Plain(Plain { next_second: 1.0, said: "" })
    }

    /// Breaks when the person has had enough.
    pub(super) fn show(&mut self, view: &View, history: &[(f64, f64)]) -> anyhow::Result<ControlFlow<()>> {
        match self {
            Screen::Live(live) => live.show(view, history),
            Screen::Plain(plain) => {
                plain.show(view);
                Ok(ControlFlow::Continue(()))
            }
        }
    }
}

impl Screen {
    /// Gives the terminal back, and leaves in it what was seen last.
    pub(super) fn end(self) -> anyhow::Result<()> {
        let Screen::Live(mut live) = self else { return Ok(()) };
        let seen = std::mem::take(&mut live.seen);
        drop(live);
        write!(io::stdout(), "{}", coloured(&seen))?;
        Ok(())
    }
}

/// A frame as lines of text, with the colours that terminals have.
fn coloured(buffer: &Buffer) -> String {
    let mut text = String::new();
    for row in 0..buffer.area.height {
        let cells: Vec<&Cell> = (0..buffer.area.width).map(|column| &buffer[(column, row)]).collect();
        let end = cells.iter().rposition(|cell| cell.symbol() != " ").map_or(0, |last| last + 1);
        for same in cells[..end].chunk_by(|one, other| codes(one) == codes(other)) {
            let symbols: String = same.iter().map(|cell| cell.symbol()).collect();
            match codes(same[0]).as_str() {
                "" => text.push_str(&symbols),
                codes => text.push_str(&format!("\u{1b}[{}m{symbols}\u{1b}[0m", &codes[1..])),
            }
        }
        text.push('\n');
    }
    text
}

/// The codes of the look of a cell, each behind a semicolon.
fn codes(cell: &Cell) -> String {
    let colour = match cell.fg {
        Color::Red => ";31",
        Color::Green => ";32",
        Color::Yellow => ";33",
        Color::Magenta => ";35",
        Color::Cyan => ";36",
        Color::DarkGray => ";90",
        _ => "",
    };
    let bold = if cell.modifier.contains(Modifier::BOLD) { ";1" } else { "" };
    let dim = if cell.modifier.contains(Modifier::DIM) { ";2" } else { "" };
    format!("{bold}{dim}{colour}")
}

// === impl Plain ===

impl Plain {
    fn show(&mut self, view: &View) {
        if std::mem::replace(&mut self.said, view.says) != view.says {
            println!("        {}", view.says);
        }
        if view.seconds >= self.next_second {
            self.next_second += 1.0;
            println!("{}\n{}", line(view), tenants(view));
        }
    }
}

/// A second in a line: the target, and the tree from the root to the clients.
fn line(view: &View) -> String {
    let root = match view.root {
        Root::Serves => format!("root {:.0}", view.capacity),
        Root::Away => "no root ".to_owned(),
        Root::Learns(_) => "root (learns)".to_owned(),
    };
    let leaf = |leaf: &super::view::Leaf| {
        let each: String = leaf.clients.iter().map(|client| format!(" {:.0}", client.has)).collect();
        format!("{} {:.0} of {:.0} wanted:{each}", leaf.name, leaf.lease, leaf.wants)
    };
    let leaves: Vec<String> = view.leaves.iter().map(leaf).collect();
    format!("{:5.1} s  target {:4}/s  {root} > {}", view.seconds, view.judge.rate(), leaves.join(" | "))
}

/// And the tenants: how many requests were granted and refused, and what they do that is not usual.
fn tenants(view: &View) -> String {
    let tenant = |tenant: &super::view::Tenant| {
        let super::view::Tenant { name, tier, hits, limit, granted, refused, rests } = tenant;
        let does = match *tier > 1 || rests.is_some() {
            true => format!(" {}, tier {tier} {hits}/{limit}", tenant.does()),
            false => String::new(),
        };
        format!(" {name} +{granted} -{refused}{does}")
    };
    let each: Vec<String> = view.tenants.iter().map(tenant).collect();
    format!("         tenants{}", each.join(" |"))
}

// === impl Live ===

impl Live {
    fn show(&mut self, view: &View, history: &[(f64, f64)]) -> anyhow::Result<ControlFlow<()>> {
        let drawn = self.terminal.draw(|frame| picture::draw(frame, view, history))?;
        self.seen.clone_from(drawn.buffer);
        while event::poll(Duration::ZERO)? {
            if let Event::Key(key) = event::read()?
                && is_enough(key)
            {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

fn is_enough(key: KeyEvent) -> bool {
    let interrupted = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
    interrupted || matches!(key.code, KeyCode::Char('q') | KeyCode::Esc)
}

impl Drop for Live {
    fn drop(&mut self) {
        // There is nobody left to tell if the terminal does not take it.
        let _ = ratatui::try_restore();
    }
}

#[cfg(test)]
mod tests {
    use ratatui::layout::Rect;
    use ratatui::style::Style;

    use super::*;

    #[test]
    fn a_frame_is_left_as_lines_with_its_colours() {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 12, 3));
        buffer.set_string(0, 0, "ab", Style::new());
        buffer.set_string(3, 0, "██", Style::new().fg(Color::Cyan));
        buffer.set_string(1, 2, "c", Style::new().fg(Color::Red).add_modifier(Modifier::BOLD));
        assert_eq!(coloured(&buffer), "ab \u{1b}[36m██\u{1b}[0m\n\n \u{1b}[1;31mc\u{1b}[0m\n");
    }
}
