//! Reads a workload from two tables: `NAME.trace.csv` or `NAME.trace.csv.gz` with a row for every second in which a want
//! changes, and `NAME.faults.csv` beside it.
//!
//! ```text
//! t,client:1,client:2,client:3,client:4,client:5        t,kind,target
//! 0,102.356,104.197,115.388,110.1,111.111               120,lose,root
//! 10,103.733,98.731,126.879,111.303,106.188             140,restore,root
//! ```
//!
//! A table is taken whole or refused with the first thing that is wrong in it.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;

use super::{FaultEvent, Plan, Scenario, ScheduledFault, WantsChange, Workload};

/// Why there is no workload.
#[derive(Debug, thiserror::Error)]
pub enum BadTrace {
    /// A file cannot be opened or read.
    #[error("{file}: {source}")]
    Unreadable {
        /// The file.
        file: String,
        /// Why.
        source: io::Error,
    },
    /// Something in a file is not what it should be.
    #[error("{file}:{line}: {field}: found {found}, wanted {wanted}")]
    Field {
        /// The file.
        file: String,
        /// The line, from 1.
        line: usize,
        /// The column by its name, or what the whole line is.
        field: String,
        /// The text that stands there.
        found: String,
        /// A description of what should stand there.
        wanted: String,
    },
    /// The name of the file does not tell where the faults are.
    #[error(
        "{file}: the name of a trace ends with .trace.csv or .trace.csv.gz, so that its mishaps are found beside it"
    )]
    Unnamed {
        /// The file.
        file: String,
    },
}

/// One table, line by line.
struct Table<'a, R> {
    file: &'a str,
    lines: io::Lines<R>,
    line: usize,
}

/// The first bytes of everything that gzip writes.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Reads the trace at `path`, plain or gzipped, and the faults beside it.
///
/// # Errors
/// When a file cannot be read or does not fit the scenario; names the file, the line and the field.
pub fn open(path: &Path, scenario: Scenario, seed: u64) -> Result<Workload, BadTrace> {
    let plan = scenario.plan();
    let beside = faults_beside(path)?;
    let changes = read_wants(&path.display().to_string(), reader(path)?, &plan)?;
    let faults = read_faults(&beside.display().to_string(), reader(&beside)?, &plan)?;
    Ok(Workload { scenario, plan, seed, changes, faults })
}

/// Reads the table of wants, already unpacked; errors call it `file`.
///
/// # Errors
/// When a column is missing or too many, a second is not in order or beyond the end, or a want is not a number.
pub fn read_wants(file: &str, text: impl BufRead, plan: &Plan) -> Result<Vec<WantsChange>, BadTrace> {
    let names: Vec<&str> = plan.clients.iter().map(|client| client.name.as_str()).collect();
    let mut table = Table { file, lines: text.lines(), line: 0 };
    table.header(&names)?;
    let mut changes: Vec<WantsChange> = Vec::new();
    while let Some(row) = table.row()? {
        let (second, cells) = table.cells(&row, names.len())?;
        let wanted = match changes.last() {
            None => 0..=0,
            Some(last) => last.at_seconds + 1..=plan.seconds,
        };
        let at_seconds = table.second(second, wanted)?;
        let wants = names.iter().zip(cells).map(|(name, cell)| table.wants(name, cell));
        changes.push(WantsChange { at_seconds, wants: wants.collect::<Result<_, _>>()? });
    }
    match changes.is_empty() {
        true => Err(table.bad("row", "the end of the file", "at least the wants at 0 s")),
        false => Ok(changes),
    }
}

/// Reads the table of faults; errors call it `file`.
///
/// # Errors
/// When a second is not in order or beyond the end, a kind is unknown, or a target is not in the plan.
pub fn read_faults(file: &str, text: impl BufRead, plan: &Plan) -> Result<Vec<ScheduledFault>, BadTrace> {
    let mut table = Table { file, lines: text.lines(), line: 0 };
    table.header(&["kind", "target"])?;
    let mut faults: Vec<ScheduledFault> = Vec::new();
    while let Some(row) = table.row()? {
        let (second, cells) = table.cells(&row, 2)?;
        let earliest = faults.last().map_or(0, |last| last.at_seconds);
        let at_seconds = table.second(second, earliest..=plan.seconds)?;
        let event = table.event(cells[0], cells[1], plan)?;
        faults.push(ScheduledFault { at_seconds, event });
    }
    Ok(faults)
}

/// `X.faults.csv` for `X.trace.csv` and `X.trace.csv.gz`.
fn faults_beside(path: &Path) -> Result<PathBuf, BadTrace> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    match name.strip_suffix(".trace.csv") {
        Some(name) => Ok(path.with_file_name(OsString::from(format!("{name}.mishaps.csv")))),
        None => Err(BadTrace::Unnamed { file: path.display().to_string() }),
    }
}

