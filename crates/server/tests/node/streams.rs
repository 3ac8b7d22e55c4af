//! Stories of streams: `REWRITE=1 cargo test -p lessor-server --test node` records them again, to be read as a diff.
//!
//! | directive | what it does |
//! | --- | --- |
//! | `node capacity=N [lease=60] [refresh=5] [epoch=1] [out=N longest=S] [left=N over=S] [authority=S] [closed] [leaf] [proof=N] [marks] [prompt] [keys] [defer]` | a new node; `out` may be out under earlier leaders for `longest`, who may go on for `authority` or are `closed`, and so much of that was left from before the last of them and is `over` so soon; a `leaf` gets its capacity from a node above, and finds the `proof` of a lease of that epoch there; it keeps `marks`, which are written at once if `prompt`; claims are believed with tokens, where there are `keys`; what claimants give up they `defer` |
//! | `at` | one event a line: `SECONDS NAME EVENT`; what comes out is shown |
//! | `until seconds=N` | time passes |
//! | `configure capacity=N [fraction=N safe=S]` | the template changes; a fraction is reserved for floors, which last that long |
//! | `resign` | the leader resigns |
//! | `books` | what the node has charged |
//! | `claims` | what has become of claims |
//!
//! Events: `hello [inc=N] [node]`, `wN [nN] [held=N]` reports, `beat` a heartbeat, `release`, `bye`, `break`, `stuck` and
//! `unstuck` stops and begins to read. `has=N` shows a lease of an earlier leader first, with a token for N or `token=N`,
//! or for another life with `for=INC`, or a `forged` one, or of `epoch=N`, which `counts=S` seconds more. From the node above: `SECONDS above welcome` and `SECONDS above lease=N for=S`, of
//! `epoch=N`. From the record: `SECONDS record
//! written`, or `lost` when nobody knows.

use std::fmt::Write as _;
use std::time::Duration;

use datadriven::{TestCase, walk};
use lessor_client::Transport;
use lessor_client::internals::holding::Proof;
use lessor_client::internals::session::{self, Action};
use lessor_proto::message::{Band, Bands, Down, Grant, HolderKind, NodeNotice, Order, Up, Welcome};
use lessor_proto::{Amount, Epoch, Features, Incarnation, ReportId, Time};
use lessor_server::node::{ClaimTally, Claims, MarkWrite, NodeConfig, ParentConfig, StatusQuery};
use lessor_server::record::{Record, RestOver, Terms};
use lessor_server::repository::{Field, Fraction, Template};
use lessor_server::token::{Bearer, Content, Key, TokenKeys};

use super::holders::{repository, resource, template, wants};
use super::listeners::{Hall, Heard, seconds};

#[test]
fn stream_stories() {
    walk("tests/node/streams", |file| {
        let mut hall = Hall::new(template(0.0), NodeConfig::new("root", Epoch(1)));
        file.run(|case| run(&mut hall, case));
    });
}

fn run(hall: &mut Hall, case: &TestCase) -> String {
    let number = |key: &str| -> Option<f64> {
        case.args.get(key).map(|values| values.join("").parse().expect("a number"))
    };
    match case.directive.as_str() {
        "node" => {
            let has = |key: &str| case.args.contains_key(key);
            *hall = Hall::new(terms(&number), config(&number, &has));
            hall.record.prompt = has("prompt");
            show(hall.hear())
        }
        "configure" => {
            hall.node.reload(hall.now, repository(terms(&number)));
            show(hall.hear())
        }
        "until" => show(hall.until(Time::ZERO + seconds(number("seconds").expect("until takes seconds")))),
        "at" => case.input.lines().map(|line| event(hall, line)).collect(),
        "resign" => {
            let write = hall.node.resign(hall.now).expect("it keeps marks");
            format!("  record: {}\n", written(&write)) + &show(hall.hear())
        }
        "books" => books(hall),
        "claims" => {
            let tally = hall.node.status(hall.now, &StatusQuery::default()).tally;
            let ClaimTally { honoured, missing, forged, not_earlier, too_large, .. } = tally.claims;
            format!(
                "honoured {honoured}, missing {missing}, forged {forged}, not earlier {not_earlier}, too large {too_large}\n"
            )
        }
        other => panic!("no such directive: {other}"),
    }
}

