//! One message of each kind, with all of its fields. A field that is added has to be given something here as well.

use lessor_proto::wire::session_down::Message as Down;
use lessor_proto::wire::session_up_request::Message as Up;
use lessor_proto::wire::*;
use prost::Message;

/// The messages by the names of their files, which begin with `up.`, `down.` or `unary.` and the kind.
pub(crate) fn all() -> Vec<(&'static str, Vec<u8>)> {
    let ups = ups()
        .into_iter()
        .map(|(name, message)| (name, SessionUpRequest { message: Some(message) }.encode_to_vec()));
    let downs = downs()
        .into_iter()
        .map(|(name, message)| (name, SessionDown { message: Some(message) }.encode_to_vec()));
    ups.chain(downs).chain(requests()).chain(answers()).collect()
}

fn ups() -> Vec<(&'static str, Up)> {
    let hello = HelloRequest {
        id: Some("paris".into()),
        incarnation: Some(0x1234_5678_9abc_def0),
        is_node: Some(true),
        line: Some(77),
        features: Some(3),
    };
    let report = ReportRequest {
        report_id: Some(7),
        target_epoch: Some(12),
        resource: Vec::new(),
        server_resource: Vec::new(),
        renew_all: Some(true),
    };
    let units = UnitsRequest {
        resource_id: Some("db".into()),
        asked: Some(9),
        keep_ms: Some(40),
        kept: Some(2),
        done: Some(3),
    };
    let domains = DomainsRequest {
        resource_id: Some("db".into()),
        version: Some(0x00c0_ffee),
        id: Some(4),
        ask: Some(true),
        domain: vec![hits()],
        clients_below: Some(30),
        nodes_below: Some(2),
    };
    vec![
        // As versions before features said it.
        ("up.hello.before", Up::Hello(HelloRequest { line: None, features: None, ..hello.clone() })),
        ("up.hello.node", Up::Hello(hello)),
        ("up.report.client", Up::Report(ReportRequest { resource: vec![of_client()], ..report.clone() })),
        ("up.report.node", Up::Report(ReportRequest { server_resource: vec![of_node()], ..report })),
        (
            "up.release",
            Up::Release(StreamReleaseRequest {
                release_id: Some(8),
                resource_id: vec!["db".into(), "disk".into()],
            }),
        ),
        ("up.bye", Up::Bye(ByeRequest {})),
        ("up.domains", Up::Domains(domains)),
        ("up.units", Up::Units(units)),
        ("up.view", Up::View(view())),
        ("up.jobs", Up::Jobs(JobsRequest { job: vec![job()] })),
    ]
}

fn downs() -> Vec<(&'static str, Down)> {
    let welcome = Welcome {
        epoch: 12,
        claims_open: Some(false),
        heartbeat_ms: Some(5_000),
        claims_open_in_ms: Some(800),
        features: Some(3),
    };
    let nothing = Grants { grant: Vec::new(), server_grant: Vec::new(), notice: None };
    let news = DomainNews {
        resource_id: "db".into(),
        version: 0x00c0_ffee,
        now_nanos: 9_000_000_000,
        heard: 4,
        heard_at_nanos: 8_000_000_000,
        members: 31,
        begins: Some(true),
        hot: vec!["acme".into()],
        calm: vec!["ajax".into()],
        domain: vec![hits()],
        nodes: Some(3),
    };
    let units = Units { resource_id: "db".into(), units: 3, kept: Some(2), keep_ms: Some(40) };
    vec![
        ("down.welcome.before", Down::Welcome(Welcome { features: None, ..welcome })),
        ("down.welcome.now", Down::Welcome(welcome)),
        ("down.grants.client", Down::Grants(Grants { grant: vec![to_client()], ..nothing.clone() })),
        ("down.grants.node", Down::Grants(Grants { server_grant: vec![to_node()], ..nothing.clone() })),
        ("down.grants.notice", Down::Grants(Grants { notice: Some(notice()), ..nothing })),
        ("down.renewed", Down::Renewed(Renewed { basis: 7, grants_sent: 5 })),
        ("down.released", Down::Released(Released { release_id: 8 })),
        (
            "down.refused",
            Down::Refused(Refused { report_id: 7, code: Some(3), reason: Some("wants: is NaN".into()) }),
        ),
        ("down.redirect", Down::Redirect(leader())),
        ("down.domains", Down::Domains(news)),
        ("down.units", Down::Units(units)),
        ("down.jobs", Down::Jobs(Jobs { job: vec![job()] })),
        ("down.notice", Down::Notice(notice())),
        ("down.look", Down::Look(look())),
    ]
}

