//! Tests of the messages on a stream: which are refused, and that everything else comes out at the other end as it went
//! in.

mod domains;

use proptest::collection::{btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use prost::Message as _;

use super::*;
use crate::message::{
    Band, Bands, BoundBy, Has, Limits, LookKind, Order, Sharing, Unenforced, UseWindow, ViewBounds, WallClock,
};
use crate::wire::session_up_request::Message;
use crate::{Amount, Epoch, Features, Incarnation, ReportId, wire};

const NOON: WallClock = WallClock { since_epoch: Duration::from_millis(1_000_900) };

// === what is refused ===

#[track_caller]
fn check(message: Message, holder: Option<HolderKind>, wanted: &str) {
    let limits = Limits { resources_per_request: 2, ..Limits::default() };
    let request = wire::SessionUpRequest { message: Some(message) };
    let read = match holder {
        Some(kind) => Up::from_wire(request, &limits, kind).map(|_| ()),
        None => Hello::first(request, &limits).map(|_| ()),
    };
    let said = read.map_or_else(|refusal| refusal.to_string(), |()| "accepted".to_owned());
    assert_eq!(said, wanted);
}

fn hello() -> wire::HelloRequest {
    wire::HelloRequest { id: Some("web-1".into()), incarnation: Some(0), ..wire::HelloRequest::default() }
}

fn report() -> wire::ReportRequest {
    let resource = wire::ResourceRequest {
        resource_id: Some("db".into()),
        priority: Some(0),
        wants: Some(1.0),
        ..wire::ResourceRequest::default()
    };
    wire::ReportRequest { report_id: Some(1), resource: vec![resource], ..wire::ReportRequest::default() }
}

#[test]
fn a_hello_comes_first_and_once() {
    let name = "1 to 256 bytes of text without control characters";
    let check_first = |message, wanted: &str| check(message, None, wanted);
    check_first(Message::Hello(hello()), "accepted");
    check_first(
        Message::Hello(wire::HelloRequest { id: None, ..hello() }),
        &format!("hello.id: is missing; wanted {name}"),
    );
    check_first(
        Message::Hello(wire::HelloRequest { id: Some(String::new()), ..hello() }),
        &format!("hello.id: is empty; wanted {name}"),
    );
    check_first(
        Message::Hello(wire::HelloRequest { incarnation: None, ..hello() }),
        "hello.incarnation: is missing; wanted a number that no other life of this holder has",
    );
    check_first(Message::Report(report()), "message: is a report; wanted a hello, as the first message");
    check(
        Message::Hello(hello()),
        Some(HolderKind::Client),
        "message: is a hello; wanted a report, a release or a bye after the first",
    );
    let nothing = Hello::first(wire::SessionUpRequest { message: None }, &Limits::default());
    assert_eq!(nothing.unwrap_err().to_string(), "message: is missing; wanted a hello");
}

#[test]
fn a_faulty_report_is_refused_by_name() {
    let check_report =
        |report, wanted: &str| check(Message::Report(report), Some(HolderKind::Client), wanted);
    check_report(report(), "accepted");
    check_report(
        wire::ReportRequest { report_id: None, ..report() },
        "report.report_id: is missing; wanted a number greater than that of any report before",
    );
    let mut bent = report();
    bent.resource[0].wants = Some(f64::NAN);
    check_report(bent, "report.resource[0].wants: is NaN; wanted a finite number of at least 0");
    let twice = wire::ReportRequest { resource: vec![report().resource.remove(0); 2], ..report() };
    check_report(
        twice,
        "report.resource[1].resource_id: is \"db\" for the second time; wanted each resource once",
    );
    let many = wire::ReportRequest { resource: vec![report().resource.remove(0); 3], ..report() };
    check_report(many, "resources in one request: 3 is over the limit of 2");
    let of_node = wire::ReportRequest {
        server_resource: vec![wire::ServerCapacityResourceRequest::default()],
        ..report()
    };
    check_report(of_node, "report.server_resource: has 1; wanted them in report.resource");
    check(
        Message::Report(report()),
        Some(HolderKind::Node),
        "report.resource: has 1; wanted them in report.server_resource",
    );
}

#[test]
fn a_release_says_which() {
    let check_release = |id, names: &[&str], wanted: &str| {
        let resource_id = names.iter().map(ToString::to_string).collect();
        let release = wire::StreamReleaseRequest { release_id: id, resource_id };
        check(Message::Release(release), Some(HolderKind::Client), wanted);
    };
    check_release(Some(1), &["a", "b"], "accepted");
    check_release(
        None,
        &["a"],
        "release.release_id: is missing; wanted the number that the confirmation repeats",
    );
    check_release(
        Some(1),
        &["a", ""],
        "release.resource_id[1]: is empty; wanted 1 to 256 bytes of text without control characters",
    );
}

#[test]
fn units_are_asked_for_and_sent() {
    let check_units = |request, wanted: &str| {
        check(Message::Units(request), Some(HolderKind::Client), wanted);
    };
    let request = wire::UnitsRequest {
        resource_id: Some("db".into()),
        asked: Some(7),
        keep_ms: Some(40),
        kept: Some(2),
        done: Some(1),
    };
    check_units(request.clone(), "accepted");
    check_units(
        wire::UnitsRequest { asked: None, ..request },
        "units.asked: is missing; wanted how many units are asked for in all",
    );
    let resource = || ResourceId::new("db", 256).unwrap();
    for keep in [None, Some(Duration::from_millis(40))] {
        let (kept, done) = (keep.map(|_| 2), keep.map(|_| 5));
        let up = Up::Units(UnitsAsked { resource: resource(), asked: 7, keep, kept, done });
        let back = Up::from_wire(up.to_wire(HolderKind::Client), &Limits::default(), HolderKind::Client);
        assert_eq!(back.unwrap(), Some(up));
    }
    for keep in [None, Some((2, Duration::from_millis(40)))] {
        let down = Down::Units { resource: resource(), units: 3, keep };
        assert_eq!(Down::from_wire(down.to_wire(HolderKind::Client, NOON), NOON), Ok(Some(down)));
    }
}

// === jobs ===

#[test]
fn jobs_are_said_the_same_way_up_and_down() {
    let resource = || ResourceId::new("lock", 256).unwrap();
    let long = Duration::from_millis(u64::MAX);
    for (done, asks) in
        [(None, Some(Duration::ZERO)), (Some(Duration::from_millis(12)), None), (Some(long), Some(long))]
    {
        let jobs = vec![JobNews { resource: resource(), done, asks }];
        let (up, down) = (Up::Jobs(jobs.clone()), Down::Jobs(jobs));
        let back = Up::from_wire(up.to_wire(HolderKind::Client), &Limits::default(), HolderKind::Client);
        assert_eq!(back.unwrap(), Some(up.clone()));
        assert_eq!(Down::from_wire(down.to_wire(HolderKind::Client, NOON), NOON), Ok(Some(down.clone())));
        assert_eq!((up.needs(), down.needs()), (Features::JOBS, Features::JOBS));
        assert_eq!(down.known_by(Features::BASE), None, "no older way to say it");
    }
    let job = wire::JobNews { resource_id: None, done_ms: Some(1), asks_ms: None };
    let message = Some(Message::Jobs(wire::JobsRequest { job: vec![job.clone()] }));
    let up = Up::from_wire(wire::SessionUpRequest { message }, &Limits::default(), HolderKind::Client);
    assert_eq!(
        up.unwrap_err().to_string(),
        "jobs.job[0].resource_id: is missing; wanted 1 to 256 bytes of text without control characters"
    );
    let message = Some(wire::session_down::Message::Jobs(wire::Jobs { job: vec![job] }));
    let down = Down::from_wire(wire::SessionDown { message }, NOON);
    assert_eq!(down.unwrap_err().field, "jobs.job[0].resource_id");
}

// === other versions ===

#[test]
fn a_kind_of_a_later_version_is_passed_over() {
    // Field 99, of four bytes.
    let later = [0x9a, 0x06, 4, 1, 2, 3, 4];
    let up = wire::SessionUpRequest::decode(later.as_slice()).unwrap();
    assert_eq!(Up::from_wire(up.clone(), &Limits::default(), HolderKind::Client), Ok(None));
    let first = Hello::first(up, &Limits::default()).unwrap_err();
    assert_eq!(first.to_string(), "message: is missing; wanted a hello");
    assert_eq!(Down::from_wire(wire::SessionDown::decode(later.as_slice()).unwrap(), NOON), Ok(None));
}

#[test]
fn a_holder_is_told_its_place_in_the_way_that_it_knows() {
    let notice = NodeNotice { path: vec!["root".to_owned()], name_taken: true };
    let known = |features| Down::Notice(notice.clone()).known_by(features).unwrap();
    let (now, before) = (known(Features::CURRENT), known(Features::BASE));
    assert_eq!(now, Down::Notice(notice.clone()));
    assert_eq!(before, Down::NoticeInGrants(notice.clone()));
    assert_eq!((now.needs(), before.needs()), (Features::NOTICE, Features::BASE));
    let kind = |down: &Down| down.to_wire(HolderKind::Node, NOON).message;
    assert!(matches!(kind(&now), Some(wire::session_down::Message::Notice(_))));
    assert!(matches!(kind(&before), Some(wire::session_down::Message::Grants(_))));
    assert_eq!(Features::from_bits(0x100).and(Features::CURRENT), Features::BASE);
}

#[test]
fn whoever_names_no_features_says_what_versions_before_them_did() {
    let hello = Hello {
        features: Features::BASE,
        ..Hello::new(HolderKind::Client, ClientId::new("web-1", 256).unwrap(), Incarnation(0))
    };
    let said = Up::Hello(hello.clone()).to_wire(HolderKind::Client).message;
    assert_eq!(said, Some(Message::Hello(wire::HelloRequest { incarnation: Some(0), ..self::hello() })));
    assert_eq!(Hello::first(wire::SessionUpRequest { message: said }, &Limits::default()), Ok(hello));
}

// === what is malformed ===

#[test]
fn what_a_grantor_cannot_mean_is_malformed() {
    let read = |message| Down::from_wire(wire::SessionDown { message }, NOON).unwrap_err().to_string();
    let welcome = wire::Welcome { epoch: 1, heartbeat_ms: Some(0), ..wire::Welcome::default() };
    assert_eq!(
        read(Some(wire::session_down::Message::Welcome(welcome))),
        "malformed answer: welcome.heartbeat_ms: is 0"
    );
    let grant = wire::ResourceResponse { resource_id: "db".into(), ..wire::ResourceResponse::default() };
    let grants = wire::Grants { grant: vec![grant], server_grant: Vec::new(), notice: None };
    assert_eq!(
        read(Some(wire::session_down::Message::Grants(grants))),
        "malformed answer: grants.grant[0].gets.capacity: is missing"
    );
}

// === what survives ===

fn name() -> impl Strategy<Value = String> {
    "[a-zä/*-]{1,12}"
}

fn order() -> impl Strategy<Value = Order> {
    (any::<u64>(), any::<u64>()).prop_map(|(epoch, seq)| Order { epoch: Epoch(epoch), seq })
}

fn amount() -> impl Strategy<Value = Amount> {
    // What a double can say exactly.
    (0..1_u64 << 50).prop_map(|units| Amount::from_f64(units as f64 / 64.0))
}

fn units() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), 1e-9..1e12]
}

