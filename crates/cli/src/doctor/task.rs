//! The facts about one task, as its pages say them.

use std::collections::BTreeMap;

use serde_json::Value;

/// The facts that one task has said of itself.
#[derive(Clone, Debug, Default)]
pub(super) struct TaskFacts {
    pub(super) server: String,
    /// Why it does not answer, or not as a server of ours.
    pub(super) away: Option<String>,
    /// Why it is not healthy.
    pub(super) sick: Option<String>,
    /// Why it is not ready.
    pub(super) unready: Option<String>,
    /// Its `/status`.
    pub(super) status: Value,
    /// Its figures, by name with labels.
    pub(super) figures: BTreeMap<String, f64>,
    /// When it was asked, in seconds since 1970.
    pub(super) asked_at: f64,
    /// By how many seconds its date is ahead of that of this machine, to the second.
    pub(super) ahead_seconds: Option<f64>,
}

// === impl TaskFacts ===

impl TaskFacts {
    /// One of which it is only known that it does not answer.
    pub(super) fn away(server: &str, why: String) -> TaskFacts {
        TaskFacts { server: server.to_owned(), away: Some(why), ..TaskFacts::default() }
    }

    pub(super) fn answers(&self) -> bool {
        self.away.is_none()
    }

    /// The name of its node.
    pub(super) fn node(&self) -> &str {
        self.status["status"]["node"].as_str().unwrap_or("?")
    }

    pub(super) fn leads(&self) -> bool {
        self.status["leads"] == Value::Bool(true)
    }

    /// A figure without labels.
    pub(super) fn figure(&self, name: &str) -> Option<f64> {
        self.figures.get(name).copied()
    }

    /// The figures of that name, with their labels.
    pub(super) fn labelled<'a>(&'a self, name: &'a str) -> impl Iterator<Item = (&'a str, f64)> {
        self.figures.iter().filter_map(move |(full, &value)| {
            let labels = full.strip_prefix(name)?.strip_prefix('{')?.strip_suffix('}')?;
            Some((labels, value))
        })
    }

    /// Its resources.
    pub(super) fn resources(&self) -> &[Value] {
        self.status["status"]["resources"].as_array().map_or(&[], Vec::as_slice)
    }
}

/// The figures of a page for Prometheus.
pub(super) fn figures(page: &str) -> BTreeMap<String, f64> {
    let lines = page.lines().filter(|line| !line.starts_with('#'));
    let read = |line: &str| {
        let (name, value) = line.rsplit_once(' ')?;
        Some((name.to_owned(), value.parse().ok()?))
    };
    lines.filter_map(read).collect()
}
