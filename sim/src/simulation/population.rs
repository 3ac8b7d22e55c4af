//! The population of a simulation: its clients, what they hold, and the programs behind that.

use std::collections::BTreeMap;
use std::ops::Range;

use lessor_client::internals::companions::Companions;

use crate::client::Client;
use crate::holding::Holding;
use crate::programs::Programs;
use crate::shared_domain::SharedDomain;

/// All clients with what is theirs.
#[derive(Debug)]
pub(crate) struct Population {
    pub(crate) clients: Vec<Client>,
    pub(crate) holdings: Vec<Holding>,
    /// The programs behind them.
    pub(crate) programs: Programs,
    /// The domain that clients share, if they do.
    pub(crate) domain: Option<Box<SharedDomain>>,
    /// The companions that clients hold, by client.
    pub(crate) companions: BTreeMap<u32, Companions>,
}

// === impl Population ===

impl Population {
    /// Nobody, where there will be so many clients with so many holdings.
    pub(super) fn with_capacity(clients: usize, holdings: usize) -> Population {
        Population {
            clients: Vec::with_capacity(clients),
            holdings: Vec::with_capacity(holdings),
            programs: Programs::default(),
            domain: None,
            companions: BTreeMap::new(),
        }
    }

    /// The clients, by number.
    pub(super) fn numbers(&self) -> Range<u32> {
        0..self.clients.len() as u32
    }

    /// The holdings of a client.
    pub(crate) fn holdings_of(&self, client: u32) -> impl Iterator<Item = &Holding> {
        self.clients[client as usize].holds.clone().map(|hold| &self.holdings[hold as usize])
    }
}
