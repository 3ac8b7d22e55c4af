//! The options by which a server knows who may what.

use std::convert::Infallible;
use std::path::PathBuf;

use clap::Args;
use lessor_client::BearerToken;
use lessor_server::access::{Access, Stance};
use lessor_server::shell::Gate;
use lessor_server::shell::source::{LoadError, Source};
use lessor_server::token::TokenKeys;
use tracing::{error, info};

use super::followed::{FollowedFile, Follower, Outcome};

/// The flags about who may what.
#[derive(Debug, Args)]
#[command(next_help_heading = "Who may what")]
pub(super) struct AccessFlags {
    /// A file with the rules of access: which identity may hold what, be which node, and do what as an operator. Without
    /// it everybody who reaches the port may everything. Read again when it changes
    #[arg(long, env = "LESSOR_ACCESS", value_name = "FILE")]
    access: Option<PathBuf>,
    /// A file with the key by which bearer tokens are believed, 64 hexadecimal digits; the one before it, if it was changed,
    /// on the next line. `lessor token new` seals tokens with it. Read again when it changes
    #[arg(long, env = "LESSOR_AUTH_KEY", value_name = "FILE", requires = "access")]
    auth_key: Option<PathBuf>,
    /// A file with the token by which the node above knows this one, as `lessor token new --node` prints it. Read again when
    /// it changes
    #[arg(long, env = "LESSOR_PARENT_TOKEN_FILE", value_name = "FILE", requires = "parent")]
    parent_token_file: Option<PathBuf>,
}

/// The files that say who may what.
pub(super) struct AccessSources {
    pub(super) access: Option<Source<Access>>,
    pub(super) keys: Option<Source<TokenKeys>>,
}

/// The followers of those files.
pub(super) struct AccessFollowers {
    access: Option<Follower<Access>>,
    keys: Option<Follower<TokenKeys>>,
}

// === impl AccessFlags ===

impl AccessFlags {
    /// The token for the way up.
    pub(super) fn parent_token(&self) -> Option<BearerToken> {
        self.parent_token_file.as_ref().map(BearerToken::file)
    }

    pub(super) fn sources(&self) -> AccessSources {
        AccessSources {
            access: self.access.as_ref().map(Source::new),
            keys: self.auth_key.as_ref().map(Source::new),
        }
    }
}

// === impl AccessSources ===

impl AccessSources {
    /// The rules, if there are any.
    pub(super) fn load(&mut self) -> Result<Option<Access>, LoadError> {
        let access = self.access.as_mut().map(Source::load).transpose()?;
        access.iter().for_each(announce);
        Ok(access)
    }

    /// Those who follow them, and the files for whoever wants them to be read again.
    pub(super) fn followers(self) -> (AccessFollowers, Vec<FollowedFile>) {
        let access = self.access.map(|source| FollowedFile::new("access", source)).unzip();
        let keys = self.keys.map(|source| FollowedFile::new("token keys", source)).unzip();
        let files = access.0.into_iter().chain(keys.0).collect();
        (AccessFollowers { access: access.1, keys: keys.1 }, files)
    }
}

// === impl AccessFollowers ===

impl AccessFollowers {
    /// Puts what the files hold in force whenever they change, or somebody asks for that.
    pub(super) async fn follow(self, gate: &Gate) -> Infallible {
        let rules = async {
            match self.access {
                Some(mut access) => access.follow(|loaded| reload(gate, loaded)).await,
                None => std::future::pending().await,
            }
        };
        let keys = async {
            match self.keys {
                Some(mut keys) => keys.follow(|loaded| reload_keys(gate, loaded)).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! { never = rules => never, never = keys => never }
    }
}

fn reload(gate: &Gate, loaded: Result<Access, LoadError>) -> Outcome {
    match loaded {
        Ok(access) => {
            announce(&access);
            let version = Some(access.version).filter(|&version| version > 0);
            gate.put_in_force(access);
            Ok(version)
        }
        Err(fault) => {
            error!("the old rules of access stay in force\n{fault}");
            Err(fault.to_string())
        }
    }
}

/// Says which rules are in force.
fn announce(access: &Access) {
    let (version, nodes, clients, operators) =
        (access.version, access.nodes.len(), access.clients.len(), access.operators.len());
    let enforced = access.stance == Stance::Deny;
    info!(version, nodes, clients, operators, enforced, "rules of access in force");
}

fn reload_keys(gate: &Gate, loaded: Result<TokenKeys, LoadError>) -> Outcome {
    match loaded {
        Ok(keys) => {
            info!("keys of bearer tokens in force");
            gate.put_keys_in_force(keys);
            Ok(None)
        }
        Err(fault) => {
            error!("the old keys of bearer tokens stay in force\n{fault}");
            Err(fault.to_string())
        }
    }
}
