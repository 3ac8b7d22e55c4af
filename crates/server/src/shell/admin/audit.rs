//! The audit log: a line of JSON for every call of the admin port, whether it was refused or not.
//!
//! It stands in the log of the server under the target `lessor::audit`, and in a file of its own where there is one. An act that
//! changes something has two lines of one `call`: `begun`, which is in the file before anything is done, and what came of it,
//! which is there before that is answered. So there is no act without its record.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Map, Value};
use tracing::{error, info};

use super::operator::Operator;
use super::problem::ActProblem;
use crate::access::bearer;
use crate::shell::admin_calls::ActName;
use crate::shell::caller::Caller;
use crate::shell::source;
use crate::shell::wall_date::wall_date;

/// The audit log of a server.
#[derive(Debug)]
pub(in crate::shell) struct AuditLog {
    /// Absent: there is no file.
    path: Option<PathBuf>,
    file: Mutex<Written>,
    /// The turn to wait for the file, in a thread: if the disk hangs, one thread does.
    turn: Arc<tokio::sync::Mutex<()>>,
    calls: AtomicU64,
}

/// The file as it stands.
#[derive(Debug, Default)]
struct Written {
    /// Absent after a fault: it is opened anew for the next line.
    file: Option<File>,
    /// The last line may not have been written to its end.
    is_torn: bool,
}

/// A call, as it is written down.
pub(super) struct AuditEntry {
    /// The number of the call in this process.
    call: u64,
    identity: String,
    caller: Caller,
    pub(super) act: ActName,
    pub(super) arguments: Value,
    /// That it was begun is written down: so must be what comes of it.
    pub(super) has_begun: bool,
    /// Calls of the same identity before it that are not written down.
    pub(super) left_out: u64,
}

// === impl AuditLog ===

impl AuditLog {
    /// Opens the file, if there is to be one.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn open(path: Option<PathBuf>) -> io::Result<AuditLog> {
        let file = path.as_deref().map(Written::open).transpose()?;
        let file = Mutex::new(file.unwrap_or_default());
        Ok(AuditLog { path, file, turn: Arc::default(), calls: AtomicU64::new(0) })
    }

    /// Has the file opened anew, by a task: the disk may be slow.
    pub(in crate::shell) fn reopen_soon(self: &Arc<AuditLog>) {
        let audit = Arc::clone(self);
        tokio::spawn(async move { audit.in_turn(AuditLog::reopen).await });
    }

    /// Writes a line, as [`record`](AuditLog::record) does, and keeps no other task waiting.
    ///
    /// # Errors
    /// When it cannot be written to the file.
    pub(super) async fn write(self: &Arc<AuditLog>, line: String) -> io::Result<()> {
        self.in_turn(move |audit| audit.record(&line)).await
    }

    /// Works with the file when nobody else does.
    async fn in_turn<T: Send + 'static>(
        self: &Arc<AuditLog>,
        work: impl FnOnce(&AuditLog) -> T + Send + 'static,
    ) -> T {
        let turn = Arc::clone(&self.turn).lock_owned().await;
        let audit = Arc::clone(self);
        let worked = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            work(&audit)
        });
        worked.await.expect("working with the audit log does not panic")
    }

    /// Opens the file anew: the one before may have been moved away.
    fn reopen(&self) {
        let Some(path) = &self.path else { return };
        let mut written = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        match Written::open(path) {
            Ok(opened) => *written = opened,
            Err(fault) => {
                written.file = None;
                error!(path = %path.display(), %fault, "the audit log cannot be written: acts are refused");
            }
        }
    }

    /// The number of another call.
    pub(super) fn number(&self) -> u64 {
        self.calls.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Writes a line: when this returns it is there, also after a crash of the machine.
    ///
    /// # Errors
    /// When it cannot be written to the file.
    fn record(&self, line: &str) -> io::Result<()> {
        info!(target: "lessor::audit", "{line}");
        let Some(path) = &self.path else { return Ok(()) };
        let mut written = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let outcome = written.write(path, line);
        if outcome.is_err() {
            written.file = None;
        }
        outcome.map_err(|fault| io::Error::new(fault.kind(), format!("{}: {fault}", path.display())))
    }
}

