//! Single calls, made at one member of etcd, and what its answers mean.

use std::time::Duration;

use etcd_client::{
    Client, Compare, CompareOp, Error, GetOptions, KeyValue, PutOptions, ResponseHeader, SortOrder,
    SortTarget, Txn, TxnOp, TxnOpResponse,
};
use tonic::Code;

use super::endpoints::Endpoint;
use crate::election::call::{Answer, Call, Failure, LeaseId, Stored, Txn as Write};
use crate::record::EtcdCluster;

/// Makes a call and waits for the answer for so long.
pub(super) async fn make(endpoint: &Endpoint, call: Call, timeout: Duration) -> Result<Answer, Failure> {
    let answer = async { make_with(endpoint, &mut endpoint.client().await?, call).await };
    match tokio::time::timeout(timeout, answer).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => Err(failure(&error, endpoint)),
        Err(_) => Err(Failure::Timeout),
    }
}

async fn make_with(endpoint: &Endpoint, client: &mut Client, call: Call) -> Result<Answer, Error> {
    match call {
        Call::GrantLease { ttl } => {
            let granted = client.lease_grant(whole_seconds(ttl), None).await?;
            Ok(Answer::Granted { lease: LeaseId(granted.id()), ttl: seconds(granted.ttl()) })
        }
        Call::KeepAlive { lease } => keep_alive(client, lease).await,
        Call::Campaign { lease, key, value } => {
            let free = Compare::create_revision(key.as_str(), CompareOp::Equal, 0);
            let put = TxnOp::put(key.as_str(), value, Some(PutOptions::new().with_lease(lease.0)));
            let txn = Txn::new().when([free]).and_then([put]).or_else([TxnOp::get(key, None)]);
            campaigned(&client.txn(txn).await?)
        }
        Call::Put { lease, key, value } => {
            client.put(key, value, Some(PutOptions::new().with_lease(lease.0))).await?;
            Ok(Answer::Put)
        }
        Call::Read { key } => {
            let got = client.get(key, None).await?;
            // The leader's key is read before every election.
            endpoint.note_cluster(got.header().map_or(0, ResponseHeader::cluster_id));
            Ok(Answer::Read { stored: got.kvs().first().map(stored), revision: revision(got.header()) })
        }
        Call::ReadRecord { prefix, after, limit } => {
            // The first key behind another is that with a zero at its end.
            let from =
                after.map_or_else(|| prefix.clone().into_bytes(), |after| [after.as_slice(), &[0]].concat());
            let options = GetOptions::new()
                .with_range(behind(&prefix))
                .with_limit(i64::try_from(limit).unwrap_or(i64::MAX))
                .with_sort(SortTarget::Key, SortOrder::Ascend);
            let got = client.get(from, Some(options)).await?;
            let cluster = got.header().and_then(cluster);
            Ok(Answer::Record { stored: got.kvs().iter().map(stored).collect(), more: got.more(), cluster })
        }
        Call::Write(write) => written(&client.txn(transaction(write)).await?),
        Call::Revoke { lease } => {
            client.lease_revoke(lease.0).await?;
            Ok(Answer::Revoked)
        }
    }
}

/// The first answer only opens the stream, and does not come with its ttl; the second does.
async fn keep_alive(client: &mut Client, lease: LeaseId) -> Result<Answer, Error> {
    let (mut keeper, mut answers) = client.lease_keep_alive(lease.0).await?;
    keeper.keep_alive().await?;
    let answer = answers.message().await?;
    let answer = answer.ok_or_else(|| Error::Internal("the stream of keep-alives has ended".to_owned()))?;
    Ok(Answer::KeptAlive { ttl: seconds(answer.ttl()) })
}

fn campaigned(response: &etcd_client::TxnResponse) -> Result<Answer, Error> {
    let revision = revision(response.header());
    if response.succeeded() {
        return Ok(Answer::Won { revision });
    }
    let by = read(response).into_iter().flatten().next();
    // The comparison has just failed because there is such a key.
    let by = by.ok_or_else(|| Error::Internal("a campaign was lost to nobody".to_owned()))?;
    Ok(Answer::Held { by, revision })
}

fn transaction(write: Write) -> Txn {
    let guard = Compare::create_revision(
        write.guard.key.as_str(),
        CompareOp::Equal,
        revision_out(write.guard.create_revision),
    );
    let order = Compare::mod_revision(
        write.order.key.as_str(),
        CompareOp::Equal,
        revision_out(write.order.mod_revision),
    );
    let puts = write.puts.into_iter().map(|(key, value)| TxnOp::put(key, value, None));
    let deletes = write.deletes.into_iter().map(|key| TxnOp::delete(key, None));
    Txn::new()
        .when([guard, order])
        .and_then(puts.chain(deletes).collect::<Vec<_>>())
        .or_else([TxnOp::get(write.guard.key, None), TxnOp::get(write.order.key, None)])
}

