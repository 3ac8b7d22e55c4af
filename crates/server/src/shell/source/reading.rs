//! Readings of the fields of a template that are numbers.

use std::time::Duration;

use lessor_yaml::{Fields, Notes, Reading};

use super::scalar;
use crate::repository::{Field, Problem, Template};

/// Notes that read numbers of templates.
pub(super) trait ReadNumbers {
    fn number<T>(
        &mut self,
        at: &Fields<'_>,
        field: Field,
        wanted: &str,
        check: impl FnOnce(f64) -> Result<T, Problem>,
    ) -> Reading<T>;

    /// A time as Doorman writes it, a number of seconds, or with its unit.
    fn seconds(&mut self, at: &Fields<'_>, field: Field, wanted: &str) -> Reading<Duration>;
}

impl ReadNumbers for Notes {
    fn number<T>(
        &mut self,
        at: &Fields<'_>,
        field: Field,
        wanted: &str,
        check: impl FnOnce(f64) -> Result<T, Problem>,
    ) -> Reading<T> {
        self.read(at, field.as_str(), |node| {
            let value = scalar::number(field.as_str(), node, wanted)?;
            check(value).map_err(|problem| problem.to_string())
        })
    }

    fn seconds(&mut self, at: &Fields<'_>, field: Field, wanted: &str) -> Reading<Duration> {
        self.read(at, field.as_str(), |node| {
            let value = scalar::seconds(field.as_str(), node, wanted)?;
            Template::check_seconds(field, value).map_err(|problem| problem.to_string())
        })
    }
}