fn requests() -> Vec<(&'static str, Vec<u8>)> {
    let of_client = GetCapacityRequest {
        client_id: Some("web-1".into()),
        resource: vec![of_client()],
        incarnation: Some(5),
        report_id: Some(7),
        target_epoch: Some(12),
    };
    let of_node = GetServerCapacityRequest {
        server_id: Some("paris".into()),
        resource: vec![of_node()],
        holder_epoch: Some(6),
        report_id: Some(7),
        target_epoch: Some(12),
        line: Some(77),
    };
    let release = ReleaseCapacityRequest {
        client_id: Some("web-1".into()),
        resource_id: vec!["db".into()],
        incarnation: Some(5),
        report_id: Some(8),
    };
    vec![
        ("unary.DiscoveryRequest", DiscoveryRequest {}.encode_to_vec()),
        ("unary.GetCapacityRequest", of_client.encode_to_vec()),
        ("unary.GetServerCapacityRequest", of_node.encode_to_vec()),
        ("unary.ReleaseCapacityRequest", release.encode_to_vec()),
    ]
}

fn answers() -> Vec<(&'static str, Vec<u8>)> {
    let refused = || RefusedResource {
        index: 1,
        resource_id: Some("disk".into()),
        code: Some(5),
        reason: Some("no template".into()),
    };
    let discovery = DiscoveryResponse {
        mastership: leader(),
        is_master: true,
        epoch: Some(12),
        node: Some("root".into()),
        clock_nanos: Some(9_000_000_000),
    };
    let to_client = GetCapacityResponse {
        response: vec![to_client()],
        mastership: Some(leader()),
        epoch: Some(12),
        retry_ms: Some(250),
        refused: vec![refused()],
    };
    let to_node = GetServerCapacityResponse {
        response: vec![to_node()],
        mastership: Some(leader()),
        epoch: Some(12),
        retry_ms: Some(250),
        refused: vec![refused()],
        notice: Some(notice()),
    };
    vec![
        ("unary.DiscoveryResponse", discovery.encode_to_vec()),
        ("unary.GetCapacityResponse", to_client.encode_to_vec()),
        ("unary.GetServerCapacityResponse", to_node.encode_to_vec()),
        (
            "unary.ReleaseCapacityResponse",
            ReleaseCapacityResponse { mastership: Some(leader()) }.encode_to_vec(),
        ),
    ]
}

// === what they are made of ===

fn lease() -> Lease {
    Lease {
        expiry_time: Some(1_790_000_060),
        refresh_interval: Some(5),
        capacity: Some(62.5),
        epoch: Some(12),
        seq: Some(3),
        duration_ms: Some(60_000),
        basis: Some(7),
        token: Some(vec![5, 0xc1, 0xe0]),
        ack_wanted: Some(true),
        generation: Some(1),
        safe_leased: Some(true),
        window_us: Some(60_000_000),
        window_limit: Some(100),
        burst_us: Some(50_000),
        due_us: Some(1_500_000),
        learning: Some(true),
        learning_ms: Some(51_200),
        remaining_ms: Some(40_000),
        before_capacity: Some(20.0),
        before_ms: Some(30_000),
        counts_ms: Some(20_000),
        earlier_ms: Some(10_000),
        bound_by: Some(2),
        unenforced: Some(true),
        beside: Some(true),
    }
}

fn of_client() -> ResourceRequest {
    ResourceRequest {
        resource_id: Some("db".into()),
        priority: Some(-2),
        has: Some(lease()),
        wants: Some(80.5),
        held: Some(60.0),
        // Who keeps units at hand keeps them for a window, and these are whole.
        integer: Some(true),
        domains_version: Some(0x00c0_ffee),
        peak: Some(90.0),
        reserve: Some(4.0),
        unenforced: Some(UnenforcedUnits { asked: Some(300), passed: Some(7), silent: None }),
    }
}