fn written(response: &etcd_client::TxnResponse) -> Result<Answer, Error> {
    if response.succeeded() {
        return Ok(Answer::Written { revision: revision(response.header()) });
    }
    let mut read = read(response).into_iter();
    match (read.next(), read.next()) {
        (Some(guard), Some(order)) => Ok(Answer::Refused { guard, order }),
        _ => Err(Error::Internal("a refused transaction does not show why".to_owned())),
    }
}

/// The results of the reads in a transaction.
fn read(response: &etcd_client::TxnResponse) -> Vec<Option<Stored>> {
    let responses = response.op_responses().into_iter();
    let read = responses.map(|response| match response {
        TxnOpResponse::Get(got) => got.kvs().first().map(stored),
        _ => None,
    });
    read.collect()
}

pub(super) fn stored(kv: &KeyValue) -> Stored {
    Stored {
        key: kv.key().to_vec(),
        value: kv.value().to_vec(),
        create_revision: unsigned(kv.create_revision()),
        mod_revision: unsigned(kv.mod_revision()),
        lease: (kv.lease() != 0).then_some(LeaseId(kv.lease())),
    }
}

/// The failure of a call. Only where etcd itself has said no is it known that nothing was done.
pub(super) fn failure(error: &Error, endpoint: &Endpoint) -> Failure {
    let text = error.to_string();
    if text.contains("lease not found") {
        return Failure::LeaseNotFound;
    }
    let text = format!("{}: {text}", endpoint.url());
    match error {
        Error::GRpcStatus(status) => match status.code() {
            Code::InvalidArgument
            | Code::PermissionDenied
            | Code::Unauthenticated
            | Code::FailedPrecondition
            | Code::ResourceExhausted
            | Code::OutOfRange
            | Code::Unimplemented => Failure::Refused(text),
            _ => Failure::Unavailable(text),
        },
        Error::InvalidArgs(_) | Error::InvalidUri(_) | Error::InvalidMetadataValue(_) => {
            Failure::Refused(text)
        }
        _ => Failure::Unavailable(text),
    }
}

/// The first key behind all that begin with `prefix`, which ends with a slash.
fn behind(prefix: &str) -> Vec<u8> {
    let mut end = prefix.as_bytes().to_vec();
    if let Some(last) = end.last_mut() {
        *last += 1;
    }
    end
}

fn revision(header: Option<&ResponseHeader>) -> u64 {
    unsigned(header.map_or(0, ResponseHeader::revision))
}

/// The etcd that answers, if it says which it is.
fn cluster(header: &ResponseHeader) -> Option<EtcdCluster> {
    let (id, term) = (header.cluster_id(), header.raft_term());
    (id != 0).then_some(EtcdCluster { id, term })
}

fn revision_out(revision: u64) -> i64 {
    i64::try_from(revision).unwrap_or(i64::MAX)
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

fn seconds(ttl: i64) -> Duration {
    Duration::from_secs(unsigned(ttl))
}

fn whole_seconds(ttl: Duration) -> i64 {
    let seconds = ttl.as_secs() + u64::from(ttl.subsec_nanos() > 0);
    i64::try_from(seconds).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::etcd::EtcdOptions;
    use crate::shell::etcd::endpoints::Endpoints;

    #[test]
    fn only_what_etcd_refuses_is_known_not_to_have_happened() {
        let options = EtcdOptions::new(["http://a:1"]);
        let endpoint = Endpoints::new(options, Duration::from_secs(1)).unwrap().current();
        let failure =
            |code, message: &str| failure(&Error::GRpcStatus(tonic::Status::new(code, message)), &endpoint);
        let gone = "etcdserver: requested lease not found";
        assert_eq!(failure(Code::NotFound, gone), Failure::LeaseNotFound);
        assert_eq!(failure(Code::Unknown, gone), Failure::LeaseNotFound);
        let denied = failure(Code::PermissionDenied, "etcdserver: permission denied");
        assert!(matches!(denied, Failure::Refused(why) if why.starts_with("http://a:1: ")));
        for code in
            [Code::Unavailable, Code::Unknown, Code::Cancelled, Code::DeadlineExceeded, Code::Internal]
        {
            assert!(matches!(failure(code, "etcdserver: request timed out"), Failure::Unavailable(_)));
        }
    }

    #[test]
    fn a_range_ends_behind_its_prefix() {
        let end = behind("lessor/root/");
        assert_eq!(end, b"lessor/root0");
        assert!("lessor/root/\u{10ffff}".as_bytes() < &end[..] && "lessor/root1/".as_bytes() > &end[..]);
    }

    #[test]
    fn a_ttl_is_rounded_up() {
        assert_eq!(whole_seconds(Duration::from_millis(1_001)), 2);
        assert_eq!(whole_seconds(Duration::from_secs(10)), 10);
    }
}
