//! Caps of a template: an extreme priority, or a node that says it stands for everybody, leaves others their shares.

use std::time::Duration;

use lessor_proto::message::{Ask, Band, Has, HolderKind, Report};
use lessor_proto::{Amount, ClientId, Epoch, Incarnation, ReportId, Time};
use lessor_server::node::{Node, NodeConfig};
use lessor_server::repository::{Repository, Template};

use super::holders::{resource, template};

/// A holder that asks again and again, and keeps to what it is granted.
struct Asker {
    name: ClientId,
    kind: HolderKind,
    band: Band,
    has: Option<Has>,
    reports: u64,
}

// === impl Asker ===

impl Asker {
    fn new(name: &str, kind: HolderKind, band: Band) -> Asker {
        Asker { name: ClientId::new(name, 64).expect("a name"), kind, band, has: None, reports: 0 }
    }

    fn ask(&mut self, node: &mut Node, now: Time) -> Amount {
        self.reports += 1;
        let report = Report {
            resource: resource(),
            bands: [self.band].into_iter().collect(),
            has: self.has.take(),
            held: None,
            domains: None,
            integer: None,
            peak: None,
            unenforced: None,
        };
        let ask = Ask {
            kind: self.kind,
            holder: self.name.clone(),
            incarnation: Some(Incarnation(7)),
            report_id: Some(ReportId(self.reports)),
            target_epoch: None,
            line: None,
            reports: vec![report],
        };
        let grant = node.ask(now, &ask).expect("a good request").grants.remove(0);
        self.has = Some(Has {
            capacity: grant.capacity,
            order: grant.order,
            token: grant.token,
            lasts: None,
            expiry: 0,
        });
        grant.capacity
    }
}

/// The shares of two holders who want everything, after they have asked in turns for long enough.
fn shares(template: Template, mut first: Asker, mut second: Asker) -> [Amount; 2] {
    let repository = Repository::new(vec![template]).expect("a good template");
    let mut node = Node::new(Time::ZERO, NodeConfig::new("root", Epoch(1)), repository);
    let mut shares = [Amount::ZERO; 2];
    for second_of_time in 1..20 {
        let now = Time::ZERO + Duration::from_secs(second_of_time);
        shares = [first.ask(&mut node, now), second.ask(&mut node, now)];
    }
    shares
}

fn units(first: u64, second: u64) -> [Amount; 2] {
    [first, second].map(Amount::from_units)
}

fn everything(priority: i64, subclients: u32) -> Band {
    Band { priority, subclients, wants: 1e9 }
}

#[test]
fn a_priority_above_the_greatest_counts_as_that() {
    let urgent = || Asker::new("urgent", HolderKind::Client, everything(i64::MAX, 1));
    let usual = || Asker::new("usual", HolderKind::Client, everything(3, 1));
    let open = template(100.0);
    assert_eq!(shares(open.clone(), urgent(), usual()), units(100, 0), "without a cap it takes everything");
    let capped = Template { most_priority: Some(3), ..open };
    assert_eq!(shares(capped.clone(), urgent(), usual()), units(50, 50));
    // Below it priorities are what they were.
    let modest = Asker::new("modest", HolderKind::Client, everything(2, 1));
    assert_eq!(shares(capped, usual(), modest), units(100, 0));
}

#[test]
fn a_node_stands_for_no_more_clients_than_it_may() {
    let inflated = || Asker::new("paris", HolderKind::Node, everything(0, u32::MAX));
    let client = || Asker::new("client", HolderKind::Client, everything(0, 1));
    let open = template(100.0);
    let [_, left] = shares(open.clone(), inflated(), client());
    assert!(left < Amount::from_micros(1_000), "without a cap a client has {left}");
    let capped = Template { most_clients: Some(3), ..open };
    assert_eq!(shares(capped, inflated(), client()), units(75, 25));
}

#[test]
fn a_cap_that_changes_counts_at_once() {
    let open = template(100.0);
    let reload = |node: &mut Node, now, template| {
        node.reload(now, Repository::new(vec![template]).expect("a good template"));
    };
    let due = |node: &Node, now| -> Vec<f64> {
        let mut books = node.books(now, &resource()).expect("books").children;
        books.sort_by(|one, other| one.holder.cmp(&other.holder));
        books.iter().map(|book| book.share.expect("a share").as_f64().round()).collect()
    };
    let mut node = Node::new(
        Time::ZERO,
        NodeConfig::new("root", Epoch(1)),
        Repository::new(vec![open.clone()]).expect("a good template"),
    );
    let now = Time::ZERO + Duration::from_secs(1);
    Asker::new("client", HolderKind::Client, everything(0, 1)).ask(&mut node, now);
    Asker::new("paris", HolderKind::Node, everything(0, 9)).ask(&mut node, now);
    Asker::new("urgent", HolderKind::Client, everything(5, 1)).ask(&mut node, now);
    assert_eq!(due(&node, now), [0.0, 0.0, 100.0]);
    reload(&mut node, now, Template { most_priority: Some(0), ..open.clone() });
    assert_eq!(due(&node, now), [9.0, 82.0, 9.0], "nobody has reported since");
    let both = Template { most_priority: Some(0), most_clients: Some(3), ..open.clone() };
    reload(&mut node, now, both);
    assert_eq!(due(&node, now), [20.0, 60.0, 20.0]);
    // What they said is known.
    reload(&mut node, now, Template { most_clients: Some(3), ..open.clone() });
    assert_eq!(due(&node, now), [0.0, 0.0, 100.0]);
    reload(&mut node, now, Template { most_priority: Some(0), ..open });
    assert_eq!(due(&node, now), [9.0, 82.0, 9.0]);
}
