//! Arrivals from a table.

use std::io::{self, BufRead};
use std::time::Duration;

use super::arrival::{Arrival, MOST};

/// Why a table cannot be taken.
#[derive(Debug, thiserror::Error)]
pub enum BadRow {
    /// It cannot be read.
    #[error("{0}")]
    Unreadable(#[from] io::Error),
    /// Something in it is not what it should be.
    #[error("{line}: {field}: found {found:?}, wanted {wanted}")]
    Field {
        /// The line, from 1.
        line: usize,
        /// The column.
        field: &'static str,
        /// The text that stands there.
        found: String,
        /// A description of what should stand there.
        wanted: &'static str,
    },
}

const COPIES: &str = "a whole number from 1 to 4294967295";
const MIN: &str = "a whole number from 0 to that of copies";

/// Reads a row a request, in the order of their times: when it is made, in seconds; and if they stand there the hits that it
/// asks for and the least that is of use, or else `copies` and `min`. A first row that begins with `t` names the columns.
///
/// # Errors
/// When a field is not what it should be, or there are more than [`MOST`] rows.
pub fn read(text: impl BufRead, copies: u32, min: u32) -> Result<Vec<Arrival>, BadRow> {
    let mut arrivals: Vec<Arrival> = Vec::new();
    for (row, line) in text.lines().zip(1..) {
        let row = row?;
        let is_head = line == 1 && row.trim_start().starts_with('t');
        if is_head || row.trim().is_empty() {
            continue;
        }
        let bad = |field, found: &str, wanted| BadRow::Field { line, field, found: found.to_owned(), wanted };
        if arrivals.len() == MOST {
            return Err(bad("row", row.trim(), "the end: there are a million already"));
        }
        let mut cells = row.split(',').map(str::trim);
        let time = cells.next().unwrap_or_default();
        let at = nanos(time).ok_or_else(|| bad("t", time, "a finite number of seconds of at least 0"))?;
        if arrivals.last().is_some_and(|last| at < last.at) {
            return Err(bad("t", time, "a time not before that of the row above"));
        }
        let copies = match cells.next() {
            Some(cell) => cell.parse().ok().filter(|n| *n > 0).ok_or_else(|| bad("copies", cell, COPIES))?,
            None => copies,
        };
        let min = match cells.next() {
            Some(cell) => cell.parse().ok().filter(|n| *n <= copies).ok_or_else(|| bad("min", cell, MIN))?,
            None => min.min(copies),
        };
        if let Some(cell) = cells.next() {
            return Err(bad("row", cell, "no fourth column"));
        }
        arrivals.push(Arrival { at, copies, min });
    }
    Ok(arrivals)
}

fn nanos(seconds: &str) -> Option<u64> {
    let time = Duration::try_from_secs_f64(seconds.parse().ok()?).ok()?;
    u64::try_from(time.as_nanos()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_a_request() {
        let rows = "t,copies,min\n0\n0.5, 7\n\n0.5,7,3\n";
        let found = read(rows.as_bytes(), 4, 2).unwrap();
        let found: Vec<_> = found.iter().map(|one| (one.at, one.copies, one.min)).collect();
        assert_eq!(found, [(0, 4, 2), (500_000_000, 7, 2), (500_000_000, 7, 3)]);
    }

    #[test]
    fn a_wrong_field_is_told_with_its_place() {
        for (rows, told) in [
            ("x", "1: t: found \"x\", wanted a finite number of seconds of at least 0"),
            ("t\n-1", "2: t: found \"-1\", wanted a finite number of seconds of at least 0"),
            ("nan", "1: t: found \"nan\", wanted a finite number of seconds of at least 0"),
            ("2\n1", "2: t: found \"1\", wanted a time not before that of the row above"),
            ("1,0", "1: copies: found \"0\", wanted a whole number from 1 to 4294967295"),
            ("1,2,3", "1: min: found \"3\", wanted a whole number from 0 to that of copies"),
            ("1,2,1,9", "1: row: found \"9\", wanted no fourth column"),
        ] {
            assert_eq!(read(rows.as_bytes(), 1, 1).unwrap_err().to_string(), told);
        }
    }
}
