//! The tree of a scenario: which jobs stand over which, and where the clients are.

use std::fmt;
use std::str::FromStr;

/// One of the seven scenarios.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Scenario {
    /// Five clients at a root.
    One,
    /// As one; the root has no master from 120 s to 140 s.
    Two,
    /// As one; the root has no master from 120 s to 190 s, longer than any lease of Doorman's.
    Three,
    /// Five clients at a regional server under a root.
    Four,
    /// A root, three regions, three data centres in each, five clients in each of those.
    Five,
    /// As five; at 150 s two clients want 1000 each.
    Six,
    /// As five; a fault a minute for an hour.
    Seven,
}

/// The parts of a scenario.
#[derive(Clone, PartialEq, Debug)]
pub struct Plan {
    /// Every job before those below it; the first is the root.
    pub jobs: Vec<Job>,
    /// Every client, in the order in which wants are listed.
    pub clients: Vec<WorkloadClient>,
    /// Tasks that may be elected in each job.
    pub tasks_per_job: usize,
    /// The amount that the root has to share, in units of capacity.
    pub capacity: f64,
    /// The amount that a client may use without a lease, in units of capacity. No figure counts it.
    pub safe_capacity: f64,
    /// The amount that every client wants before its first step, in units of capacity.
    pub first_wants: f64,
    /// The last second.
    pub seconds: u64,
}

/// Servers of which one leads.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Job {
    /// As traces call it: `root`, `region:1`, `dc:1:1`.
    pub name: String,
    /// Jobs above it: 0 for the root.
    pub level: usize,
    /// Where its capacity comes from, as a position in the plan; none for the root.
    pub parent: Option<usize>,
}

/// A client and where it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WorkloadClient {
    /// As traces call it: `client:1`, `client:1:2:3`.
    pub name: String,
    /// The job that it asks, as a position in the plan.
    pub job: usize,
}

/// A name that is none of the seven.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("scenario {0:?} is not one of one, two, three, four, five, six, seven")]
pub struct UnknownScenario(pub String);

const CAPACITY: f64 = 500.0;
const SAFE_CAPACITY: f64 = 10.0;
const TASKS_PER_JOB: usize = 3;
const REGIONS: usize = 3;
const DATA_CENTRES: usize = 3;
const CLIENTS: usize = 5;

// === impl Scenario ===

impl Scenario {
    /// All of them, in their order.
    pub const ALL: [Scenario; 7] = [
        Scenario::One,
        Scenario::Two,
        Scenario::Three,
        Scenario::Four,
        Scenario::Five,
        Scenario::Six,
        Scenario::Seven,
    ];

    /// `one` to `seven`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Scenario::One => "one",
            Scenario::Two => "two",
            Scenario::Three => "three",
            Scenario::Four => "four",
            Scenario::Five => "five",
            Scenario::Six => "six",
            Scenario::Seven => "seven",
        }
    }

    /// Its tree and clients.
    #[must_use]
    pub fn plan(self) -> Plan {
        let (jobs, clients) = match self {
            Scenario::One | Scenario::Two | Scenario::Three => (vec![root()], clients_at("client", 0)),
            Scenario::Four => (vec![root(), job("regional".to_owned(), 1, 0)], clients_at("client", 1)),
            Scenario::Five | Scenario::Six | Scenario::Seven => regions(),
        };
        Plan {
            jobs,
            clients,
            tasks_per_job: TASKS_PER_JOB,
            capacity: CAPACITY,
            safe_capacity: SAFE_CAPACITY,
            first_wants: match self {
                Scenario::One | Scenario::Two | Scenario::Three => 110.0,
                Scenario::Four => 100.0,
                Scenario::Five | Scenario::Six | Scenario::Seven => 15.0,
            },
            seconds: if self == Scenario::Seven { 3600 } else { 300 },
        }
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Scenario {
    type Err = UnknownScenario;

    fn from_str(name: &str) -> Result<Scenario, UnknownScenario> {
        let known = Scenario::ALL.into_iter().find(|scenario| scenario.name() == name);
        known.ok_or_else(|| UnknownScenario(name.to_owned()))
    }
}

// === impl Plan ===

impl Plan {
    /// The level at which the clients are: one below the lowest jobs.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.jobs.iter().map(|job| job.level + 1).max().unwrap_or(0)
    }

    /// The names of the levels, the root's first, the clients' last.
    #[must_use]
    pub fn level_names(&self) -> &'static [&'static str] {
        match self.depth() {
            0 | 1 => &["root", "clients"],
            2 => &["root", "region", "clients"],
            _ => &["root", "region", "dc", "clients"],
        }
    }
}

fn root() -> Job {
    Job { name: "root".to_owned(), level: 0, parent: None }
}

fn job(name: String, level: usize, parent: usize) -> Job {
    Job { name, level, parent: Some(parent) }
}

fn clients_at(prefix: &str, job: usize) -> Vec<WorkloadClient> {
    (1..=CLIENTS).map(|client| WorkloadClient { name: format!("{prefix}:{client}"), job }).collect()
}

fn regions() -> (Vec<Job>, Vec<WorkloadClient>) {
    let (mut jobs, mut clients) = (vec![root()], Vec::new());
    for region in 1..=REGIONS {
        let parent = jobs.len();
        jobs.push(job(format!("region:{region}"), 1, 0));
        for centre in 1..=DATA_CENTRES {
            clients.extend(clients_at(&format!("client:{region}:{centre}"), jobs.len()));
            jobs.push(job(format!("dc:{region}:{centre}"), 2, parent));
        }
    }
    (jobs, clients)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_big_tree_has_thirteen_jobs_in_drawing_order() {
        let plan = Scenario::Seven.plan();
        let names: Vec<&str> = plan.jobs.iter().map(|job| job.name.as_str()).collect();
        assert_eq!(names[..6], ["root", "region:1", "dc:1:1", "dc:1:2", "dc:1:3", "region:2"]);
        assert_eq!((names.len(), names[12], plan.clients.len(), plan.depth()), (13, "dc:3:3", 45, 3));
        let site = &plan.clients[5];
        assert_eq!((site.name.as_str(), plan.jobs[site.job].name.as_str()), ("client:1:2:1", "dc:1:2"));
        for job in &plan.jobs[1..] {
            assert_eq!(plan.jobs[job.parent.unwrap()].level + 1, job.level, "{job:?}");
        }
    }

    #[test]
    fn a_scenario_is_known_by_its_name() {
        for scenario in Scenario::ALL {
            assert_eq!(scenario.to_string().parse(), Ok(scenario));
        }
        let error = "eight".parse::<Scenario>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "scenario \"eight\" is not one of one, two, three, four, five, six, seven"
        );
    }
}
