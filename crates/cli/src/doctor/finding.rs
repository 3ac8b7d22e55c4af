//! A finding: what is not as it should be, how bad that is, and what to do.

use serde::Serialize;

/// The severity of a finding.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Severity {
    /// It works, and may not for long, or not as it was meant.
    Warning,
    /// Somebody is not served, or what was promised does not hold.
    Fault,
}

/// Something that is not as it should be.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(super) struct Finding {
    pub(super) severity: Severity,
    /// The thing that was found, and where.
    pub(super) what: String,
    /// The thing to do about it.
    #[serde(rename = "do")]
    pub(super) remedy: String,
}

/// A check, with what it has found: nothing if all is well.
#[derive(Clone, Debug, Serialize)]
pub(super) struct CheckOutcome {
    pub(super) check: String,
    pub(super) findings: Vec<Finding>,
}

// === impl Severity ===

impl Severity {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Severity::Warning => "warning",
            Severity::Fault => "fault",
        }
    }
}

// === impl Finding ===

impl Finding {
    pub(super) fn fault(what: impl Into<String>, remedy: impl Into<String>) -> Finding {
        Finding { severity: Severity::Fault, what: what.into(), remedy: remedy.into() }
    }

    pub(super) fn warning(what: impl Into<String>, remedy: impl Into<String>) -> Finding {
        Finding { severity: Severity::Warning, what: what.into(), remedy: remedy.into() }
    }
}

// === impl CheckOutcome ===

impl CheckOutcome {
    /// A line, and two more for each finding.
    pub(super) fn display(&self) -> String {
        if self.findings.is_empty() {
            return format!("ok       {}\n", self.check);
        }
        let lines = self.findings.iter().map(|Finding { severity, what, remedy }| {
            format!("{:<8} {}: {what}\n         -> {remedy}\n", severity.as_str(), self.check)
        });
        lines.collect()
    }
}