fn has() -> impl Strategy<Value = Has> {
    (amount(), option::of(order()), vec(any::<u8>(), 0..4)).prop_map(|(capacity, order, token)| Has {
        capacity,
        order,
        token,
        lasts: None,
        expiry: 0,
    })
}

fn client_bands() -> impl Strategy<Value = Bands> {
    (any::<i64>(), units(), option::of(units())).prop_map(|(priority, wants, reserve)| {
        let reserve = reserve.map(|wants| Band { priority: Band::RESERVE, subclients: 1, wants });
        [Band { priority, subclients: 1, wants }].into_iter().chain(reserve).collect()
    })
}

/// As a node tells them: the greatest priority first, and in each the buckets before those that want nothing.
fn node_bands() -> impl Strategy<Value = Bands> {
    let bucket = (1..1_000_000_u32, 1e-9..1e12_f64);
    let priority = (vec(bucket, 0..5), option::of(1..1_000_000_u32));
    (btree_set(any::<i64>(), 1..4), vec(priority, 3)).prop_map(|(priorities, sums)| {
        let mut bands = Bands::new();
        for (&priority, (buckets, idle)) in priorities.iter().rev().zip(sums) {
            bands.extend(buckets.into_iter().map(|(subclients, wants)| Band { priority, subclients, wants }));
            bands.extend(idle.map(|subclients| Band { priority, subclients, wants: 0.0 }));
        }
        if bands.is_empty() { Bands::from_elem(Band::NOTHING, 1) } else { bands }
    })
}

