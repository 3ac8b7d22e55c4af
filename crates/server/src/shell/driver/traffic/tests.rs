//! Tests of the counts of traffic.

use lessor_proto::Epoch;

use super::*;
use crate::node::NodeConfig;
use crate::repository::Repository;

#[test]
fn a_report_that_is_refused_alone_counts_as_a_request_that_is() {
    let driver =
        Driver::new(NodeConfig::new("root", Epoch(1)), Repository::default(), "here:1".to_owned(), 1);
    let unknown = Refusal::Unknown { field: "resource[0]".to_owned(), resource: "db".to_owned() };
    let full = Refusal::Exhausted { what: "resources".to_owned(), count: 2, limit: 1 };
    driver.note_refused(&[RefusedReport::new(0, "db", &unknown), RefusedReport::new(2, "db", &full)]);
    driver.note_refusal(&unknown);
    driver.note_unanswered(&Unanswered::Ending);
    let counts = [Reason::Unknown, Reason::Exhausted, Reason::Ending, Reason::Invalid];
    assert_eq!(counts.map(|reason| driver.traffic().refusals.of(reason)), [2, 1, 1, 0]);
}
