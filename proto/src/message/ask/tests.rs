//! Tests of asks: which are refused, and which survive the wire.

use crate::{Epoch, Incarnation, ReportId};
use smallvec::smallvec;

use super::*;

fn request() -> wire::ResourceRequest {
    wire::ResourceRequest {
        resource_id: Some("db".into()),
        priority: Some(0),
        wants: Some(1.0),
        ..wire::ResourceRequest::default()
    }
}

fn lease(capacity: f64) -> wire::Lease {
    wire::Lease {
        expiry_time: Some(1),
        refresh_interval: Some(1),
        capacity: Some(capacity),
        ..wire::Lease::default()
    }
}

#[track_caller]
fn check_client(resources: Vec<wire::ResourceRequest>, wanted: &str) {
    let request = wire::GetCapacityRequest {
        client_id: Some("c".into()),
        resource: resources,
        ..wire::GetCapacityRequest::default()
    };
    let limits =
        Limits { name_bytes: 8, resources_per_request: 3, bands_per_resource: 2, ..Limits::default() };
    let said = match Ask::from_client(request, &limits) {
        Ok(_) => "accepted".to_owned(),
        Err(refusal) => refusal.to_string(),
    };
    assert_eq!(said, wanted);
}

#[test]
fn faults_name_the_field_what_it_holds_and_what_was_wanted() {
    check_client(vec![request()], "accepted");
    check_client(vec![wire::ResourceRequest { wants: Some(1e300), ..request() }], "accepted");
    for (wants, found) in [(f64::NAN, "NaN"), (f64::INFINITY, "inf"), (-1.0, "-1")] {
        let wanted = format!("resource[0].wants: is {found}; wanted a finite number of at least 0");
        check_client(vec![wire::ResourceRequest { wants: Some(wants), ..request() }], &wanted);
    }
    check_client(
        vec![wire::ResourceRequest { wants: None, ..request() }],
        "resource[0].wants: is missing; wanted a finite number of at least 0",
    );
    check_client(
        vec![wire::ResourceRequest { priority: None, ..request() }],
        "resource[0].priority: is missing; wanted a whole number, greater is served first",
    );
    check_client(
        vec![wire::ResourceRequest { has: Some(lease(-3.0)), ..request() }],
        "resource[0].has.capacity: is -3; wanted a finite number of at least 0",
    );
    check_client(
        vec![wire::ResourceRequest {
            has: Some(wire::Lease { expiry_time: None, ..lease(1.0) }),
            ..request()
        }],
        "resource[0].has.expiry_time: is missing; wanted the expiry_time of the lease",
    );
    check_client(
        vec![wire::ResourceRequest { held: Some(f64::NAN), ..request() }],
        "resource[0].held: is NaN; wanted a finite number of at least 0",
    );
    check_client(
        vec![wire::ResourceRequest { resource_id: Some(String::new()), ..request() }],
        "resource[0].resource_id: is empty; wanted 1 to 8 bytes of text without control characters",
    );
    check_client(
        vec![wire::ResourceRequest { resource_id: Some("a\u{7}".into()), ..request() }],
        "resource[0].resource_id: \"a\\u{7}\" contains the control character '\\u{7}'; \
         wanted 1 to 8 bytes of text without control characters",
    );
    check_client(
        vec![wire::ResourceRequest { resource_id: Some("x".repeat(90)), ..request() }],
        &format!(
            "resource[0].resource_id: \"{}\"… is 90 bytes long; wanted 1 to 8 bytes of text without control characters",
            "x".repeat(40)
        ),
    );
    check_client(
        vec![request(), request()],
        "resource[1].resource_id: is \"db\" for the second time; wanted each resource once",
    );
    check_client(vec![request(); 4], "resources in one request: 4 is over the limit of 3");
}