fn terms(number: &dyn Fn(&str) -> Option<f64>) -> Template {
    let mut terms = template(number("capacity").unwrap_or(0.0));
    terms.lease_length = seconds(number("lease").unwrap_or(60.0));
    terms.refresh_interval = seconds(number("refresh").unwrap_or(5.0));
    let fraction = number("fraction").unwrap_or(0.0);
    terms.safe_fraction = Fraction::check(Field::SafeFraction, fraction).expect("a fraction");
    terms.safe_lease = number("safe").map(seconds);
    terms
}

/// The keys that tokens are made with.
fn keys() -> TokenKeys {
    TokenKeys::new(Key::new([7; 32]))
}

fn config(number: &dyn Fn(&str) -> Option<f64>, has: &dyn Fn(&str) -> bool) -> NodeConfig {
    let mut config = NodeConfig::new("root", Epoch(number("epoch").unwrap_or(1.0) as u64));
    config.record = number("out").map(|out| Record {
        marks: [(resource(), Amount::from_f64(out))].into(),
        longest_lease: seconds(number("longest").expect("out takes longest")),
        authority: seconds(number("authority").unwrap_or(0.0)),
        closed: has("closed"),
        proofs: number("proof").map(|epoch| (resource(), proof(epoch as u64))).into_iter().collect(),
        rests: number("left").map(|left| (resource(), Amount::from_f64(left))).into_iter().collect(),
        rest_over: RestOver { lease: seconds(number("over").unwrap_or(0.0)), safe_lease: Duration::ZERO },
        epoch: Epoch(config.epoch.0.saturating_sub(1)),
        ..Record::default()
    });
    config.trust_claims = true;
    config.keys = has("keys").then(keys);
    config.marks = has("marks");
    config.claims = if has("defer") { Claims::Deferred } else { Claims::Freed };
    config.parent = has("leaf").then(|| ParentConfig {
        servers: vec!["above:1".into()],
        transport: Transport::Stream,
        eager: true,
    });
    config
}

/// The proof that an earlier leader of a leaf has left to show its lease with.
fn proof(epoch: u64) -> Proof {
    Proof { order: Order { epoch: Epoch(epoch), seq: 4 }, token: vec![9; 3].into() }
}

fn event(hall: &mut Hall, line: &str) -> String {
    let mut words = line.split_whitespace();
    let at =
        words.next().and_then(|at| at.strip_suffix('s')?.parse().ok()).expect("a line begins with seconds");
    let mut said = show(hall.until(Time::ZERO + seconds(at)));
    let name = words.next().expect("then who");
    let words: Vec<&str> = words.collect();
    writeln!(said, "{name} {}", words.join(" ")).expect("a string takes it");
    let number = |key: &str| -> Option<f64> {
        let word = words.iter().find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
        word.map(|number| number.parse().expect("a number"))
    };
    match words[0] {
        _ if name == "above" => from_above(hall, &number),
        _ if name == "record" => hall.commit(words[0] == "written"),
        "hello" => {
            let kind = if words.contains(&"node") { HolderKind::Node } else { HolderKind::Client };
            hall.features = if words.contains(&"older") { Features::BASE } else { Features::CURRENT };
            hall.hello(name, kind, number("inc").map(|number| number as u64));
        }
        "beat" => hall.report(name, None, None, true),
        "release" => hall.say(name, Up::Release { id: ReportId(9), resources: vec![resource()] }),
        "bye" => hall.say(name, Up::Bye),
        "break" => hall.break_off(name),
        "stuck" => hall.listeners.get_mut(name).expect("a listener").stuck = true,
        "unstuck" => hall.unstick(name),
        _ => report(hall, name, &words, &number),
    }
    said + &show(hall.hear())
}