// === impl Written ===

impl Written {
    /// Opens a file. Another process may have died while it wrote the last line.
    fn open(path: &Path) -> io::Result<Written> {
        let file = append(path)?;
        let mut last = [b'\n'];
        if let Some(at) = file.metadata()?.len().checked_sub(1) {
            file.read_at(&mut last, at)?;
        }
        Ok(Written { file: Some(file), is_torn: last != [b'\n'] })
    }

    fn write(&mut self, path: &Path, line: &str) -> io::Result<()> {
        // A file that nobody can find any more keeps nothing.
        match &self.file {
            Some(file) if file.metadata()?.nlink() > 0 => {}
            _ => *self = Written::open(path)?,
        }
        let Some(file) = &mut self.file else { return Err(io::ErrorKind::NotFound.into()) };
        let start = if self.is_torn { "\n" } else { "" };
        self.is_torn = true;
        file.write_all(format!("{start}{line}\n").as_bytes())?;
        file.sync_data()?;
        self.is_torn = false;
        Ok(())
    }
}

/// Opens a file to append to, which its owner alone may read if it is made here. A pipe would keep everybody waiting.
fn append(path: &Path) -> io::Result<File> {
    match std::fs::metadata(path) {
        Ok(found) => source::check_kind(found.file_type())?,
        Err(fault) if fault.kind() == io::ErrorKind::NotFound => {}
        Err(fault) => return Err(fault),
    }
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true).mode(0o600);
    options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
    let file = options.open(path)?;
    source::check_kind(file.metadata()?.file_type())?;
    Ok(file)
}

// === impl AuditEntry ===

impl AuditEntry {
    pub(super) fn new(call: u64, operator: &Operator, act: ActName) -> AuditEntry {
        AuditEntry {
            call,
            identity: operator.identity().to_owned(),
            caller: operator.caller.clone(),
            act,
            arguments: Value::Object(Map::new()),
            has_begun: false,
            left_out: 0,
        }
    }

    /// The line that says what has become of it.
    pub(super) fn line(&self, outcome: &str, problem: Option<&ActProblem>) -> String {
        let date = wall_date();
        let mut line = self.caller.origin();
        let mut put = |name: &str, value: Value| drop(line.insert(name.to_owned(), value));
        put("time", humantime::format_rfc3339_millis(date).to_string().into());
        put("call", self.call.into());
        put("identity", self.identity.as_str().into());
        put("port", "admin".into());
        put("act", self.act.as_str().into());
        put("arguments", self.arguments.clone());
        put("outcome", outcome.into());
        if let Some(problem) = problem {
            put("status", problem.status.into());
            put("detail", problem.detail.as_str().into());
        }
        if self.left_out > 0 {
            put("left_out", self.left_out.into());
        }
        safe(&Value::Object(line).to_string())
    }
}

/// The line as anything may show it: what would steer a terminal is escaped, and tokens that somebody has put where they do
/// not belong are cut off.
pub(super) fn safe(line: &str) -> String {
    let mut shown = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find(bearer::PREFIX) {
        let (before, token) = rest.split_at(at + bearer::PREFIX.len());
        shown.push_str(before);
        let is_token = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '=');
        let end = token.find(|c| !is_token(c)).unwrap_or(token.len());
        shown.push_str(if end > 0 { "…" } else { "" });
        rest = &token[end..];
    }
    shown.push_str(rest);
    let steers = |c: char| {
        c.is_control()
            || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if !shown.contains(steers) {
        return shown;
    }
    // JSON has none of them outside of its texts.
    shown.chars().fold(String::new(), |mut text, c| {
        match steers(c) {
            true => text.push_str(&format!("\\u{:04x}", u32::from(c))),
            false => text.push(c),
        }
        text
    })
}

#[cfg(test)]
mod tests;