fn of_node() -> ServerCapacityResourceRequest {
    let bucket = DemandBucket { index: Some(-3), subclients: Some(4), wants: Some(2.5) };
    let band = PriorityBandAggregate {
        priority: Some(1),
        num_clients: Some(4),
        wants: Some(2.5),
        bucket: vec![bucket],
    };
    ServerCapacityResourceRequest {
        resource_id: Some("db".into()),
        has: Some(lease()),
        wants: vec![band],
        held: Some(60.0),
        integer: Some(true),
        peak: Some(90.0),
        unenforced: Some(UnenforcedUnits { asked: Some(300), passed: Some(7), silent: Some(2) }),
    }
}

fn to_client() -> ResourceResponse {
    let tier = DomainTier {
        limit: 100,
        window_nanos: 1_000_000_000,
        active_nanos: 5_000_000_000,
        cooldown_nanos: Some(60_000_000_000),
        is_skippable: Some(true),
        count: Some(DomainCount::Sliding.into()),
        slices: Some(8),
    };
    let contract = DomainContract {
        policy: vec![DomainPolicy {
            tier: vec![tier],
            hard_limit: Some(200),
            global_limit: Some(400),
            windows: Some(DomainWindows::Reset.into()),
        }],
    };
    let domains = DomainPolicies {
        version: 0x00c0_ffee,
        default: Some(contract.clone()),
        r#override: vec![DomainOverride { glob: "acme/*".into(), contract }],
        allow_unconfigured: vec!["trial/".into()],
        ignore_configured: vec!["staff/".into()],
        scope: Some(DomainScope::Shared.into()),
        refuse_unheard: Some(true),
        unenforced: Some(true),
    };
    ResourceResponse {
        resource_id: "db".into(),
        gets: lease(),
        safe_capacity: Some(2.0),
        domains: Some(domains),
    }
}

fn to_node() -> ServerCapacityResourceResponse {
    let algorithm = Algorithm {
        kind: algorithm::Kind::FairShare.into(),
        lease_length: 60,
        refresh_interval: 5,
        parameters: vec![NamedParameter { name: "variant".into(), value: Some("bands".into()) }],
        learning_mode_duration: Some(30),
    };
    ServerCapacityResourceResponse {
        resource_id: "db".into(),
        gets: lease(),
        algorithm: Some(algorithm),
        safe_capacity: Some(2.0),
    }
}

fn look() -> Look {
    let question = TreeQuestion { resources: Some(50), matching: Some("db/*".into()) };
    Look {
        id: 9,
        kind: 1,
        deadline_ms: 1_700,
        most_bytes: 8 << 20,
        most_nodes: 1_000,
        levels: 7,
        body: Some(question.encode_to_vec()),
    }
}

fn job() -> JobNews {
    JobNews { resource_id: Some("lock".into()), done_ms: Some(12), asks_ms: Some(340) }
}

fn view() -> ViewRequest {
    let tokyo = ViewBelow { node: "tokyo".into(), seen: view_below::Seen::CannotBeAsked.into(), view: None };
    let resource = TreeResource {
        resource: "db".into(),
        capacity: 500.0,
        out: 420.0,
        wants: 851.0,
        clients: Some(45),
        is_gauge: Some(true),
        lease_ms: Some(21_000),
        short: Some(80.0),
        ghost: Some(4.0),
        over: Some(1.0),
        is_learning: Some(true),
        is_in_debt: Some(true),
    };
    let node = TreeNode {
        version: Some("0.1.0".into()),
        epoch: Some(71),
        address: Some("paris-1:15000".into()),
        config_version: Some(42),
        later_config: Some(43),
        leading_ms: Some(90_000),
        streams: Some(45),
        older_streams: Some(2),
        resources_in_all: Some(50),
        age_ms: Some(400),
        resource: vec![resource],
    };
    let view = View { content: Some(node.encode_to_vec()), below: vec![tokyo], unnamed: Some(2) };
    ViewRequest { id: Some(9), part: Some(1), is_last: Some(true), body: Some(view.encode_to_vec()) }
}

fn notice() -> NodeNotice {
    NodeNotice { path: vec!["root".into(), "europe".into()], name_taken: Some(true) }
}

fn leader() -> Mastership {
    Mastership { master_address: Some("root-2:15000".into()) }
}

fn hits() -> DomainHits {
    let entry = DomainEntry {
        policy: Some(1),
        tier: Some(2),
        at_nanos: Some(7_000_000_000),
        hits: Some(5),
        is_entered: Some(true),
    };
    DomainHits { domain: Some("acme".into()), entry: vec![entry], all: Some(true), others: Some(6) }
}
