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
use std::time::SystemTime;

use lessor_client::internals::clock;
use serde_json::{Map, Value};
use tracing::{error, info};

use super::operator::Operator;
use super::problem::ActProblem;
use crate::access::bearer;
use crate::shell::admin_calls::ActName;
use crate::shell::caller::Caller;
use crate::shell::source;

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
        let date = SystemTime::UNIX_EPOCH + clock::wall().since_epoch;
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
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn nothing_in_a_line_steers_a_terminal_or_begins_another() {
        let name = "a\n{\"outcome\":\"done\"}\u{1b}[2J\u{9b}31m\u{7f}\u{202e}\u{2028}";
        let line = safe(&serde_json::json!({ "holder": name }).to_string());
        assert!(
            !line.contains(|c: char| c.is_control()) && !line.contains(['\u{202e}', '\u{2028}']),
            "{line}"
        );
        let read: Value = serde_json::from_str(&line).expect("still JSON");
        assert_eq!(read["holder"], name, "and nothing is lost");
    }

    #[test]
    fn a_token_where_it_does_not_belong_is_cut_off() {
        let line = safe(r#"{"filter":"lessor1.AAAA-bbbb_cc=debug","holder":"lessor1."}"#);
        assert_eq!(line, r#"{"filter":"lessor1.…","holder":"lessor1."}"#);
    }

    #[test]
    fn a_line_is_written_to_the_end_of_a_file_that_its_owner_alone_reads() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("audit");
        let log = AuditLog::open(Some(path.clone())).expect("it is made");
        let mode = std::fs::metadata(&path).expect("it is there").mode();
        assert_eq!(mode & 0o777, 0o600);
        let written = |path: &Path| std::fs::read_to_string(path).expect("it is there");
        log.record("one").expect("it is written");
        assert_eq!(written(&path), "one\n");
        // Moved away, and opened anew; and removed, which nobody has said.
        let moved = directory.path().join("audit.1");
        std::fs::rename(&path, &moved).expect("it is moved");
        log.record("two").expect("it is written");
        log.reopen();
        log.record("three").expect("it is written");
        assert_eq!((written(&moved), written(&path)), ("one\ntwo\n".into(), "three\n".into()));
        std::fs::remove_file(&path).expect("it is removed");
        log.record("four").expect("it is written");
        assert_eq!(written(&path), "four\n");
    }

    #[test]
    fn a_line_that_another_process_has_not_ended_spoils_no_other() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("audit");
        let tear = || std::fs::write(&path, "whole\nhal").expect("it is written");
        let written = || std::fs::read_to_string(&path).expect("it is there");
        tear();
        let log = AuditLog::open(Some(path.clone())).expect("it is there");
        log.record("one").expect("it is written");
        assert_eq!(written(), "whole\nhal\none\n");
        tear();
        log.reopen();
        log.record("two").expect("it is written");
        log.record("three").expect("it is written");
        assert_eq!(written(), "whole\nhal\ntwo\nthree\n");
    }

    #[test]
    fn a_disk_that_hangs_takes_one_thread_and_no_task() {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().max_blocking_threads(2).build().expect("a runtime");
        let directory = tempfile::tempdir().expect("a directory");
        let log = AuditLog::open(Some(directory.path().join("audit"))).expect("it is made");
        let log = Arc::new(log);
        let hangs = log.file.lock().expect("nobody panics");
        let calls: Vec<_> = (0..8)
            .map(|call| {
                let log = Arc::clone(&log);
                runtime.spawn(async move { log.write(call.to_string()).await })
            })
            .collect();
        runtime.block_on(async {
            log.reopen_soon();
            // All of them have got as far as they get.
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
            let other = tokio::task::spawn_blocking(|| 7);
            let other = tokio::time::timeout(Duration::from_secs(30), other).await;
            assert_eq!(other.expect("there is a thread for others").expect("it does not panic"), 7);
        });
        drop(hangs);
        runtime.block_on(async {
            for call in calls {
                call.await.expect("it does not panic").expect("it is written");
            }
        });
    }

    #[test]
    fn what_is_no_regular_file_is_refused_and_tried_again() {
        let directory = tempfile::tempdir().expect("a directory");
        let fault = AuditLog::open(Some(directory.path().to_owned())).expect_err("it is a directory");
        assert_eq!(fault.to_string(), "is a directory; wanted a regular file");
        let path = directory.path().join("audit");
        let log = AuditLog::open(Some(path.clone())).expect("it is made");
        std::fs::remove_file(&path).expect("it is removed");
        std::fs::create_dir(&path).expect("something else takes its place");
        log.reopen();
        let fault = log.record("lost").expect_err("there is no file").to_string();
        assert!(fault.ends_with("is a directory; wanted a regular file"), "{fault}");
        std::fs::remove_dir(&path).expect("it is removed");
        log.record("kept").expect("it is opened again");
        assert_eq!(std::fs::read_to_string(&path).expect("it is there"), "kept\n");
    }
}
