//! The screen of the demonstration: a live picture in a terminal, else a line a second.

use std::ops::ControlFlow;
use std::time::Duration;

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyModifiers};

use super::picture;
use super::view::{Root, View};

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
    said: &'static str,
}

// === impl Screen ===

impl Screen {
    pub(super) fn live() -> anyhow::Result<Screen> {
        Ok(Screen::Live(Live { terminal: ratatui::try_init()? }))
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
        self.terminal.draw(|frame| picture::draw(frame, view, history))?;
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