fn unenforced() -> impl Strategy<Value = Unenforced> {
    (0..=Unenforced::MOST, any::<u64>(), any::<u32>()).prop_map(|(asked, passed, silent)| Unenforced {
        asked,
        passed: passed.min(asked),
        silent,
    })
}

fn reports(bands: impl Strategy<Value = Bands>) -> impl Strategy<Value = Vec<Report>> {
    let parts = (name(), bands, option::of(has()), option::of(amount()), option::of(unenforced()));
    let report = parts.prop_map(|(name, bands, has, held, unenforced)| Report {
        resource: ResourceId::new(name.as_str(), 256).unwrap(),
        bands,
        has,
        held,
        domains: None,
        integer: None,
        peak: None,
        unenforced,
    });
    vec(report, 0..4).prop_map(|mut reports| {
        reports.sort_by(|a, b| a.resource.cmp(&b.resource));
        reports.dedup_by(|a, b| a.resource == b.resource);
        reports
    })
}

fn up(kind: HolderKind) -> impl Strategy<Value = Up> {
    let bands = match kind {
        HolderKind::Client => client_bands().boxed(),
        HolderKind::Node => node_bands().boxed(),
    };
    let report = (any::<u64>(), option::of(any::<u64>()), any::<bool>(), reports(bands));
    let release = (any::<u64>(), vec(name(), 0..4));
    prop_oneof![
        report.prop_map(|(id, target_epoch, renew_all, reports)| {
            Up::Report(StreamReport {
                id: ReportId(id),
                target_epoch: target_epoch.map(Epoch),
                renew_all,
                reports,
            })
        }),
        release.prop_map(|(id, names)| {
            let resources = names.iter().map(|name| ResourceId::new(name.as_str(), 256).unwrap());
            Up::Release { id: ReportId(id), resources: resources.collect() }
        }),
        Just(Up::Bye),
        any_view().prop_map(Up::View),
        domains::any_report(),
    ]
}

