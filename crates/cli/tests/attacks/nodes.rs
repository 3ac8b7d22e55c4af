//! Nodes that pose: below a leaf and in its name.

use lessor_client::{Client, Rate, Rung};
use lessor_proto::Amount;
use lessor_proto::wire::{
    DemandBucket, GetServerCapacityRequest, PriorityBandAggregate, ServerCapacityResourceRequest,
};
use tokio::time::timeout;

use crate::house::{AGES, House};
use crate::siege::{CONFIG, OWN, Siege};

/// The report of a node that stands for so many clients, each bucket for as many.
fn posing(
    name: &str,
    resource: &str,
    buckets: std::ops::Range<i32>,
    clients: i64,
) -> GetServerCapacityRequest {
    let wants = |index: i32| 2_f64.powf((f64::from(index) + 0.5) / 8.0) * clients as f64;
    let bucket =
        |index| DemandBucket { index: Some(index), subclients: Some(clients), wants: Some(wants(index)) };
    let bucket: Vec<DemandBucket> = buckets.map(bucket).collect();
    let band = PriorityBandAggregate {
        priority: Some(0),
        num_clients: Some(bucket.len() as i64 * clients),
        wants: Some(bucket.iter().filter_map(|bucket| bucket.wants).sum()),
        bucket,
    };
    GetServerCapacityRequest {
        server_id: Some(name.to_owned()),
        holder_epoch: Some(u64::MAX),
        resource: vec![ServerCapacityResourceRequest {
            resource_id: Some(resource.to_owned()),
            wants: vec![band],
            ..ServerCapacityResourceRequest::default()
        }],
        ..GetServerCapacityRequest::default()
    }
}

/// The one at the leaf keeps its lease too, and hears from the root through all of that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn false_nodes_below_a_leaf_and_in_its_name() {
    Siege::open(&[])
        .await
        .hold(async |root| {
            let parent = root.address().to_string();
            let leaf = House::open_with(CONFIG, &["--node", "paris", "--parent", &parent]).await;
            let client = Client::builder(leaf.address().to_string()).id("below").connect().await.unwrap();
            let mut tree = client.rate("tree").wants(OWN).open().unwrap();
            let mut own = client.rate("witness").wants(10.0).open().unwrap();
            until(&mut tree, OWN).await;
            until(&mut own, 10.0).await;

            let everybody = i64::from(u32::MAX);
            let (mut below, mut above) = (leaf.capacity().await, root.capacity().await);
            for _ in 0..10 {
                for (name, buckets, clients) in [
                    ("false-0", -400..-399, everybody),
                    ("false-1", -300..-299, everybody),
                    ("false-2", -1_400..-700, 1),
                    ("false-3", -700..0, 1),
                ] {
                    below.get_server_capacity(posing(name, "tree", buckets, clients)).await.unwrap();
                }
                // It has no line: what it says changes nothing for the leaf. It may be refused.
                let _ = above.get_server_capacity(posing("paris", "witness", 80..81, everybody)).await;
                crate::wire::pause().await;
                assert_eq!((tree.lease().rung, own.lease().rung), (Rung::Leased, Rung::Leased));
                assert_eq!(own.lease().capacity, Some(Amount::from_units(10)));
            }
            // The root still takes what the leaf reports.
            tree.set_wants(OWN - 5.0);
            until(&mut tree, OWN - 5.0).await;
            assert_eq!(root.metric("lessor_stream_reports_refused_total").await, 0.0);
            timeout(AGES, client.close()).await.unwrap();
            leaf.stop().await;
        })
        .await;
}

/// Waits until so much is leased.
async fn until(own: &mut Rate, units: f64) {
    let is_leased = |own: &Rate| {
        let lease = own.lease();
        lease.rung == Rung::Leased
            && lease.capacity.is_some_and(|capacity| (capacity.as_f64() - units).abs() < 0.01)
    };
    let waiting = async {
        while !is_leased(own) {
            own.changed().await.unwrap();
        }
    };
    if timeout(AGES, waiting).await.is_err() {
        panic!("{units} never come: {:?}", own.lease());
    }
}
