//! Thefts: what somebody has is asked for, given back and reported on in its name.

use lessor_proto::wire::{
    GetCapacityRequest, GetServerCapacityRequest, PriorityBandAggregate, ReleaseCapacityRequest,
    ServerCapacityResourceRequest,
};

use crate::house::House;
use crate::house::holder::{Holder, Nature, ask, claim};
use crate::siege::{OWN, Siege};

/// The rest of "witness", which nobody has.
const REST: f64 = 100.0 - OWN;

/// A newcomer gets no more than the honest one has left.
async fn leaves_what_is_held(house: &House) {
    let mut thief = Holder::new("thief", Nature::Knows, "witness", 1_000.0);
    let granted = thief.report(&mut house.capacity().await).await.unwrap();
    assert!(granted <= REST, "{granted} are granted of what the honest one has");
    thief.release(&mut house.capacity().await).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_in_the_name_of_another() {
    Siege::open(&[])
        .await
        .hold(async |house| {
            crate::house::eventually("it is held", async || house.resource("witness").await.is_some()).await;
            let shown = house.resource("witness").await.unwrap();
            let session = shown["holders"][0]["session"].as_str().unwrap();
            let shown = u64::from_str_radix(session, 16).unwrap();
            for incarnation in [None, Some(shown), Some(7)] {
                let release = ReleaseCapacityRequest {
                    client_id: Some("honest".to_owned()),
                    resource_id: vec!["witness".to_owned()],
                    incarnation,
                    report_id: None,
                };
                house.capacity().await.release_capacity(release).await.unwrap();
                leaves_what_is_held(house).await;
            }
        })
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_report_in_the_name_of_another() {
    Siege::open(&[])
        .await
        .hold(async |house| {
            for incarnation in [None, Some(7), Some(u64::MAX)] {
                let mut resource = ask("witness", 0.0);
                (resource.has, resource.held) = (Some(claim(OWN)), Some(0.0));
                let lie = GetCapacityRequest {
                    client_id: Some("honest".to_owned()),
                    incarnation,
                    report_id: incarnation.map(|_| 1_000_000),
                    resource: vec![resource],
                    ..GetCapacityRequest::default()
                };
                // It may be refused.
                let _ = house.capacity().await.get_capacity(lie).await;
                leaves_what_is_held(house).await;
            }
        })
        .await;
}

/// A node that poses, of that name and epoch, below which so many want everything with the greatest priority.
fn posing(name: &str, epoch: u64, clients: i64) -> GetServerCapacityRequest {
    let band = PriorityBandAggregate {
        priority: Some(i64::MAX),
        num_clients: Some(clients),
        wants: Some(1e308),
        bucket: Vec::new(),
    };
    GetServerCapacityRequest {
        server_id: Some(name.to_owned()),
        holder_epoch: Some(epoch),
        resource: vec![ServerCapacityResourceRequest {
            resource_id: Some("witness".to_owned()),
            wants: vec![band],
            ..ServerCapacityResourceRequest::default()
        }],
        ..GetServerCapacityRequest::default()
    }
}

/// The template says that nobody has priority here, and that nobody stands for many.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_greatest_priority_and_a_node_of_four_billion_clients() {
    Siege::open(&[])
        .await
        .hold(async |house| {
            let mut server = house.capacity().await;
            let mut first = Holder::new("first", Nature::Knows, "witness", 1e308);
            for _ in 0..20 {
                // No report of the two is refused; they are cut down to a share each.
                let mut request = first.request();
                request.resource[0].priority = Some(i64::MAX);
                assert!(first.send(&mut server, request).await.unwrap() <= REST);
                server.get_server_capacity(posing("false", u64::MAX, i64::from(u32::MAX))).await.unwrap();
                crate::wire::pause().await;
            }
        })
        .await;
}
