//! The plan of a simulation: its tree of sites, its clients, what there is to share, and what may go wrong.

mod beside;
mod check;
mod domain;
mod limits;
mod memory;
mod shared;

use std::time::Duration;

use lessor_client::{Fallback, Transport};
use lessor_proto::{Amount, Drift};
use lessor_server::election::ElectionConfig;
use lessor_server::node::Claims;
use lessor_server::repository::{Kind, Legacy, Rotate, SharePolicy, SmallLeases};

pub use self::check::BadPlan;
pub use self::domain::DomainPlan;
pub(crate) use self::domain::policies;
pub use self::limits::LimitPlan;
pub use self::memory::{DiskPlan, Keeps, Memory};
pub use self::shared::SharedDomainPlan;
use crate::faults::FaultPlan;

/// With what all keys at etcd begin.
pub(crate) const PREFIX: &str = "lessor";

/// The plan of a simulation.
#[derive(Clone, Debug)]
pub struct SimulationPlan {
    /// The tree: the root first, parents before their children.
    pub sites: Vec<SitePlan>,
    /// The clients.
    pub clients: Vec<ClientPlan>,
    /// The resources to share.
    pub resources: Vec<ResourcePlan>,
    /// The drift that clocks may have, as nodes and sessions are told.
    pub drift: Drift,
    /// Whether the clocks make use of that, and show any date. They all show the same otherwise.
    pub odd_clocks: bool,
    /// The settings of the sessions of clients and nodes.
    pub settings: Settings,
    /// The faults that happen.
    pub faults: FaultPlan,
    /// The closeness with which the oracle looks.
    pub watch: Scrutiny,
    /// Whether grants carry tokens, and claims go by them; else they are believed.
    pub tokens: bool,
    /// The treatment of what claimants give up.
    pub claims: Claims,
    /// The way in which sites come by their leaders.
    pub election: Election,
    /// Whether there are two processes of one name below others, where servers are alone.
    pub namesakes: bool,
    /// The records that servers write when they are alone, and whether sites are given another way to remember.
    pub memory: Memory,
    /// The conduct of clients that are cut off for longer than their leases last.
    pub fallback: Fallback,
    /// Whether each task has a copy of the configuration, which may be an older one than others have.
    pub editions: bool,
    /// Whether they follow it at an etcd, by the numbers of pushes; then each has a copy.
    pub follows: bool,
    /// Processes are of this version or of the one before, drawn for each by this number; absent: all are of this one.
    pub mixed: Option<u64>,
    /// Whether half of Doorman's clients forget the fields that Doorman does not know.
    pub forgetful: bool,
    /// The domain that clients share, if they do.
    pub domain: Option<SharedDomainPlan>,
    /// The limits of the servers.
    pub limits: LimitPlan,
    /// When the first clients begin.
    pub clients_from: Duration,
    /// A rule of a mind that is broken on purpose.
    #[cfg(feature = "mutations")]
    pub mutation: Option<crate::mutation::Mutation>,
}

/// A node of the tree.
#[derive(Clone, Debug)]
pub struct SitePlan {
    /// Its name.
    pub name: String,
    /// The site above; absent for the root.
    pub parent: Option<u32>,
    /// The number of its tasks, one of which leads.
    pub tasks: u8,
    /// The way to the site above.
    pub link: Link,
    /// The transport by which its tasks speak to the site above.
    pub transport: Transport,
    /// Whether its tasks know streams.
    pub streams: bool,
    /// The terms of its leases.
    pub terms: Terms,
    /// For how long a leader goes on of which etcd does not hear.
    pub authority: Duration,
}

/// The way in which sites come by their leaders.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Election {
    /// The first task of each leads from the beginning on, for ever, and writes nothing down: servers that are alone.
    Alone,
    /// Their tasks stand for election at etcd.
    Etcd(EtcdPlan),
}

/// The etcd of a simulation, and how tasks speak to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EtcdPlan {
    /// The time for which etcd is asked to keep the key of a leader of which it hears nothing: whole seconds.
    pub ttl: Duration,
    /// The interval at which a leader speaks to etcd.
    pub keep_alive: Duration,
    /// The time that etcd has to answer.
    pub call_timeout: Duration,
    /// The way there, and back.
    pub link: Link,
}

