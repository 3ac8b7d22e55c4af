//! The contract of the simulated domain: tiers from the command line, or what a file says of a domain.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::{ArgGroup, Args, ValueEnum};
use lessor_algorithms::tiers::{Contract, TierPolicy, Windows, normalise};
use lessor_client::internals::domain::Rule;
use lessor_proto::ResourceId;
use lessor_server::shell::source;
use lessor_sim::tiers::Tiers;

/// The syntax of a tier.
const TIER: &str = "A tier, LIMIT/WINDOW[:ACTIVE[:COOLDOWN]][:skippable][:COUNT], COUNT being exact, sliding/K, fixed \
    or bucket; the active time is the window if it is not there, the cooldown none. Several in ascending order are one policy";

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("policy").args(["tier", "config"]).required(true))]
pub(crate) struct Follows {
    // Not a comment of rustdoc, which takes brackets for links.
    #[arg(long, value_name = "TIER", help = TIER)]
    tier: Vec<Tiers>,
    /// Another policy that must hold as well, its tiers with commas between them. Several are a contract
    #[arg(long, value_name = "TIER,TIER", requires = "tier")]
    and: Vec<Tiers>,
    /// At most so many hits in any second
    #[arg(long, value_name = "N", requires = "tier")]
    hard: Option<u32>,
    /// At most so many hits in any second, those of --others among them
    #[arg(long, value_name = "N", requires = "tier")]
    global: Option<u32>,
    /// Whether hits of a tier's earlier active time count when it is entered again
    #[arg(long, value_name = "WAY", requires = "tier", default_value = "keep")]
    windows: WindowsWay,
    /// The policies that a configuration has for --domain of --resource
    #[arg(long, value_name = "FILE", requires = "resource", requires = "domain")]
    config: Option<PathBuf>,
    /// A resource of that file
    #[arg(long, value_name = "NAME", requires = "config")]
    resource: Option<String>,
    /// One of its domains
    #[arg(long, value_name = "NAME", requires = "config")]
    domain: Option<String>,
}

/// Earlier hits of a tier that is entered again: as templates say it with `windows`.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum WindowsWay {
    /// They count for the whole window
    Keep,
    /// They are forgotten, as in Charon's paper
    Reset,
}

/// The longest name of a resource that is looked for, in bytes.
const LONGEST: usize = 4096;

// === impl Follows ===

impl Follows {
    /// The policies in the form in which clients have them.
    pub(super) fn contract(&self) -> anyhow::Result<Contract> {
        match (&self.config, &self.resource, &self.domain) {
            (Some(file), Some(resource), Some(domain)) => configured(file, resource, domain),
            _ => self.written(),
        }
    }

    fn written(&self) -> anyhow::Result<Contract> {
        let tiers = Tiers(self.tier.iter().flat_map(|tiers| tiers.0.clone()).collect());
        let mut policies = vec![tiers.policy(self.hard, self.global).context("--tier")?];
        for tiers in &self.and {
            policies.push(tiers.clone().policy(None, None).context("--and")?);
        }
        let windows = match self.windows {
            WindowsWay::Keep => Windows::Keep,
            WindowsWay::Reset => Windows::Reset,
        };
        let policies = policies.into_iter().map(|policy| policy.with_windows(windows));
        let normal = policies.zip(1..).map(|(policy, number)| noted(&policy, number));
        Ok(Contract::new(normal.collect())?)
    }
}

/// Returns the normal form of a policy, as a server would deliver it; and says what was changed.
fn noted(policy: &TierPolicy, number: usize) -> TierPolicy {
    let (normal, changes) = normalise(policy);
    for change in changes {
        eprintln!("note: policy {number}: {change}");
    }
    normal
}

fn configured(file: &Path, resource: &str, domain: &str) -> anyhow::Result<Contract> {
    let name = file.display();
    let repository = source::load(file).with_context(|| name.to_string())?;
    let id = ResourceId::new(resource, LONGEST).context("--resource")?;
    let Some(template) = repository.find(&id) else {
        bail!("--resource: found {resource:?}, wanted one that a template of {name} matches");
    };
    let glob = &template.glob;
    let Some(domains) = &template.domains else {
        bail!(
            "--resource: found {resource:?}, whose template \"{glob}\" has no domains; wanted one that has"
        );
    };
    let why = match domains.policies.rule(domain) {
        Rule::Contract(contract) => return Ok(Contract::clone(&contract)),
        Rule::Refused => "is refused, as no policy is for it",
        Rule::Unconfigured => "is granted without a policy, by allow_unconfigured",
        Rule::Ignored => "is granted whatever its policy says, by ignore_configured",
    };
    bail!("--domain: found {domain:?}, which {why}; wanted one that follows a policy of \"{glob}\"")
}
