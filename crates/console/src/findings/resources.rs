//! Findings about resources.

use lessor_server::node::ResourceRow;
use lessor_server::resource::ResourceStatus;

use super::{Finding, Severity, in_words, number};

/// The part of the capacity that is missing from which on a full resource is worth a word, and what is full.
const SHORT: f64 = 0.05;
const FULL: f64 = 0.98;
/// Wants from which on they are of all that there is, as those of what is reserved.
const ALL: f64 = 1e12;
/// The time of saturation from which on it is more than a moment.
const LONG_SATURATED: f64 = 3_600.0;

/// All that is found.
pub(super) fn findings(rows: &[ResourceRow]) -> Vec<Finding> {
    rows.iter().flat_map(of_row).collect()
}

fn of_row(row: &ResourceRow) -> Vec<Finding> {
    let mut found = of_promise(row);
    found.extend(of_use(row));
    found.into_iter().map(|finding| finding.about(&row.resource.resource)).collect()
}

/// The findings about what may be out.
fn of_promise(row: &ResourceRow) -> Vec<Finding> {
    let (status, mut found) = (&row.resource, Vec::new());
    if status.overcommitment > 0.0 {
        let what =
            format!("{} more is out than may be, and no cut explains it.", number(status.overcommitment));
        let todo = "This must never be: keep the logs, and tell whoever looks after Lessor.";
        found.push(Finding::new(Severity::Fault, "overcommitted", what, todo));
    }
    if status.template.is_none() {
        let what = format!("No template covers it any more, and {} clients hold it.", status.clients);
        let todo = "Add a template, or let the clients know: they are refused when their leases end.";
        found.push(Finding::new(Severity::Warning, "no_template", what, todo));
    }
    if row.lease_ends_in_seconds.is_some_and(|seconds| seconds <= 0.0) && status.clients > 0 {
        let todo = "Look whether the node above runs and has a template for it.";
        let what = "There is no lease from the node above, so nothing can be granted.";
        found.push(Finding::new(Severity::Fault, "no_lease_above", what, todo));
    }
    if status.in_debt {
        let over = (row.outstanding - status.capacity).max(0.0);
        let what = format!(
            "A cut is not through yet: {} is out above the new capacity. Nobody grows meanwhile.",
            number(over)
        );
        found.push(Finding::new(
            Severity::Note,
            "in_debt",
            what,
            "Wait; it is over after a lease at the latest.",
        ));
    }
    if let Some(of) = status.resource.strip_suffix("|beside").filter(|_| status.unenforced >= 1.0) {
        let what = format!("It is a second limit that is tried beside {of:?}, and kept to by nobody.");
        let todo = "`lessor promote` puts it in force when the counts of clients are as wanted.";
        found.push(Finding::new(Severity::Note, "tried", what, todo));
    } else if status.unenforced > 0.0 {
        let who = if status.unenforced >= 1.0 { "All clients let" } else { "Some clients let" };
        let what = format!(
            "{who} everything pass and count what they would refuse: more may be used than there is.{}",
            would_refuse(status)
        );
        let todo = "Set enforce to true when the figures are as wanted, or wait for the override to end.";
        found.push(Finding::new(Severity::Warning, "unenforced", what, todo));
    }
    if status.domains_unenforced {
        let what = "What policies of its domains refuse is granted, and counted.";
        let todo = "Set enforce to true in its domains when the figures are as wanted.";
        found.push(Finding::new(Severity::Note, "domains_unenforced", what, todo));
    }
    if status.learning {
        let what = format!(
            "It learns what is out from before: newcomers get nothing for {}.",
            in_words(status.learning_ends_in_seconds)
        );
        let todo = "Wait. With --state-dir or --etcd a start knows what is out.";
        found.push(Finding::new(Severity::Note, "learning", what, todo));
    }
    if row.ghost > 0.0 {
        let ends = in_words(row.ghost_ends_in_seconds);
        let what = format!(
            "{} may be out under earlier leaders to nobody knows whom, for {ends} at most.",
            number(row.ghost)
        );
        found.push(Finding::new(
            Severity::Note,
            "ghost",
            what,
            "Wait; holders that show their leases end it earlier.",
        ));
    }
    found
}

/// A sentence about what leases would have refused of what was let pass.
fn would_refuse(status: &ResourceStatus) -> String {
    let (asked, passed) = (status.unenforced_asked as f64, status.unenforced_passed as f64);
    let mut said = match status.unenforced_asked {
        0 => String::new(),
        _ => format!(
            " Of {} units they would have refused {}, {:.1} %.",
            number(asked),
            number(passed),
            100.0 * passed / asked
        ),
    };
    if status.unenforced_silent > 0 {
        said.push_str(&format!(
            " {} have said nothing yet, as earlier versions do.",
            status.unenforced_silent
        ));
    }
    said
}

/// The findings about who uses it.
fn of_use(row: &ResourceRow) -> Vec<Finding> {
    let (status, mut found) = (&row.resource, Vec::new());
    let is_full = status.capacity > 0.0 && row.outstanding >= FULL * status.capacity;
    let missing = status.wants - status.capacity;
    if is_full && missing > SHORT * status.capacity && status.wants < ALL {
        let wanted = format!("{:.0}", 100.0 * missing / status.capacity);
        let saturated = row.pressure.saturated_seconds;
        let (severity, since) = match saturated > LONG_SATURATED {
            true => (Severity::Warning, format!(", and was so for {} since the start", in_words(saturated))),
            false => (Severity::Note, String::new()),
        };
        let what = format!("It is full, with {wanted} % more wanted than there is{since}.");
        let todo = "Give it more capacity, or accept that everybody is held to the level.";
        found.push(Finding::new(severity, "saturated", what, todo));
    }
    if status.duplicate_client_ids > 0 {
        let what = format!(
            "{} times a process went on beside another of the same client id.",
            status.duplicate_client_ids
        );
        let todo = "Give each process a client id of its own.";
        found.push(Finding::new(Severity::Warning, "duplicate_clients", what, todo));
    }
    let passed_over = status.domains.as_ref().map_or(0, |domains| domains.passed_over);
    if passed_over > 0 {
        let what = format!(
            "{passed_over} reports of domains were passed over, because too many are told of already."
        );
        let todo = "Share domains among fewer clients, or give their tiers greater limits.";
        found.push(Finding::new(Severity::Warning, "domains_passed_over", what, todo));
    }
    found
}