#[track_caller]
fn check_node(bands: &[(Option<i64>, Option<i64>, Option<f64>)], wanted: &str) {
    let wants = bands.iter().map(|&(priority, num_clients, wants)| wire::PriorityBandAggregate {
        priority,
        num_clients,
        wants,
        bucket: Vec::new(),
    });
    let request = wire::GetServerCapacityRequest {
        server_id: Some("leaf".into()),
        resource: vec![wire::ServerCapacityResourceRequest {
            resource_id: Some("db".into()),
            wants: wants.collect(),
            ..wire::ServerCapacityResourceRequest::default()
        }],
        ..wire::GetServerCapacityRequest::default()
    };
    let said = match Ask::from_node(request, &Limits { bands_per_resource: 2, ..Limits::default() }) {
        Ok(_) => "accepted".to_owned(),
        Err(refusal) => refusal.to_string(),
    };
    assert_eq!(said, wanted);
}

#[test]
fn servers_must_stand_for_somebody() {
    check_node(&[(Some(0), Some(10), Some(1000.0)), (Some(1), Some(1), Some(0.0))], "accepted");
    for count in [0, -1, 1 << 40] {
        check_node(
            &[(Some(0), Some(count), Some(1.0))],
            &format!(
                "resource[0].wants[0].num_clients: is {count}; wanted a whole number from 1 to 4294967295"
            ),
        );
    }
    check_node(
        &[(Some(0), None, Some(1.0))],
        "resource[0].wants[0].num_clients: is missing; wanted a whole number from 1 to 4294967295",
    );
    check_node(
        &[(Some(0), Some(1), Some(1.0)), (Some(0), Some(1), Some(1.0))],
        "resource[0].wants[1].priority: is 0 for the second time; wanted each priority once",
    );
    check_node(&[], "resource[0].wants: is missing; wanted at least one priority band");
    check_node(&[(Some(0), Some(1), Some(1.0)); 3], "resource[0].wants: 3 is over the limit of 2");
}

#[test]
fn release_passes_over_the_empty_ids_of_doormans_close() {
    let request = wire::ReleaseCapacityRequest {
        client_id: Some("c".into()),
        resource_id: vec![String::new(), "db".into(), String::new()],
        incarnation: None,
        report_id: None,
    };
    let release = Release::from_wire(request, &Limits::default()).unwrap();
    assert_eq!(release.resources, [ResourceId::new("db", 256).unwrap()]);
}

#[test]
fn an_ask_survives_the_wire() {
    let ask = Ask {
        kind: HolderKind::Client,
        holder: ClientId::new("c", 256).unwrap(),
        incarnation: Some(Incarnation(7)),
        report_id: Some(ReportId(3)),
        target_epoch: Some(Epoch(9)),
        reports: vec![Report {
            resource: ResourceId::new("db", 256).unwrap(),
            bands: smallvec![Band { priority: 2, subclients: 1, wants: 0.5 }],
            has: Some(Has {
                capacity: Amount::from_units(4),
                order: Some(Order { epoch: Epoch(9), seq: 2 }),
                token: vec![1, 2],
                lasts: None,
                expiry: 0,
            }),
            held: Some(Amount::from_units(3)),
            domains: Some(7),
            integer: None,
            peak: Some(12.5),
            unenforced: Some(Unenforced { asked: 9, passed: 4, silent: 0 }),
        }],
        line: None,
    };
    assert_eq!(Ask::from_client(ask.to_wire(), &Limits::default()), Ok(ask));
}

fn bucket(index: Option<i32>, subclients: Option<i64>, wants: Option<f64>) -> wire::DemandBucket {
    wire::DemandBucket { index, subclients, wants }
}

/// Ten clients that want 100 together, in these buckets.
fn ten(buckets: &[wire::DemandBucket]) -> wire::GetServerCapacityRequest {
    wire::GetServerCapacityRequest {
        server_id: Some("leaf".into()),
        resource: vec![wire::ServerCapacityResourceRequest {
            resource_id: Some("db".into()),
            wants: vec![wire::PriorityBandAggregate {
                priority: Some(3),
                num_clients: Some(10),
                wants: Some(100.0),
                bucket: buckets.to_vec(),
            }],
            ..wire::ServerCapacityResourceRequest::default()
        }],
        ..wire::GetServerCapacityRequest::default()
    }
}

