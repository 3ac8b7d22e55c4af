//! The simulations that there are, by their names on the command line.

use std::fmt;
use std::str::FromStr;

use lessor_sim::workload::Scenario;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum What {
    /// One of the seven.
    Scenario(Scenario),
    /// Small trees in which everything goes wrong.
    Swarm,
    /// A large one in which nothing does.
    Simulation,
    /// One of a million clients, whose leaders die.
    Million,
    /// A domain that reaches several clients.
    Domains,
    /// Many clients that share by leases what one limiter could grant.
    Spare,
    /// One client that comes to want more where nothing is free.
    Raise,
    /// Limits on the uses in any window, that several holders keep together.
    Windows,
}

/// A name of nothing that can be simulated.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "scenario {0:?} is not one of one, two, three, four, five, six, seven, swarm, tree, million, domains, spare, raise, windows"
)]
pub(crate) struct UnknownWhat(String);

// === impl What ===

impl FromStr for What {
    type Err = UnknownWhat;

    fn from_str(name: &str) -> Result<What, UnknownWhat> {
        match name {
            "swarm" => Ok(What::Swarm),
            "tree" => Ok(What::Simulation),
            "million" => Ok(What::Million),
            "domains" => Ok(What::Domains),
            "spare" => Ok(What::Spare),
            "raise" => Ok(What::Raise),
            "windows" => Ok(What::Windows),
            name => name.parse().map(What::Scenario).map_err(|_| UnknownWhat(name.to_owned())),
        }
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            What::Scenario(scenario) => scenario.fmt(f),
            What::Swarm => f.write_str("swarm"),
            What::Simulation => f.write_str("tree"),
            What::Million => f.write_str("million"),
            What::Domains => f.write_str("domains"),
            What::Spare => f.write_str("spare"),
            What::Raise => f.write_str("raise"),
            What::Windows => f.write_str("windows"),
        }
    }
}
