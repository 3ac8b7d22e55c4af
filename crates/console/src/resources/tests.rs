//! Lines of resources: every field of one has a column, and time that passes is no change.

use super::*;

fn line() -> ResourceLine {
    ResourceLine {
        resource: "db".to_owned(),
        template: Some("*".to_owned()),
        kind: "rate",
        unit: "units_per_second",
        algorithm: "FAIR_SHARE",
        capacity: 10.0,
        outstanding: 5.0,
        leased: 5.0,
        ghost: 0.0,
        mark: Some(1.0),
        wants: 7.0,
        used: Some(0.5),
        short: 0.0,
        headroom: Some(5.0),
        level_top: Some(1.0),
        level_bottom: Some(1.0),
        clients: 2,
        subclients: 2,
        learning: false,
        in_debt: false,
        overcommitment: 0.0,
        safe_capacity_out: Some(0.0),
        recalls: 0,
        duplicate_client_ids: 0,
        domain_clients: Some(0),
        domains_told: Some(0),
        domains_hot: Some(0),
        times: ResourceTimes {
            learning_ends_in_seconds: 0.0,
            ghost_ends_in_seconds: 0.0,
            lease_ends_in_seconds: Some(20.0),
            saturated_seconds: 0.0,
        },
    }
}

#[test]
fn every_field_of_a_line_can_be_filtered_and_sorted() {
    let value = serde_json::to_value(line()).expect("it can be written");
    let fields: Vec<&String> = value.as_object().expect("an object").keys().collect();
    let mut columns: Vec<&str> = TABLE.columns.iter().map(|column| column.name).collect();
    columns.sort_unstable();
    assert_eq!(fields, columns);
    for column in TABLE.columns {
        let is_of_kind = match column.kind {
            ColumnKind::Number => value[column.name].is_number(),
            ColumnKind::Text => value[column.name].is_string(),
            ColumnKind::Truth => value[column.name].is_boolean(),
        };
        assert!(is_of_kind, "{}: {}", column.name, value[column.name]);
    }
}

#[test]
fn time_that_passes_is_no_change_and_a_renewed_lease_is_one() {
    let before = line();
    let mut after = line();
    after.times.lease_ends_in_seconds = Some(18.9);
    assert!(after.is_still(&before, 1.0) && !after.is_still(&before, 3.0));
    after.times.lease_ends_in_seconds = Some(20.0);
    assert!(!after.is_still(&before, 5.0));
    let more = ResourceLine { wants: 8.0, ..line() };
    assert!(!more.is_still(&before, 0.0));
}