fn report(hall: &mut Hall, name: &str, words: &[&str], number: &dyn Fn(&str) -> Option<f64>) {
    let listener = hall.listeners.get_mut(name).expect("a listener");
    if let Some(has) = number("has") {
        let order = Order { epoch: Epoch(number("epoch").unwrap_or(0.0) as u64), seq: 7 };
        let (kind, incarnation) =
            (if listener.is_node() { HolderKind::Node } else { HolderKind::Client }, listener.incarnation);
        let bearer = Bearer {
            node: "root",
            kind,
            holder: name.split('/').next().unwrap_or(name),
            incarnation: number("for").map_or(incarnation, |life| Incarnation(life as u64)),
            resource: &resource(),
        };
        let content = Content { order, amount: Amount::from_f64(number("token").unwrap_or(has)) };
        let mut token = keys().token(&bearer, content);
        token[20] ^= u8::from(words.contains(&"forged"));
        let grant = Grant {
            resource: resource(),
            capacity: Amount::from_f64(has),
            length: Duration::from_secs(60),
            refresh_interval: Duration::from_secs(5),
            order: Some(order),
            basis: None,
            token: if number("token") == Some(0.0) { Vec::new() } else { token },
            ack_wanted: false,
            safe_leased: false,
            learning: false,
            learning_left: None,
            safe_capacity: None,
            burst: None,
            due: None,
            window: None,
            generation: None,
            sharing: None,
            domains: None,
            before: None,
            earlier: None,
            bound_by: None,
            unenforced: false,
            beside: false,
        };
        listener.lease = Some((grant, Time::MAX));
        listener.counts = number("counts").map(Duration::from_secs_f64);
    }
    let of = |letter: char| words.iter().find_map(|word| word.strip_prefix(letter)?.parse::<f64>().ok());
    let amount = of('w').expect("wN");
    let subclients = of('n').map_or(1, |n| n as u32);
    let bands: Bands = match listener.is_node() {
        true => [Band { priority: 0, subclients, wants: amount }].into_iter().collect(),
        false => wants(amount).bands,
    };
    hall.report(name, Some(bands), number("held").map(Amount::from_f64), words.contains(&"beat"));
}

/// The node above welcomes, or grants.
fn from_above(hall: &mut Hall, number: &dyn Fn(&str) -> Option<f64>) {
    let session = hall.node.parent_session().expect("a leaf");
    let (stream, received) = (session.counts().streams, session.counts().received);
    let epoch = number("epoch").map_or(1, |epoch| epoch as u64);
    let welcome = Welcome {
        epoch: Epoch(epoch),
        claims_open: true,
        claims_open_in: None,
        heartbeat: Duration::from_secs(5),
        features: Features::CURRENT,
    };
    let down = match number("lease") {
        None => Down::Welcome(welcome),
        Some(lease) => Down::Grants(vec![Grant {
            resource: resource(),
            capacity: Amount::from_f64(lease),
            length: seconds(number("for").unwrap_or(60.0)),
            refresh_interval: Duration::from_secs(5),
            order: Some(Order { epoch: Epoch(epoch), seq: received }),
            basis: number("basis").map(|basis| ReportId(basis as u64)),
            token: Vec::new(),
            ack_wanted: number("ack").is_some(),
            safe_leased: false,
            learning: false,
            learning_left: None,
            safe_capacity: None,
            burst: None,
            due: None,
            window: None,
            generation: None,
            sharing: None,
            domains: None,
            before: None,
            earlier: None,
            bound_by: None,
            unenforced: false,
            beside: false,
        }]),
    };
    hall.node.on_parent(hall.now, session::Event::Down { id: stream, down });
}

fn show(heard: Vec<(Time, Heard)>) -> String {
    let mut said = String::new();
    for (at, heard) in heard {
        let line = match heard {
            Heard::Closed(name) => format!("{name}: closed"),
            Heard::Down(name, down) => format!("{name}: {}", what(&down)),
            Heard::Parent(action) => format!("above: {}", up(&action)),
            Heard::Record(write) => format!("record: {}", written(&write)),
        };
        writeln!(said, "  {at} {line}").expect("a string takes it");
    }
    said
}

fn what(down: &Down) -> String {
    match down {
        Down::Welcome(Welcome { epoch, heartbeat, claims_open, claims_open_in, .. }) => {
            let claims = match claims_open_in {
                Some(wait) => format!(", claims in {wait:?}"),
                None if *claims_open => String::new(),
                None => ", no claims yet".to_owned(),
            };
            format!("welcome to epoch {epoch}, a heartbeat every {heartbeat:?}{claims}")
        }
        Down::Grants(grants) if grants.is_empty() => "no grants".to_owned(),
        Down::Grants(grants) => grants.iter().map(grant).collect::<Vec<_>>().join(", "),
        Down::Renewed { basis, grants } => format!("renewed from #{basis} after {grants}"),
        Down::Released { id } => format!("released {id}"),
        Down::Refused { id, why } => format!("#{id} refused: {why}"),
        Down::Domains(news) => format!("{news:?}"),
        Down::Units { resource, units, .. } => format!("{units} of {resource}"),
        Down::Notice(NodeNotice { path, name_taken }) => {
            let taken = if *name_taken { ", a name that another has" } else { "" };
            format!("below {}{taken}", path.join(" -> "))
        }
        Down::Look(look) => format!("look {}", look.id),
        Down::Jobs(jobs) => format!("{jobs:?}"),
        Down::NoticeInGrants(notice) => format!("no grants, but {}", what(&Down::Notice(notice.clone()))),
        Down::Redirect(leader) => format!("ask {leader:?}"),
    }
}

