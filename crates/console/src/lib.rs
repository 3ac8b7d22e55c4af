//! The console: `/v1`, the JSON API of a server, and the page at `/` that shows it to people.
//!
//! It stands beside the server and not in it: it reads the summary that the driver publishes, asks for holders in slices, and draws
//! burst tiers by the code that clients run. It changes nothing.
//!
//! ```no_run
//! # async fn start(
//! #     options: lessor_server::shell::ServerOptions,
//! #     config: lessor_server::node::NodeConfig,
//! #     repository: lessor_server::repository::Repository,
//! # ) -> Result<(), Box<dyn std::error::Error>> {
//! use lessor_console::Console;
//! use lessor_server::shell::{Server, ServerOptions};
//!
//! let options = ServerOptions { pages: Some(Console::default().pages()), ..options };
//! let server = Server::start(options, config, repository).await?;
//! # Ok(())
//! # }
//! ```

mod assets;
mod check;
mod cursor;
mod desk;
mod diff;
mod domains;
mod events;
mod findings;
mod holders;
mod node;
mod overrides;
mod parameters;
mod plain;
mod problem;
mod resources;
mod revisions;
mod route;
mod series;
mod shelf;
mod sieve;
mod table;
mod tempo;
mod tiers;

pub use self::route::Console;
