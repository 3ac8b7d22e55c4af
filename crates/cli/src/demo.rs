//! `lessor demo`: a root, two leaves, a dozen clients and a real HTTP target with a limit, in one process over real sockets.
//!
//! The judge is the target: it counts what reaches it in every second, wherever the second begins, and refuses what is
//! over its limit. Everything else shown is what the clients and the servers say of themselves. Two of the clients serve
//! tenants, of whom one is greedy.

mod fleet;
mod picture;
mod screen;
mod script;
mod svg;
mod target;
mod tenants;
mod tree;
mod view;
mod worker;

use std::io::IsTerminal;
use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use lessor_client::internals::clock;

use self::fleet::Fleet;
use self::screen::Screen;
use self::script::Script;
use crate::log::{self, LogFormat};

/// Shows a root, two leaves, a dozen clients and a real HTTP target with a limit, in one process.
#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// The time for which it goes on
    #[arg(long = "for", value_name = "DURATION", default_value = "30s", value_parser = humantime::parse_duration)]
    length: Duration,
    /// Requests a second that the target takes
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u32).range(10..=5_000))]
    limit: u32,
    /// Clients
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = clap::value_parser!(u32).range(2..=50))]
    clients: u32,
    /// Plain lines, even in a terminal
    #[arg(long)]
    plain: bool,
    /// Write the last picture here, as it is drawn in a terminal of 100 columns
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

/// The size of the picture that is written, in cells.
const SVG_COLUMNS: u16 = 100;
const SVG_ROWS: u16 = 30;
/// The interval between two looks at it.
const SAMPLE: Duration = Duration::from_millis(100);

// === impl Demo ===

impl Demo {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let live = std::io::stdout().is_terminal() && !self.plain;
        // A log line would tear the screen, and that the root has ended is no news to who reads the lines.
        log::start(LogFormat::Text, if live { "off" } else { "error" });
        let mut fleet = Fleet::start(self.limit, self.clients as usize, self.length).await?;
        let mut screen = if live { Screen::live()? } else { Screen::plain(fleet.view()) };
        let end = clock::now() + self.length;
        let mut timer = tokio::time::interval(SAMPLE);
        // One for the whole time: between two of them nobody would hear it.
        let mut interrupted = pin!(tokio::signal::ctrl_c());
        while clock::now() < end {
            tokio::select! {
                _ = timer.tick() => {}
                _ = &mut interrupted => break,
            }
            fleet.step().await?;
            if screen.show(fleet.view(), fleet.history())?.is_break() {
                break;
            }
        }
        let summary = fleet.view().summary.clone();
        let picture = picture::frame(SVG_COLUMNS, SVG_ROWS, fleet.view(), fleet.history());
        screen.end()?;
        fleet.end().await;
        if let Some(path) = &self.svg {
            std::fs::write(path, svg::svg(&picture)).with_context(|| path.display().to_string())?;
        }
        for part in Script::new(self.length).left_out() {
            eprintln!("note: --for {} leaves out {part}", humantime::format_duration(self.length));
        }
        println!("{summary}");
        Ok(())
    }
}