fn written(write: &MarkWrite) -> String {
    let mut said = format!("#{}", write.ticket);
    if let Some(Terms { longest_lease, longest_safe_lease, authority, rest_over, .. }) = write.change.terms {
        let closed = if write.closed { ", closed" } else { "" };
        let floors = match longest_safe_lease.is_zero() {
            true => String::new(),
            false => format!(", floors of {longest_safe_lease:?}"),
        };
        let rest = rest_over.map_or(String::new(), |over| format!(", the rest over in {:?}", over.lease));
        write!(said, " leases of {longest_lease:?}{floors}, authority of {authority:?}{rest}{closed}")
            .expect("a string takes it");
    }
    for (id, amount) in &write.change.marks {
        let proof = write
            .change
            .proofs
            .get(id)
            .map(|Proof { order, .. }| format!(" by {}/{}", order.epoch, order.seq));
        let rest = write.change.rests.get(id).map_or(String::new(), |rest| format!(", {rest} of it left"));
        write!(said, " {id} {amount}{}{rest}", proof.unwrap_or_default()).expect("a string takes it");
    }
    for id in &write.change.deletes {
        write!(said, " {id} nothing").expect("a string takes it");
    }
    said
}

fn grant(grant: &Grant) -> String {
    let basis = grant.basis.unwrap_or(ReportId(0));
    let ack = if grant.ack_wanted { ", ack wanted" } else { "" };
    let seq = grant.order.map_or(0, |order| order.seq);
    let floor = if grant.safe_leased { ", with a floor" } else { "" };
    format!("g{} as {seq} for {}s from #{basis}{ack}{floor}", grant.capacity, grant.length.as_secs_f64())
}

fn up(action: &Action) -> String {
    match action {
        Action::Connect { to, hello, .. } => format!("connect to {to} as {}", hello.holder),
        Action::Send { up: Up::Report(report), .. } => {
            let beat = if report.renew_all { " beat" } else { "" };
            let reports = report.reports.iter().map(|report| {
                let bands = report.bands.iter().map(|band| format!("{}x{}", band.wants, band.subclients));
                let has = report.has.as_ref().map_or("nothing".to_owned(), |has| has.capacity.to_string());
                let old = report.has.as_ref().is_some_and(|has| has.order == Some(proof(1).order));
                let has = if old { format!("{has} of the proof") } else { has };
                let held = report.held.map_or(String::new(), |held| format!(" held {held}"));
                format!(" wants {} has {has}{held}", bands.collect::<Vec<_>>().join("+"))
            });
            format!("report #{}{beat}{}", report.id, reports.collect::<String>())
        }
        Action::Send { up, .. } => format!("{up:?}"),
        Action::Disconnect { .. } => "disconnect".to_owned(),
        other => format!("{other:?}"),
    }
}

fn books(hall: &Hall) -> String {
    let Some(books) = hall.node.books(hall.now, &resource()) else { return "nobody\n".to_owned() };
    let limit = books.limit.map_or("none".to_owned(), |limit| limit.to_string());
    let mut said = format!("limit {limit} out {}", Amount::from_micros(books.total as u64));
    if books.ghost > Amount::ZERO {
        write!(said, " of which to nobody known {}", books.ghost).expect("a string takes it");
    }
    said += if books.in_debt { " in debt\n" } else { "\n" };
    for child in &books.children {
        let share = child.share.unwrap_or_default();
        let line = format!("{} has {} wants {} share {share}", child.holder, child.charge, child.wants);
        let ends = child.ends.map_or(Duration::ZERO, |end| end.since(hall.now));
        writeln!(said, "{line} ends in {:.1}s", ends.as_secs_f64()).expect("a string takes it");
    }
    said
}
