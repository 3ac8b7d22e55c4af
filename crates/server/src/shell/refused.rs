//! The statuses of gRPC for what is refused, with details that a program can read.

use std::collections::HashMap;

use lessor_proto::message::Refusal;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

use super::driver::{Driver, Unanswered};

/// The status of what is not answered, which `driver` counts.
pub(super) fn unanswered(driver: &Driver, fault: Unanswered) -> Status {
    driver.note_unanswered(&fault);
    match fault {
        Unanswered::Refused(refusal) => status(refusal),
        Unanswered::Broken => Status::internal(fault.to_string()),
        Unanswered::Ending | Unanswered::Late | Unanswered::Lapsed | Unanswered::NotLeading(_) => {
            Status::unavailable(fault.to_string())
        }
    }
}

/// The status of what is refused, which `driver` counts.
pub(super) fn refused(driver: &Driver, refusal: Refusal) -> Status {
    driver.note_refusal(&refusal);
    status(refusal)
}

fn status(refusal: Refusal) -> Status {
    let (message, code) = (refusal.to_string(), Code::from_i32(refusal.code()));
    match refusal {
        Refusal::Invalid { field, found, wanted } => {
            let details =
                ErrorDetails::with_bad_request_violation(field, format!("{found}; wanted {wanted}"));
            Status::with_error_details(code, message, details)
        }
        Refusal::Exhausted { what, count, limit } => {
            let details =
                ErrorDetails::with_quota_failure_violation(what, format!("{count} of at most {limit}"));
            Status::with_error_details(code, message, details)
        }
        Refusal::Loop { .. } | Refusal::Unknown { .. } | Refusal::NoDomain { .. } => {
            Status::new(code, message)
        }
        Refusal::Denied { reason, rule, .. } => {
            let metadata = rule.map(|rule| ("rule".to_owned(), rule)).into_iter().collect::<HashMap<_, _>>();
            Status::with_error_details(
                code,
                message,
                ErrorDetails::with_error_info(reason, "lessor", metadata),
            )
        }
    }
}
