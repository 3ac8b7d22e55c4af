//! The levers of the program around a server, which an operator moves through it.

use std::fmt;
use std::pin::Pin;

/// The levers of the program around a server: it has the files, and writes the log.
pub trait Levers: fmt::Debug + Send + Sync {
    /// Reads all files again, and puts in force what can be used.
    fn reload(&self) -> Pin<Box<dyn Future<Output = Vec<ReadFile>> + Send + '_>>;

    /// The filter of the log.
    fn log_filter(&self) -> String;

    /// Puts another filter of the log in force.
    ///
    /// # Errors
    /// When it is none, with what was found and what was wanted; the one before stays in force.
    fn set_log_filter(&self, filter: &str) -> Result<(), String>;
}

/// The outcome of reading a file again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReadFile {
    /// The kind of what is in it, as `templates`.
    pub what: &'static str,
    /// The file.
    pub file: String,
    /// The version that is in force now, or why the one before stays; absent where nobody counts them.
    pub outcome: Result<Option<u64>, String>,
}