fn any_view() -> impl Strategy<Value = ViewPart> {
    (any::<u64>(), any::<u32>(), any::<bool>(), vec(any::<u8>(), 0..64))
        .prop_map(|(id, part, is_last, body)| ViewPart { id, part, is_last, body })
}

fn any_look() -> impl Strategy<Value = Look> {
    let bounds = (any::<u32>(), any::<u32>(), any::<u32>());
    (any::<u64>(), any::<u32>(), any::<u32>(), bounds, vec(any::<u8>(), 0..64)).prop_map(
        |(id, kind, millis, (bytes, nodes, levels), body)| Look {
            id,
            kind: LookKind::numbered(kind),
            patience: Duration::from_millis(millis.into()),
            bounds: ViewBounds { bytes: bytes as usize, nodes: nodes as usize, levels },
            body,
        },
    )
}

fn any_hello() -> impl Strategy<Value = Hello> {
    (any::<bool>(), name(), any::<u64>(), any::<u32>()).prop_map(|(node, name, incarnation, bits)| Hello {
        kind: if node { HolderKind::Node } else { HolderKind::Client },
        holder: ClientId::new(name.as_str(), 256).unwrap(),
        incarnation: Incarnation(incarnation),
        line: None,
        features: Features::from_bits(bits),
    })
}

fn seconds() -> impl Strategy<Value = Duration> {
    (1..100_000_u64).prop_map(Duration::from_secs)
}

fn grant(to: HolderKind) -> impl Strategy<Value = Grant> {
    use wire::algorithm::Kind;
    let kind = prop_oneof![Just(Kind::Static), Just(Kind::FairShare), Just(Kind::ProportionalShare)];
    let sharing = (kind, seconds(), seconds()).prop_map(|(kind, lease_length, refresh_interval)| Sharing {
        kind,
        lease_length,
        refresh_interval,
    });
    let order = (option::of(order()), option::of(any::<u64>()), vec(any::<u8>(), 0..4));
    let safe_capacity = option::of(prop_oneof![Just(-1.0), units()]);
    (name(), amount(), 0..1_u64 << 40, seconds(), order, any::<bool>(), safe_capacity, sharing).prop_map(
        move |(name, capacity, length_ms, refresh_interval, order, ack_wanted, safe_capacity, sharing)| {
            let (order, basis, token) = order;
            Grant {
                resource: ResourceId::new(name.as_str(), 256).unwrap(),
                capacity,
                length: Duration::from_millis(length_ms),
                refresh_interval,
                order,
                basis: basis.map(ReportId),
                token,
                ack_wanted,
                safe_leased: ack_wanted,
                learning: ack_wanted,
                learning_left: None,
                safe_capacity,
                // Clients are not told.
                due: ack_wanted.then_some(Duration::from_secs(7)),
                window: ack_wanted.then_some(UseWindow { length: Duration::from_secs(60), limit: 100 }),
                burst: ack_wanted.then_some(Duration::from_millis(50)),
                sharing: (to == HolderKind::Node).then_some(sharing),
                domains: None,
                before: None,
                earlier: None,
                bound_by: Some(BoundBy::Level),
                unenforced: ack_wanted,
                beside: ack_wanted,
                generation: None,
            }
        },
    )
}