#[track_caller]
fn check_buckets(buckets: &[wire::DemandBucket], wanted: Result<&[(u32, f64)], &str>) {
    let limits = Limits { buckets_per_resource: 3, ..Limits::default() };
    let read = Ask::from_node(ten(buckets), &limits).map(|ask| ask.reports[0].bands.clone());
    let bands = wanted.map(|bands| {
        bands.iter().map(|&(subclients, wants)| Band { priority: 3, subclients, wants }).collect::<Bands>()
    });
    assert_eq!(read.map_err(|refusal| refusal.to_string()), bands.map_err(str::to_owned));
}

#[test]
fn buckets_are_bands_and_those_in_none_are_one_more() {
    let index = Some(26);
    check_buckets(&[], Ok(&[(10, 100.0)]));
    check_buckets(&[bucket(index, Some(10), Some(100.0))], Ok(&[(10, 100.0)]));
    let two = [bucket(index, Some(1), Some(70.0)), bucket(index, Some(5), Some(25.0))];
    check_buckets(&two, Ok(&[(1, 70.0), (5, 25.0), (4, 5.0)]));
    // Sums that do not fit together leave nothing to want.
    check_buckets(&[bucket(index, Some(9), Some(170.0))], Ok(&[(9, 170.0), (1, 0.0)]));
}

#[test]
fn a_faulty_bucket_is_refused_by_name() {
    let (index, one) = (Some(0), Some(1));
    let field = "resource[0].wants[0].bucket[0]";
    let number = "a whole number from 1 to 4294967295";
    let amount = "a finite number of at least 0";
    let check = |buckets: &[wire::DemandBucket], fault: &str| {
        check_buckets(buckets, Err(&fault.replace("bucket", field)));
    };
    check(
        &[bucket(None, one, Some(1.0))],
        "bucket.index: is missing; wanted the whole part of 8 log2(wants / subclients)",
    );
    check(&[bucket(index, None, Some(1.0))], &format!("bucket.subclients: is missing; wanted {number}"));
    check(&[bucket(index, Some(0), Some(1.0))], &format!("bucket.subclients: is 0; wanted {number}"));
    check(&[bucket(index, one, None)], &format!("bucket.wants: is missing; wanted {amount}"));
    check(&[bucket(index, one, Some(-1.0))], &format!("bucket.wants: is -1; wanted {amount}"));
    check(&[bucket(index, one, Some(f64::NAN))], &format!("bucket.wants: is NaN; wanted {amount}"));
    check(
        &[bucket(index, Some(11), Some(1.0))],
        "bucket.subclients: is 11; wanted at most 10, which is left of num_clients",
    );
    check_buckets(
        &[bucket(index, one, Some(1.0)); 4],
        Err("resource[0].wants.bucket: 4 is over the limit of 3"),
    );
}

#[test]
fn a_curve_is_one_aggregate_a_priority() {
    let band = |priority, subclients, wants| Band { priority, subclients, wants };
    let report = Report {
        resource: ResourceId::new("db", 256).unwrap(),
        bands: [band(1, 3, 12.0), band(-5, 2, 0.0), band(1, 1, 64.0), band(1, 6, 0.0)].into_iter().collect(),
        has: None,
        held: None,
        domains: None,
        integer: None,
        peak: None,
        unenforced: None,
    };
    let aggregates = report.to_node_wire().wants;
    let sums: Vec<_> =
        aggregates.iter().map(|sums| (sums.priority(), sums.num_clients(), sums.wants())).collect();
    assert_eq!(sums, [(1, 10, 76.0), (-5, 2, 0.0)]);
    // 8 log2(4) and 8 log2(64); those that want nothing are in no bucket, and a band alone needs none.
    let buckets = [bucket(Some(16), Some(3), Some(12.0)), bucket(Some(48), Some(1), Some(64.0))];
    assert_eq!((aggregates[0].bucket.as_slice(), aggregates[1].bucket.as_slice()), (&buckets[..], &[][..]));
}
