//! The door for programs that ask PoolCounter for locks, in flags.

use anyhow::{Context, bail};
use clap::Args;
use lessor_doors::rules::RuleBook;
use lessor_doors::shell::{DoorAddress, Listening};

/// Where it is, and what it does without a lease.
#[derive(Clone, Debug, Args)]
pub(crate) struct PoolFlags {
    /// Where to serve locks as PoolCounter does, whose port is 7531; the rules have to say pool:. May be given several times
    #[arg(long, env = "LESSOR_DOORS_POOL", value_name = "HOST:PORT", value_delimiter = ',')]
    pub(super) pool: Vec<DoorAddress>,
    /// Give a lock of --pool also where nothing is leased
    #[arg(long, env = "LESSOR_DOORS_POOL_OPEN", requires = "pool")]
    pool_open: bool,
}

// === impl PoolFlags ===

impl PoolFlags {
    pub(super) fn is_somewhere(&self) -> bool {
        !self.pool.is_empty()
    }

    /// Whether the rules say how many may work.
    pub(super) fn check(&self, book: &RuleBook) -> anyhow::Result<()> {
        if self.is_somewhere() && book.pool.is_none() {
            bail!(
                "--pool: the rules say nothing of it; wanted pool: {{workers: N}} with the most workers of a key"
            );
        }
        Ok(())
    }

    /// Opens the doors, and says where they are.
    pub(super) async fn open(&self, listening: &mut Listening) -> anyhow::Result<Vec<DoorAddress>> {
        let mut opened = Vec::new();
        for address in &self.pool {
            opened.push(listening.open_pool(address, self.pool_open).await.context("--pool")?);
        }
        Ok(opened)
    }
}