fn down(to: HolderKind) -> impl Strategy<Value = Down> {
    let wait = option::of((0..u64::MAX).prop_map(Duration::from_millis));
    let welcome = (any::<u64>(), any::<bool>(), wait, 1..u64::MAX, any::<u32>());
    let notice =
        (vec(name(), 0..4), any::<bool>()).prop_map(|(path, name_taken)| NodeNotice { path, name_taken });
    prop_oneof![
        welcome.prop_map(|(epoch, claims_open, claims_open_in, heartbeat, bits)| {
            let (heartbeat, features) = (Duration::from_millis(heartbeat), Features::from_bits(bits));
            Down::Welcome(Welcome { epoch: Epoch(epoch), claims_open, claims_open_in, heartbeat, features })
        }),
        vec(grant(to), 0..4).prop_map(Down::Grants),
        (any::<u64>(), any::<u64>())
            .prop_map(|(basis, grants)| Down::Renewed { basis: ReportId(basis), grants }),
        any::<u64>().prop_map(|id| Down::Released { id: ReportId(id) }),
        (any::<u64>(), name()).prop_map(|(id, why)| Down::Refused { id: ReportId(id), why }),
        option::of(name()).prop_map(|address| Down::Redirect(Leader { address })),
        (notice, any::<bool>()).prop_map(|(notice, known)| match known {
            true => Down::Notice(notice),
            false => Down::NoticeInGrants(notice),
        }),
        any_look().prop_map(|look| Down::Look(Box::new(look))),
        domains::any_news(),
    ]
}

/// Through bytes, as over a network.
fn up_and_back(up: &Up, kind: HolderKind) -> Up {
    let bytes = up.to_wire(kind).encode_to_vec();
    let request = wire::SessionUpRequest::decode(bytes.as_slice()).unwrap();
    match up {
        Up::Hello(_) => Hello::first(request, &Limits::default()).map(Up::Hello).unwrap(),
        _ => Up::from_wire(request, &Limits::default(), kind).unwrap().unwrap(),
    }
}

proptest! {
    #[test]
    fn what_a_holder_says_survives_the_wire(
        hello in any_hello(),
        client in up(HolderKind::Client),
        node in up(HolderKind::Node),
    ) {
        let hello = Up::Hello(hello);
        prop_assert_eq!(&up_and_back(&hello, HolderKind::Client), &hello);
        for (up, kind) in [(client, HolderKind::Client), (node, HolderKind::Node)] {
            prop_assert_eq!(&up_and_back(&up, kind), &up);
        }
    }

    #[test]
    fn what_a_grantor_says_survives_the_wire(
        client in down(HolderKind::Client),
        node in down(HolderKind::Node),
    ) {
        for (down, to) in [(client, HolderKind::Client), (node, HolderKind::Node)] {
            let bytes = down.to_wire(to, NOON).encode_to_vec();
            let back = Down::from_wire(wire::SessionDown::decode(bytes.as_slice()).unwrap(), NOON);
            prop_assert_eq!(back, Ok(Some(down)));
        }
    }

    #[test]
    fn a_nodes_request_survives_the_wire(hello in any_hello(), reports in reports(node_bands())) {
        let hello = Hello { kind: HolderKind::Node, ..hello };
        let report = StreamReport { id: ReportId(7), target_epoch: Some(Epoch(3)), renew_all: false, reports };
        let ask = report.into_ask(&hello);
        prop_assert_eq!(Ask::from_node(ask.to_node_wire(), &Limits::default()), Ok(ask));
    }

    #[test]
    fn no_bytes_are_too_much(bytes in vec(any::<u8>(), 0..64), kind in prop_oneof![Just(HolderKind::Client), Just(HolderKind::Node)]) {
        if let Ok(request) = wire::SessionUpRequest::decode(bytes.as_slice()) {
            let _ = Hello::first(request.clone(), &Limits::default());
            let _ = Up::from_wire(request, &Limits::default(), kind);
        }
        if let Ok(down) = wire::SessionDown::decode(bytes.as_slice()) {
            let _ = Down::from_wire(down, NOON);
        }
    }
}
