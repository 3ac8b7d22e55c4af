//! The options of the console.

use std::time::Duration;

use clap::Args;
use lessor_console::Console;
use lessor_server::shell::MorePages;

/// The flags about the console.
#[derive(Debug, Args)]
#[command(next_help_heading = "Console")]
pub(super) struct ConsoleFlags {
    /// The time for which the console keeps the figures of the busiest resources; 0 for none. 15 minutes take up to 4.3 MB
    #[arg(long, env = "LESSOR_HISTORY", value_name = "DURATION", default_value = "15m", value_parser = history)]
    history: Duration,
    /// Names with a dot under which browsers may open pages without TLS, beside that of --advertise. Others are refused, as
    /// whoever has the name could read along; addresses and names without a dot may always be used
    #[arg(long, env = "LESSOR_PAGE_HOSTS", value_name = "NAME,...", value_delimiter = ',', value_parser = host)]
    page_hosts: Vec<String>,
}

// === impl ConsoleFlags ===

impl ConsoleFlags {
    pub(super) fn pages(&self) -> MorePages {
        Console { history: self.history }.pages()
    }

    pub(super) fn page_hosts(&self) -> Vec<String> {
        self.page_hosts.clone()
    }
}

/// None at all, or from a minute to a day.
fn history(text: &str) -> Result<Duration, String> {
    let wanted = "wanted 0, or a time from 1m to 24h";
    let time = humantime::parse_duration(text).map_err(|fault| format!("{fault}; {wanted}"))?;
    match time.is_zero() || (60..=86_400).contains(&time.as_secs()) {
        true => Ok(time),
        false => Err(wanted.to_owned()),
    }
}

/// The name of a host, without a port.
fn host(text: &str) -> Result<String, String> {
    let is_label = |label: &str| {
        !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    match text.len() <= 253 && text.split('.').all(is_label) {
        true => Ok(text.to_owned()),
        false => Err("wanted the name of a host, without a port".to_owned()),
    }
}
