//! `lessor token`: bearer tokens, by which a server knows who calls where there are no certificates.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use lessor_client::internals::clock;
use lessor_proto::Identity;
use lessor_server::access::bearer::Passport;
use lessor_server::access::{NamePattern, Role};
use lessor_server::repository::Glob;
use lessor_server::shell::source;
use lessor_server::token::TokenKeys;

/// Makes bearer tokens, and says what is in one.
#[derive(Debug, Args)]
pub(crate) struct Token {
    #[command(subcommand)]
    command: TokenCommand,
}

#[derive(Debug, Subcommand)]
enum TokenCommand {
    /// Print a token, sealed with the key of the servers
    New(New),
    /// Say what is in a token, and, with the key, whether it is believed. The token is read from standard input
    Show(Show),
}

/// A token that is to be made. It is for at least one of --client-id, --node and --role.
#[derive(Debug, Args)]
struct New {
    /// The identity of whoever bears it: rules of access and logs name it so
    #[arg(long, value_name = "NAME", value_parser = identity)]
    identity: Identity,
    /// The ids under which its bearer may hold leases, as a glob; {last} stands for the end of the identity
    #[arg(long, value_name = "GLOB", value_parser = NamePattern::new, required_unless_present_any = ["node", "role"])]
    client_id: Option<NamePattern>,
    /// The name of the node that its bearer may be: a join token
    #[arg(long, value_name = "NAME", value_parser = NamePattern::new)]
    node: Option<NamePattern>,
    /// A resource that it is for, or a glob; given several times, any of them. Without it, all are
    #[arg(long, value_name = "GLOB", value_parser = Glob::new)]
    resource: Vec<Glob>,
    /// A role of its bearer as an operator; given several times, all of them
    #[arg(long, value_name = "ROLE", value_parser = role)]
    role: Vec<Role>,
    /// The time until it ends
    #[arg(long, value_name = "DURATION", default_value = "24h", value_parser = humantime::parse_duration)]
    ttl: Duration,
    /// The file with the key, as the servers have it in --auth-key
    #[arg(long, env = "LESSOR_AUTH_KEY", value_name = "FILE")]
    key: PathBuf,
}

#[derive(Debug, Args)]
struct Show {
    /// The file with the key: without it nobody can say whether the token is believed
    #[arg(long, env = "LESSOR_AUTH_KEY", value_name = "FILE")]
    key: Option<PathBuf>,
}

// === impl Token ===

impl Token {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self.command {
            TokenCommand::New(new) => new.run(),
            TokenCommand::Show(show) => show.run(),
        }
    }
}

// === impl New ===

impl New {
    fn run(self) -> anyhow::Result<()> {
        let keys: TokenKeys = source::load_document(&self.key)?;
        let made = clock::wall().since_epoch.as_secs();
        if self.ttl.as_secs() == 0 {
            bail!("--ttl {:?} is over at once; wanted a second or more", self.ttl);
        }
        let passport = Passport {
            identity: self.identity.to_string(),
            made,
            ends: made.saturating_add(self.ttl.as_secs()),
            client_id: self.client_id,
            node: self.node,
            resources: (!self.resource.is_empty()).then_some(self.resource),
            roles: self.role,
        };
        println!("{}", passport.seal(&keys));
        Ok(())
    }
}

// === impl Show ===

impl Show {
    fn run(self) -> anyhow::Result<()> {
        let text = std::io::read_to_string(std::io::stdin()).context("cannot read standard input")?;
        let token = text.trim();
        let passport = Passport::read(token)?;
        let any = |text: Option<String>, none: &str| text.unwrap_or_else(|| none.to_owned());
        println!("identity   {}", passport.identity);
        println!(
            "client id  {}",
            any(passport.client_id.as_ref().map(ToString::to_string), "none: no client")
        );
        println!("node       {}", any(passport.node.as_ref().map(ToString::to_string), "none: no node"));
        let globs = |globs: &Vec<Glob>| globs.iter().map(Glob::as_str).collect::<Vec<_>>().join(", ");
        println!("resources  {}", any(passport.resources.as_ref().map(globs), "all"));
        let roles: Vec<_> = passport.roles.iter().map(|role| role.as_str()).collect();
        println!("roles      {}", if roles.is_empty() { "none".to_owned() } else { roles.join(", ") });
        println!("made       {}", date(passport.made));
        println!("ends       {}", date(passport.ends));
        if let Some(path) = &self.key {
            let keys: TokenKeys = source::load_document(path)?;
            Passport::open(token, &keys, clock::wall().since_epoch.as_secs())?;
            println!("believed   yes, by servers with this key whose rules do not revoke it");
        }
        Ok(())
    }
}

fn date(seconds: u64) -> String {
    let date = std::time::UNIX_EPOCH.checked_add(Duration::from_secs(seconds));
    date.map_or_else(|| seconds.to_string(), |date| humantime::format_rfc3339_seconds(date).to_string())
}

fn identity(text: &str) -> Result<Identity, String> {
    Identity::proved(text).map_err(|fault| fault.to_string())
}

fn role(text: &str) -> Result<Role, String> {
    let known = Role::ALL.map(Role::as_str).join(", ");
    Role::named(text).ok_or_else(|| format!("there is no such role; wanted one of {known}"))
}