fn reader(path: &Path) -> Result<Box<dyn BufRead>, BadTrace> {
    let open = || -> io::Result<Box<dyn BufRead>> {
        let mut file = BufReader::new(File::open(path)?);
        if file.fill_buf()?.starts_with(&GZIP) {
            return Ok(Box::new(BufReader::new(MultiGzDecoder::new(file))));
        }
        Ok(Box::new(file))
    };
    open().map_err(|source| BadTrace::Unreadable { file: path.display().to_string(), source })
}

// === impl Table ===

impl<R: BufRead> Table<'_, R> {
    /// The next line that is not blank.
    fn row(&mut self) -> Result<Option<String>, BadTrace> {
        for line in self.lines.by_ref() {
            self.line += 1;
            let line = line.map_err(|source| BadTrace::Unreadable { file: self.file.to_owned(), source })?;
            if !line.trim().is_empty() {
                return Ok(Some(line));
            }
        }
        Ok(None)
    }

    /// Takes the first line, which names the columns: `t`, and these.
    fn header(&mut self, columns: &[&str]) -> Result<(), BadTrace> {
        let row = self.row()?.unwrap_or_default();
        self.line = self.line.max(1);
        let found: Vec<&str> = row.split(',').map(str::trim).collect();
        let wanted = || ["t"].into_iter().chain(columns.iter().copied());
        if let Some((index, name)) =
            wanted().enumerate().find(|(index, name)| found.get(*index) != Some(name))
        {
            let there = found.get(index).map_or("nothing".to_owned(), |there| format!("{there:?}"));
            return Err(self.bad(format!("column {}", index + 1), there, format!("{name:?}")));
        }
        match found.get(columns.len() + 1) {
            Some(more) => {
                let field = format!("column {}", columns.len() + 2);
                Err(self.bad(field, format!("{more:?}"), format!("{} columns", columns.len() + 1)))
            }
            None => Ok(()),
        }
    }

    /// Splits a row into its second and `count` cells.
    fn cells<'r>(&self, row: &'r str, count: usize) -> Result<(&'r str, Vec<&'r str>), BadTrace> {
        let mut cells = row.split(',').map(str::trim);
        let second = cells.next().unwrap_or_default();
        let cells: Vec<&str> = cells.collect();
        if cells.len() != count {
            let found = format!("{} fields", cells.len() + 1);
            return Err(self.bad("row", found, format!("{}, one for each column", count + 1)));
        }
        Ok((second, cells))
    }

    fn second(&self, cell: &str, wanted: std::ops::RangeInclusive<u64>) -> Result<u64, BadTrace> {
        cell.parse().ok().filter(|second| wanted.contains(second)).ok_or_else(|| {
            let wanted = match (*wanted.start(), *wanted.end()) {
                (0, 0) => "0 in the first row".to_owned(),
                (from, to) if from > to => format!("no row after the last second, {to}"),
                (from, to) => format!("a whole number of seconds from {from} to {to}"),
            };
            self.bad("t", format!("{cell:?}"), wanted)
        })
    }

    fn wants(&self, client: &str, cell: &str) -> Result<f64, BadTrace> {
        let number = cell.parse().ok().filter(|wants: &f64| wants.is_finite() && *wants >= 0.0);
        number.ok_or_else(|| self.bad(client, format!("{cell:?}"), "a finite number of at least 0"))
    }

    fn event(&self, kind: &str, target: &str, plan: &Plan) -> Result<FaultEvent, BadTrace> {
        let client = || {
            let client = plan.clients.iter().position(|client| client.name == target);
            client.ok_or_else(|| self.bad("target", format!("{target:?}"), "the name of a client"))
        };
        let job = || {
            let job = plan.jobs.iter().position(|job| job.name == target);
            job.ok_or_else(|| self.bad("target", format!("{target:?}"), "the name of a job"))
        };
        match kind {
            "spike" => Ok(FaultEvent::Spike { client: client()? }),
            "lose" => Ok(FaultEvent::Lose { job: job()? }),
            "restore" => Ok(FaultEvent::Restore { job: job()? }),
            "elect" => Ok(FaultEvent::Elect { job: job()? }),
            "noelect" => Ok(FaultEvent::NoElect { job: job()? }),
            _ => Err(self.bad("kind", format!("{kind:?}"), "spike, lose, restore, elect or noelect")),
        }
    }

    fn bad(&self, field: impl Into<String>, found: impl Into<String>, wanted: impl Into<String>) -> BadTrace {
        BadTrace::Field {
            file: self.file.to_owned(),
            line: self.line,
            field: field.into(),
            found: found.into(),
            wanted: wanted.into(),
        }
    }
}

#[cfg(test)]
mod tests;
