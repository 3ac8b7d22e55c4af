//! `lessor top`: the resources of a node in a terminal, again and again, the fullest first; and who has one of them.

mod board;
mod figure;
mod order;
mod picture;
mod session;
mod sheet;

use std::io::IsTerminal as _;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use clap::Args;
use hyper::StatusCode;
use lessor_client::internals::clock;
use lessor_server::repository::Glob;

use self::board::{Board, Moment, TopNews, TopQuery};
use self::session::TopSession;
use self::sheet::TopView;
use crate::pages::ServerFlags;
use crate::status::node::NodePage;

/// Shows what is full, and who has it, in a terminal and again and again (role: see).
///
/// Keys: arrows choose, Enter shows who has the resource and Esc goes back, `s` sorts by another column and `S` the other way
/// round, `t`, `d`, `f` and `h` show the tree, hot domains, findings and revisions, `e` why the chosen one has what it has (role:
/// explain), `r` the resources again, `/` filters by name, `p` pauses, `?` lists all keys, `q` ends. A server that is away is
/// asked again, and what it has said last stays in sight with its age.
#[derive(Clone, Debug, Args)]
pub(crate) struct Top {
    /// The resources, as a pattern (db/*)
    #[arg(long, value_name = "GLOB")]
    resource: Option<String>,
    /// The view to begin with
    #[arg(long, value_enum, default_value_t)]
    view: TopView,
    /// The time between two looks, from a second to an hour
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = interval)]
    interval: Duration,
    /// Plain lines, once
    #[arg(long)]
    once: bool,
    /// Plain lines, so many times
    #[arg(long, value_name = "N", conflicts_with = "once", value_parser = clap::value_parser!(u32).range(1..))]
    batch: Option<u32>,
    /// With --once or --batch: the page as the server says it, in JSON, a line each time
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    servers: ServerFlags,
}

/// Columns of plain lines where there is no terminal.
const PLAIN_COLUMNS: u16 = 120;

// === impl Top ===

impl Top {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        if let Some(pattern) = &self.resource {
            Glob::new(pattern).with_context(|| format!("resource {pattern:?}"))?;
        }
        if let Some(times) = self.batch.or(self.once.then_some(1)) {
            return self.print(times).await;
        }
        if self.json {
            bail!("--json is of plain lines; wanted --once or --batch N with it");
        }
        if !std::io::stdout().is_terminal() {
            bail!(
                "standard output is no terminal; wanted one, or --once or --batch N for plain lines \
                 (`lessor status` has more of them, and JSON)"
            );
        }
        TopSession::start(self)?.run().await
    }

    /// Plain lines, so many times.
    async fn print(&self, times: u32) -> anyhow::Result<()> {
        let mut board = self.board();
        let columns = match std::io::stdout().is_terminal() {
            true => ratatui::crossterm::terminal::size().map_or(PLAIN_COLUMNS, |(columns, _)| columns),
            false => PLAIN_COLUMNS,
        };
        for number in 0..times {
            let asked = clock::now();
            if self.json {
                println!("{}", self.json(&board.query()).await?.trim_end());
            } else {
                let between = if number > 0 { "\n" } else { "" };
                print!("{between}{}", self.plain(&mut board, columns).await?);
            }
            if number + 1 < times {
                clock::sleep_until(asked + self.interval).await;
            }
        }
        Ok(())
    }

    fn board(&self) -> Board {
        Board::new(self.resource.clone()).with_view(self.view)
    }

    /// Plain lines of the view.
    async fn plain(&self, board: &mut Board, columns: u16) -> anyhow::Result<String> {
        match self.look(&board.query()).await? {
            TopNews::Sheet(text) => Ok(text),
            news @ TopNews::Node(_) => {
                board.on_news(news, moment());
                Ok(picture::lines(board, columns))
            }
        }
    }

    /// The page as the server says it.
    async fn json(&self, query: &TopQuery) -> anyhow::Result<String> {
        match query {
            TopQuery::Node { path } | TopQuery::One { path } => self.servers.ask(path).await?.wanted(),
            TopQuery::Sheet(kind) => kind.json(&self.servers).await,
        }
    }

    /// The page that is wanted, of the task that leads.
    async fn look(&self, query: &TopQuery) -> anyhow::Result<TopNews> {
        match query {
            TopQuery::Node { path } => self.read(&self.servers.ask(path).await?.wanted()?),
            TopQuery::One { path } => {
                let page = self.servers.ask(path).await?;
                match page.status {
                    StatusCode::NOT_FOUND => Ok(TopNews::Node(None)),
                    _ => self.read(&page.wanted()?),
                }
            }
            TopQuery::Sheet(kind) => Ok(TopNews::Sheet(kind.text(&self.servers).await?)),
        }
    }

    fn read(&self, text: &str) -> anyhow::Result<TopNews> {
        let server = || format!("{} sent no status", self.servers.server.join(","));
        let page: NodePage = serde_json::from_str(text).with_context(server)?;
        match page.leads() {
            true => Ok(TopNews::Node(Some(page))),
            false => Err(anyhow!("{}", page.heading().trim_end().to_owned())),
        }
    }
}

fn interval(text: &str) -> Result<Duration, String> {
    let wanted = "wanted a duration from 1s to 1h";
    let length = humantime::parse_duration(text).map_err(|error| format!("{error}; {wanted}"))?;
    match (Duration::from_secs(1)..=Duration::from_secs(3_600)).contains(&length) {
        true => Ok(length),
        false => Err(wanted.to_owned()),
    }
}

/// The present.
fn moment() -> Moment {
    Moment { at: clock::now(), date: clock::wall().since_epoch }
}

#[cfg(test)]
mod tests;
