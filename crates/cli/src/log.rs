//! The log that a command writes to standard error while it runs.

use std::io::IsTerminal;
use std::sync::{Mutex, PoisonError};

use clap::ValueEnum;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::{FilterExt, filter_fn};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry, fmt, reload};

/// The format of log lines.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people
    Text,
    /// For machines
    Json,
}

/// The filter of the log, which can be changed while the command runs.
#[derive(Debug)]
pub(crate) struct LogFilter {
    handle: reload::Handle<EnvFilter, Registry>,
    /// The text of the one at the start, which may be less strict than others: it comes from the environment.
    start: String,
    /// The text of the one in force.
    text: Mutex<String>,
}

/// Writes logs to standard error from here on: what `RUST_LOG` says, or `default`; and the audit log, whatever that says.
pub(crate) fn start(format: LogFormat, default: &str) -> LogFilter {
    let (filter, changes) = LogFilter::new(std::env::var(EnvFilter::DEFAULT_ENV).ok(), default);
    let audit = filter_fn(|event| event.target() == "lessor::audit").with_max_level_hint(LevelFilter::INFO);
    let colours = std::io::stderr().is_terminal();
    let lines = fmt::layer().with_writer(std::io::stderr).with_ansi(colours);
    let lines = match format {
        LogFormat::Text => lines.boxed(),
        LogFormat::Json => lines.json().boxed(),
    };
    tracing_subscriber::registry().with(lines.with_filter(filter.or(audit))).init();
    changes
}

/// Logs panics as everything else, with the place and the reason.
pub(crate) fn note_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        let reason = panic.payload_as_str().unwrap_or("no reason given");
        tracing::error!(place, reason, "panicked");
    }));
}

// === impl LogFilter ===

impl LogFilter {
    /// The filter that somebody has said, if it is one, or `default`; and the means to change it.
    fn new(said: Option<String>, default: &str) -> (reload::Layer<EnvFilter, Registry>, LogFilter) {
        let said = said.and_then(|text| Some((EnvFilter::try_new(&text).ok()?, text)));
        let (filter, start) = said.unwrap_or_else(|| (EnvFilter::new(default), default.to_owned()));
        let (filter, handle) = reload::Layer::new(filter);
        let text = Mutex::new(start.clone());
        (filter, LogFilter { handle, start, text })
    }

    /// The text of the filter in force.
    pub(crate) fn text(&self) -> String {
        self.text.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Puts another filter in force.
    ///
    /// # Errors
    /// When it is none, with what was found and what was wanted.
    pub(crate) fn set(&self, text: &str) -> Result<(), String> {
        let mut in_force = self.text.lock().unwrap_or_else(PoisonError::into_inner);
        let (filter, text) = if text == self.start {
            (EnvFilter::try_new(text).map_err(|fault| fault.to_string())?, text.to_owned())
        } else {
            parse(text)?
        };
        self.handle.reload(filter).map_err(|fault| fault.to_string())?;
        *in_force = text;
        Ok(())
    }
}

/// The filter that `text` is, and its text without blanks that say nothing. The library takes any word for a target, and so a level
/// with a slip in it would silence everything else: here a directive without a level has to be a level.
fn parse(text: &str) -> Result<(EnvFilter, String), String> {
    const WANTED: &str =
        "wanted off, error, warn, info, debug or trace, or TARGET=LEVEL, several with commas between";
    let directives: Vec<&str> = text.split(',').map(str::trim).filter(|part| !part.is_empty()).collect();
    if directives.is_empty() {
        return Err(format!("found nothing; {WANTED}"));
    }
    let is_bare = |part: &&&str| !part.contains(['=', '[', ']', '{', '}', '"']);
    if let Some(slip) = directives.iter().filter(is_bare).find(|part| part.parse::<LevelFilter>().is_err()) {
        return Err(format!("found {slip:?}, which is no level; {WANTED}"));
    }
    let joined = directives.join(",");
    let filter = EnvFilter::builder().with_regex(false).parse(&joined);
    let filter = filter.map_err(|fault| format!("found {text:?}: {fault}; {WANTED}"))?;
    Ok((filter, joined))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filter_of_the_start_comes_back_however_loose_it_is() {
        for start in ["lessor_server", "", "info ,lessor=debug", " warn"] {
            let (_layer, filter) = LogFilter::new(Some(start.to_owned()), "info");
            filter.set("off").expect(start);
            assert_eq!(filter.text(), "off");
            filter.set(start).expect(start);
            assert_eq!(filter.text(), start);
        }
    }

    #[test]
    fn a_filter_with_blanks_is_the_same_the_second_time() {
        for (said, text, level) in [
            ("info ", "info", LevelFilter::INFO),
            ("warn, lessor=debug", "warn,lessor=debug", LevelFilter::DEBUG),
            (" é=debug", "é=debug", LevelFilter::DEBUG),
        ] {
            let (_layer, filter) = LogFilter::new(None, "error");
            for _ in 0..2 {
                filter.set(said).expect(said);
                let most = filter.handle.with_current(EnvFilter::max_level_hint).expect("it is kept");
                assert_eq!((filter.text().as_str(), most), (text, Some(level)));
            }
        }
    }

    #[test]
    fn a_filter_is_taken_and_what_is_none_is_told() {
        for good in [
            "info",
            "DEBUG",
            "off",
            "lessor_server=debug",
            "warn,lessor_server::shell=trace",
            " info , lessor=debug ",
        ] {
            assert!(parse(good).is_ok(), "{good}");
        }
        for (bad, told) in [
            ("", "found nothing; wanted off, "),
            ("debgu", "found \"debgu\", which is no level; wanted off, "),
            ("info,lessor_server", "found \"lessor_server\", which is no level"),
            ("lessor_server=loud", "found \"lessor_server=loud\": "),
        ] {
            let fault = parse(bad).map(|_| ()).expect_err(bad);
            assert!(fault.starts_with(told), "{bad}: {fault}");
        }
    }
}
