//! The record of an override: all that is written down of it, at etcd and in answers.

use lessor_proto::Glob;
use lessor_proto::glob::BadGlob;
use serde::{Deserialize, Serialize};

use super::act::OverrideAct;
use crate::repository::{Problem, Template};
use crate::revision::{BadRevision, FORM, RevisionAuthor, decode};

/// An override.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Override {
    /// The form in which it is written.
    pub form: u32,
    /// The name by which it can be lifted.
    pub id: String,
    /// The thing that it does.
    #[serde(flatten)]
    pub act: OverrideAct,
    /// Why.
    pub reason: String,
    /// The author.
    pub by: RevisionAuthor,
    /// When it was made, by the clock of its author.
    pub at: String,
    /// The time for which it is in force, in seconds.
    #[serde(rename = "for_seconds")]
    pub seconds: u64,
}

/// Why an override cannot be in force.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum BadOverride {
    /// There are too many already.
    #[error(
        "{} overrides are in force; wanted fewer: some end by themselves, others can be lifted",
        super::Overrides::MOST
    )]
    Many,
    /// A field holds what it must not.
    #[error("{field}: {found}; wanted {wanted}")]
    Field {
        /// The field.
        field: &'static str,
        /// The content that it has.
        found: String,
        /// The content that it should have.
        wanted: &'static str,
    },
    /// A name is a glob, and none that makes sense.
    #[error("{field} {text:?}: {bad}")]
    Glob {
        /// The field.
        field: &'static str,
        /// The glob.
        text: String,
        /// Why.
        bad: BadGlob,
    },
    /// The capacity cannot be one.
    #[error("{0}")]
    Capacity(Problem),
}

/// The most bytes of a name, and of a reason.
const MOST_NAME: usize = 1_024;
const MOST_REASON: usize = 2_048;
/// The most bytes of an id.
const MOST_ID: usize = 64;

// === impl Override ===

impl Override {
    /// The longest time for which one is in force, in seconds: a day.
    pub const LONGEST: u64 = 86_400;
    /// The most bytes of the record of one.
    pub const MOST_BYTES: usize = 16 << 10;

    /// One that freezes nothing yet, for a reason; the rest is to be filled in.
    #[must_use]
    pub fn for_reason(reason: &str) -> Override {
        Override {
            form: FORM,
            id: String::new(),
            act: OverrideAct::Freeze { resource: String::new() },
            reason: reason.to_owned(),
            by: RevisionAuthor::default(),
            at: String::new(),
            seconds: 0,
        }
    }

    /// The text that stands at its key.
    #[must_use]
    pub fn encode(&self) -> String {
        serde_json::to_string(self).expect("strings and numbers")
    }

    /// The override that stands at `key`, under its last part.
    ///
    /// # Errors
    /// When it is none, does not hold together, or is of a later form or kind.
    pub fn decode(key: &str, bytes: &[u8]) -> Result<Override, BadRevision> {
        if bytes.len() > Override::MOST_BYTES {
            let (found, wanted) =
                (format!("{} bytes", bytes.len()), format!("at most {}", Override::MOST_BYTES));
            return Err(BadRevision::new(key, found, wanted));
        }
        let it: Override = decode(key, "an override", bytes)?;
        it.check()
            .map_err(|bad| BadRevision::new(key, bad.to_string(), "an override that holds together"))?;
        match key.rsplit('/').next() == Some(it.id.as_str()) {
            true => Ok(it),
            false => Err(BadRevision::new(key, format!("override {:?}", it.id), "the one of that key")),
        }
    }

    /// The globs of the resources and of the holders that it is about.
    ///
    /// # Errors
    /// When it does not hold together.
    pub fn check(&self) -> Result<[Option<Glob>; 2], BadOverride> {
        let bad = |field, found: String, wanted| Err(BadOverride::Field { field, found, wanted });
        let is_id = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        if !(1..=MOST_ID).contains(&self.id.len()) || !self.id.bytes().all(is_id) {
            return bad("id", format!("{:?}", self.id), "1 to 64 letters, digits and hyphens");
        }
        if self.reason.trim().is_empty() || self.reason.len() > MOST_REASON {
            return bad("reason", format!("{} bytes", self.reason.len()), "1 to 2048 bytes that say why");
        }
        if !(1..=Override::LONGEST).contains(&self.seconds) {
            return bad("for", format!("{} s", self.seconds), "a time from 1s to 24h");
        }
        if let OverrideAct::Cap { capacity, .. } = self.act {
            Template::check_capacity(capacity).map_err(BadOverride::Capacity)?;
        }
        if let OverrideAct::DrainDomain { domain, .. } = &self.act {
            glob("domain", Some(domain))?;
        }
        let holder = if matches!(self.act, OverrideAct::DrainNode { .. }) { "node" } else { "client" };
        Ok([glob("resource", self.act.resource())?, glob(holder, self.act.holder())?])
    }
}

fn glob(field: &'static str, text: Option<&str>) -> Result<Option<Glob>, BadOverride> {
    let Some(text) = text else { return Ok(None) };
    if text.is_empty() || text.len() > MOST_NAME || text.chars().any(char::is_control) {
        let found = format!("{:?}", text.chars().take(80).collect::<String>());
        let wanted = "1 to 1024 bytes of text without control characters";
        return Err(BadOverride::Field { field, found, wanted });
    }
    let parsed = Glob::new(text).map_err(|bad| BadOverride::Glob { field, text: text.to_owned(), bad })?;
    Ok(Some(parsed))
}