/// The terms of the leases of a site: whole seconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Terms {
    /// The time for which they last.
    pub lease_length: Duration,
    /// The interval at which holders ask.
    pub refresh_interval: Duration,
}

/// One client.
#[derive(Clone, Debug)]
pub struct ClientPlan {
    /// Its id.
    pub name: String,
    /// The site that it asks.
    pub site: u32,
    /// The way there.
    pub link: Link,
    /// The way in which it asks.
    pub way: Way,
    /// The demands for resources that it has, each resource at most once.
    pub holds: Vec<Hold>,
}

/// The way in which a client asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// Our session over a stream.
    Stream,
    /// Our session, polling.
    Poll,
    /// As Doorman's clients do, but keeping to its lease.
    Legacy,
}

/// The demand of a client for a resource.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Hold {
    /// The index of the resource.
    pub resource: u16,
    /// The amount that is wanted.
    pub wants: f64,
    /// Greater is served first.
    pub priority: i64,
    /// For how many it counts.
    pub weight: u32,
    /// Whether that is not stated but measured, of a rate that is asked for by our session.
    pub is_measured: bool,
}

/// One resource.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResourcePlan {
    /// Its name.
    pub name: String,
    /// A rate or a gauge.
    pub kind: Kind,
    /// The policy by which it is shared.
    pub policy: SharePolicy,
    /// The amount that there is of it.
    pub capacity: Amount,
    /// Of a gauge: how its units are taken in turns.
    pub rotate: Option<Rotate>,
    /// Of a gauge: how long a turn lasts.
    pub quantum: Option<Duration>,
    /// Of a gauge: each unit is a use in a window of this length; absent: units are given back.
    pub window: Option<Duration>,
    /// Of a rate: what may be saved up.
    pub burst: Option<Duration>,
    /// Of a rate: how leases are kept that bring less than a unit in the burst.
    pub small_leases: SmallLeases,
    /// The treatment of Doorman's clients. Where their leases count until they are heard of, they go on for as
    /// long.
    pub legacy: Legacy,
    /// Whose domain it is the lease of, if it is that of a domain.
    pub domain: Option<DomainPlan>,
    /// The index of the resource that it is tried beside, if it is the companion of one.
    pub companion_of: Option<u16>,
    /// The greatest priority that counts.
    pub most_priority: Option<i64>,
    /// The most clients that one holder counts for.
    pub most_clients: Option<u32>,
}

/// The time that a message takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link {
    /// At least this long.
    pub latency: Duration,
    /// And up to so much longer.
    pub jitter: Duration,
}

/// The settings of sessions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// The time to wait for an answer.
    pub timeout: Duration,
    /// The least time between two requests.
    pub spacing: Duration,
    /// The longest wait after failures.
    pub longest_back_off: Duration,
    /// Whether those who poll ask before their time when there is news.
    pub eager: bool,
    /// Whether programs keep permits of gauges that have ended: what they do under them does not count, and never again.
    pub overstays: bool,
}

/// The closeness with which the oracle looks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scrutiny {
    /// At everything after every event.
    Close,
    /// At the sum of all beliefs after every event, and at everything once in so many.
    Loose(u32),
}

// === impl SimulationPlan ===

impl SimulationPlan {
    /// A simulation of one site with so many streaming clients of one resource, where nothing goes wrong.
    #[must_use]
    pub fn flat(clients: usize, capacity: f64, wants: f64) -> SimulationPlan {
        SimulationPlan::tree(&[], clients, capacity, wants)
    }

