//! The session in a terminal: keys in, pictures out, and a page of the server every so often.

use std::time::Duration;

use anyhow::Context;
use lessor_client::internals::clock;
use lessor_proto::Time;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinSet};

use super::board::{Board, Reaction, TopNews};
use super::picture::Appearance;
use super::{Top, moment, picture};
use crate::signals::Signals;

/// All of it.
pub(super) struct TopSession {
    top: Top,
    board: Board,
    terminal: WholeTerminal,
    events: mpsc::Receiver<Event>,
    /// The page that is asked for; at most one at a time.
    asked: JoinSet<anyhow::Result<TopNews>>,
    /// The next is due then.
    next: Time,
    has_colours: bool,
}

/// The whole terminal, given back when dropped.
struct WholeTerminal(DefaultTerminal);

/// The time after which ages are shown anew.
const SECOND: Duration = Duration::from_secs(1);
/// Keys that wait to be read.
const KEYS: usize = 64;

// === impl TopSession ===

impl TopSession {
    pub(super) fn start(top: Top) -> anyhow::Result<TopSession> {
        let terminal = WholeTerminal(ratatui::try_init().context("the terminal cannot be drawn on")?);
        Ok(TopSession {
            board: top.board(),
            top,
            terminal,
            events: events(),
            asked: JoinSet::new(),
            next: clock::now(),
            // By the rule of no-color.org: set, and not empty.
            has_colours: std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
        })
    }

    pub(super) async fn run(mut self) -> anyhow::Result<()> {
        let mut signals = Signals::listen()?;
        loop {
            let now = moment();
            let look = Appearance { now, has_colours: self.has_colours };
            self.terminal.0.draw(|frame| picture::draw(frame, &self.board, look))?;
            let is_due = self.asked.is_empty() && !self.board.is_paused;
            let reaction = tokio::select! {
                // Nobody is left at the terminal.
                event = self.events.recv() => event.map_or(Reaction::Leave, |event| self.on_event(&event)),
                Some(answer) = self.asked.join_next() => self.on_answer(answer),
                () = clock::sleep_until(self.next), if is_due => Reaction::Ask,
                () = clock::sleep_until(now.at + SECOND) => Reaction::Stay,
                _ = signals.terminate.recv() => Reaction::Leave,
                _ = signals.interrupt.recv() => Reaction::Leave,
                _ = signals.hang_up.recv() => Reaction::Leave,
            };
            match reaction {
                Reaction::Stay => {}
                Reaction::Ask => self.ask(),
                Reaction::Leave => return Ok(()),
            }
        }
    }

    fn on_event(&mut self, event: &Event) -> Reaction {
        match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => self.board.on_key(*key),
            _ => Reaction::Stay,
        }
    }

    /// Asks for the page that the board wants, and for no other any more.
    fn ask(&mut self) {
        self.asked = JoinSet::new();
        self.next = clock::now() + self.top.interval;
        let (top, query) = (self.top.clone(), self.board.query());
        self.asked.spawn(async move { top.look(&query).await });
    }

    fn on_answer(&mut self, answer: Result<anyhow::Result<TopNews>, JoinError>) -> Reaction {
        match answer {
            Ok(Ok(news)) => self.board.on_news(news, moment()),
            Ok(Err(error)) => self.board.on_fault(format!("{error:#}"), moment()),
            Err(error) => self.board.on_fault(error.to_string(), moment()),
        }
        Reaction::Stay
    }
}

/// The keys that are pressed, and changes of the size, until the terminal is gone.
fn events() -> mpsc::Receiver<Event> {
    let (tell, told) = mpsc::channel(KEYS);
    // It ends with the process: nothing wakes whoever waits for a key.
    std::thread::spawn(move || {
        while let Ok(event) = event::read() {
            if tell.blocking_send(event).is_err() {
                break;
            }
        }
    });
    told
}

// === impl WholeTerminal ===

impl Drop for WholeTerminal {
    fn drop(&mut self) {
        // There is nobody left to tell if the terminal does not take it.
        let _ = ratatui::try_restore();
    }
}
