//! An examination of etcd, for whoever looks whether it fits: each member by itself, and the rights of the role. It changes nothing
//! but that it takes a lease without a key, and gives it back at once.

use std::time::Duration;

use etcd_client::{Client, Compare, CompareOp, Error, Txn, TxnOp};
use lessor_client::internals::clock;
use tonic::Code;

use super::endpoints::{Endpoint, Endpoints};
use super::fault::ElectionStartError;
use super::options::EtcdOptions;

/// The report on one member.
#[derive(Clone, Debug)]
pub struct MemberReport {
    /// The URL at which it was asked.
    pub url: String,
    /// The health of it, or why it does not answer.
    pub health: Result<MemberHealth, String>,
}

/// The things that a member says of itself, and how it answers.
#[derive(Clone, Debug)]
pub struct MemberHealth {
    /// The version of its program.
    pub version: String,
    /// The cluster that it is of.
    pub cluster: u64,
    /// The member that leads, as far as it knows; 0: none.
    pub leader: u64,
    /// The faults that it says it has, as that there is no more room.
    pub alarms: Vec<String>,
    /// The times that reads took which a majority has to confirm, the shortest first; or why such a read fails.
    pub reads: Result<Vec<Duration>, String>,
    /// The shortest time for which it keeps a key whose leader is gone, whatever it is asked for: it follows from its election
    /// timeout. None where it grants no lease at all.
    pub shortest_lease: Option<Duration>,
    /// The rights of the role; none where a read has failed for another reason than rights.
    pub rights: Option<RoleRights>,
}

/// The rights of a role.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RoleRights {
    /// Whether it may read below the prefix.
    pub reads: bool,
    /// Whether it may write below the prefix.
    pub writes: bool,
    /// Whether it may write elsewhere.
    pub writes_elsewhere: bool,
}

/// Reads of which the times are taken.
const READS: usize = 5;
/// The time that all calls to one member may take together.
const PATIENCE: Duration = Duration::from_secs(5);
/// A name below the prefix, and one outside of it, that nobody has.
const PROBE: &str = "examination";

/// Examines each member of `options`, and what may be done below the `prefix`.
///
/// Writes are only tried in transactions of which the condition never holds: etcd looks at rights before conditions.
///
/// # Errors
/// When the options cannot work.
pub async fn examine(options: EtcdOptions, prefix: &str) -> Result<Vec<MemberReport>, ElectionStartError> {
    let endpoints = Endpoints::new(options, PATIENCE)?;
    let mut reports = Vec::new();
    for endpoint in endpoints.all() {
        let looked = tokio::time::timeout(PATIENCE, health(endpoint, prefix)).await;
        let health = match looked {
            Ok(health) => health.map_err(|error| in_words(&error)),
            Err(_) => Err(format!("no answer within {} s", PATIENCE.as_secs())),
        };
        reports.push(MemberReport { url: endpoint.url().to_owned(), health });
    }
    Ok(reports)
}

async fn health(endpoint: &Endpoint, prefix: &str) -> Result<MemberHealth, Error> {
    let mut client = endpoint.client().await?;
    let status = client.status().await?;
    let prefix = prefix.trim_end_matches('/');
    let key = format!("{prefix}/{PROBE}");
    let reads = reads(&mut client, &key).await;
    let may_read = match &reads {
        Ok(_) => Some(true),
        Err(error) => is_denied(error).then_some(false),
    };
    let rights = match may_read {
        None => None,
        Some(reads) => Some(RoleRights {
            reads,
            writes: may_write(&mut client, &key).await?,
            writes_elsewhere: may_write(&mut client, &format!("{PROBE}-{key}")).await?,
        }),
    };
    let shortest_lease = shortest_lease(&mut client).await;
    Ok(MemberHealth {
        shortest_lease,
        version: status.version().to_owned(),
        cluster: status.header().map_or(0, etcd_client::ResponseHeader::cluster_id),
        leader: status.leader(),
        alarms: status.errors().to_vec(),
        reads: reads.map_err(|error| in_words(&error)),
        rights,
    })
}

/// The times of some reads, the shortest first.
async fn reads(client: &mut Client, key: &str) -> Result<Vec<Duration>, Error> {
    let mut times = Vec::with_capacity(READS);
    for _ in 0..READS {
        let asked = clock::now();
        client.get(key, None).await?;
        times.push(clock::now().since(asked));
    }
    times.sort();
    Ok(times)
}

/// The time that it grants to who asks for the shortest that there is.
async fn shortest_lease(client: &mut Client) -> Option<Duration> {
    let granted = client.lease_grant(1, None).await.ok()?;
    // Where that fails it ends by itself.
    let _ = client.lease_revoke(granted.id()).await;
    u64::try_from(granted.ttl()).ok().map(Duration::from_secs)
}

/// Whether `key` may be written, which it is not.
async fn may_write(client: &mut Client, key: &str) -> Result<bool, Error> {
    let never = Compare::version(key, CompareOp::Less, 0);
    let txn = Txn::new().when([never]).and_then([TxnOp::put(key, "", None)]);
    match client.txn(txn).await {
        Ok(_) => Ok(true),
        Err(error) if is_denied(&error) => Ok(false),
        Err(error) => Err(error),
    }
}

fn is_denied(error: &Error) -> bool {
    matches!(error, Error::GRpcStatus(status) if status.code() == Code::PermissionDenied)
}

fn in_words(error: &Error) -> String {
    match error {
        Error::GRpcStatus(status) => status.message().to_owned(),
        error => error.to_string(),
    }
}