    /// A regular tree: `fan_out` says how many children each site of a level has, `clients` how many clients each site
    /// of the last. One resource, everybody streams, nothing goes wrong.
    #[must_use]
    pub fn tree(fan_out: &[usize], clients: usize, capacity: f64, wants: f64) -> SimulationPlan {
        let mut sites = vec![SitePlan::new("root", None)];
        let mut level = vec![0];
        for (depth, &children) in fan_out.iter().enumerate() {
            let mut next = Vec::with_capacity(level.len() * children);
            for &parent in &level {
                for _ in 0..children {
                    let index = sites.len() as u32;
                    sites.push(SitePlan::new(format!("n{}-{}", depth + 1, next.len()), Some(parent)));
                    next.push(index);
                }
            }
            level = next;
        }
        let of = |(site, number): (u32, usize)| ClientPlan {
            name: format!("c{site}-{number}"),
            site,
            link: Link::NEAR,
            way: Way::Stream,
            holds: vec![Hold::new(0, wants)],
        };
        let seats = level.iter().flat_map(|&site| (0..clients).map(move |number| (site, number)));
        SimulationPlan {
            clients: seats.map(of).collect(),
            sites,
            resources: vec![ResourcePlan::rate("db", capacity)],
            drift: Drift::DEFAULT,
            odd_clocks: false,
            settings: Settings::default(),
            faults: FaultPlan::none(),
            watch: Scrutiny::Close,
            tokens: true,
            claims: Claims::Freed,
            election: Election::Etcd(EtcdPlan::default()),
            namesakes: false,
            memory: Memory::default(),
            fallback: Fallback::Pessimistic,
            editions: false,
            follows: false,
            mixed: None,
            forgetful: false,
            domain: None,
            limits: LimitPlan::default(),
            clients_from: Duration::from_secs(1),
            #[cfg(feature = "mutations")]
            mutation: None,
        }
    }
}

// === impl SitePlan ===

impl SitePlan {
    /// A site of three tasks with leases of a minute.
    #[must_use]
    pub fn new(name: impl Into<String>, parent: Option<u32>) -> SitePlan {
        SitePlan {
            name: name.into(),
            parent,
            tasks: 3,
            link: Link::NEAR,
            transport: Transport::Stream,
            streams: true,
            terms: Terms::default(),
            authority: Duration::from_secs(4),
        }
    }
}

// === impl EtcdPlan ===

impl EtcdPlan {
    /// The settings with which a task of `node` at `address` stands for election, in life `nonce`.
    pub(crate) fn candidate(
        &self,
        node: &str,
        address: &str,
        authority: Duration,
        drift: Drift,
        nonce: u64,
    ) -> ElectionConfig {
        ElectionConfig {
            prefix: PREFIX.to_owned(),
            ttl: self.ttl,
            authority,
            keep_alive: self.keep_alive,
            call_timeout: self.call_timeout,
            drift,
            ..ElectionConfig::new(node, address, nonce)
        }
    }
}

impl Default for EtcdPlan {
    /// As a server is set up by itself; a millisecond away.
    fn default() -> EtcdPlan {
        EtcdPlan {
            ttl: Duration::from_secs(10),
            keep_alive: Duration::from_secs(1),
            call_timeout: Duration::from_secs(1),
            link: Link { latency: Duration::from_micros(500), jitter: Duration::from_millis(1) },
        }
    }
}

// === impl Terms ===

impl Default for Terms {
    /// Leases of 60 s, asked about every 8 s.
    fn default() -> Terms {
        Terms { lease_length: Duration::from_secs(60), refresh_interval: Duration::from_secs(8) }
    }
}

// === impl Hold ===

impl Hold {
    /// A demand for `wants` of a resource, as urgent as everybody's.
    #[must_use]
    pub fn new(resource: u16, wants: f64) -> Hold {
        Hold { resource, wants, priority: 0, weight: 1, is_measured: false }
    }
}

// === impl ResourcePlan ===

impl ResourcePlan {
    /// A rate of `capacity` units a second, shared fairly.
    #[must_use]
    pub fn rate(name: impl Into<String>, capacity: f64) -> ResourcePlan {
        ResourcePlan {
            name: name.into(),
            kind: Kind::Rate,
            policy: SharePolicy::FairShare,
            capacity: Amount::from_f64(capacity),
            rotate: None,
            quantum: None,
            window: None,
            burst: None,
            small_leases: SmallLeases::default(),
            legacy: Legacy::default(),
            domain: None,
            companion_of: None,
            most_priority: None,
            most_clients: None,
        }
    }
}

// === impl Link ===

impl Link {
    /// 1 to 2 ms.
    pub const NEAR: Link = Link { latency: Duration::from_millis(1), jitter: Duration::from_millis(1) };

    /// Always that long.
    #[must_use]
    pub const fn fixed(latency: Duration) -> Link {
        Link { latency, jitter: Duration::ZERO }
    }
}

// === impl Settings ===

impl Default for Settings {
    /// As a session is set up by itself.
    fn default() -> Settings {
        Settings {
            timeout: Duration::from_secs(5),
            spacing: Duration::from_secs(1),
            longest_back_off: Duration::from_secs(30),
            eager: true,
            overstays: false,
        }
    }
}
