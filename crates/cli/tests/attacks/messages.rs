//! Messages: bombs, bodies without an end, ever other names, and holders that want nothing.

use std::time::Duration;

use lessor_client::internals::clock;
use lessor_proto::wire::capacity_client::CapacityClient;
use lessor_proto::wire::{GetCapacityRequest, ResourceRequest};
use rustix::process::Signal;
use tonic::transport::Channel;

use crate::house::holder::ask;
use crate::house::{House, eventually};
use crate::raw;
use crate::siege::{CONFIG, Newcomers, Siege};
use crate::wire::{in_seconds, wait};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_of_four_megabytes_of_empty_submessages() {
    Siege::open(&[])
        .await
        .hold(async |house| {
            let mut bombs = tokio::task::JoinSet::new();
            for path in ["GetCapacity", "ReleaseCapacity", "GetServerCapacity", "Session"] {
                let channel = house.connect().await;
                bombs.spawn(async move {
                    let bomb = match path {
                        "Session" => {
                            let inner = b"\x1a\0".repeat(1 << 20);
                            let mut bomb = vec![0x12];
                            prost::encoding::encode_varint(inner.len() as u64, &mut bomb);
                            [bomb, inner].concat()
                        }
                        _ => b"\x12\0".repeat((1 << 21) - 64),
                    };
                    for _ in 0..10 {
                        let refused =
                            raw::stream(&channel, &format!("/doorman.Capacity/{path}"), &[&bomb]).await;
                        assert_eq!(refused.unwrap_err().code(), tonic::Code::ResourceExhausted, "{path}");
                    }
                });
            }
            bombs.join_all().await;
        })
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_without_an_end() {
    Siege::open(&[])
        .await
        .hold(async |house| {
            let mut begun = tokio::task::JoinSet::new();
            for _ in 0..4 {
                let channel = house.connect().await;
                for _ in 0..100 {
                    begun.spawn(raw::begin(channel.clone()));
                }
            }
            wait(Duration::from_secs(3)).await;
            begun.shutdown().await;
        })
        .await;
}

fn asking(id: String, resource: Vec<ResourceRequest>) -> GetCapacityRequest {
    GetCapacityRequest { client_id: Some(id), resource, ..GetCapacityRequest::default() }
}

async fn try_to_ask(server: &mut CapacityClient<Channel>, request: GetCapacityRequest) -> bool {
    server.get_capacity(request).await.is_ok()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ever_other_ids_on_a_thousand_resources() {
    let siege = Siege::open(&["--max-holdings", "5000"]).await;
    siege
        .hold_with(Newcomers::Refused, async |house| {
            let (end, mut asked) = (in_seconds(4), 0_u32);
            let mut server = house.capacity().await;
            while clock::now() < end {
                let resources = (0..1_000).map(|number| ask(&format!("r{number}"), 1.0)).collect();
                try_to_ask(&mut server, asking(format!("id-{asked}"), resources)).await;
                asked += 1;
            }
            println!("{asked} ids");
        })
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn holders_that_want_nothing_and_take_every_place() {
    let flags = [
        "--max-holdings",
        "5000",
        "--max-resources",
        "2000",
        "--max-priorities",
        "64",
        "--max-lives-per-client",
        "16",
        "--max-clients-per-resource",
        "500",
    ];
    Siege::open(&flags)
        .await
        .hold(async |house| {
            let mut server = house.capacity().await;
            let idle =
                |name: &str, priority: i64| ResourceRequest { priority: Some(priority), ..ask(name, 0.0) };
            // All priorities, all clients and all lives of what newcomers want, and all names.
            for number in 0..600_i64 {
                let id = format!("idle-{}", number % 500);
                try_to_ask(&mut server, asking(id, vec![idle("plenty", number % 64)])).await;
            }
            for life in 0..32 {
                let mut request = asking("newcomer".to_owned(), vec![idle("plenty", 1)]);
                (request.incarnation, request.report_id) = (Some(1_000 + life), Some(1));
                try_to_ask(&mut server, request).await;
            }
            for number in 0..20 {
                let names = (0..1_000).map(|name| idle(&format!("n{}", number * 1_000 + name), 0)).collect();
                try_to_ask(&mut server, asking(format!("names-{number}"), names)).await;
            }
        })
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_spoilt_resource_among_a_thousand() {
    Siege::open(&[])
        .await
        .hold(async |house| {
            let mut server = house.capacity().await;
            let mut resources: Vec<ResourceRequest> =
                (0..1_000).map(|number| ask(&format!("r{number}"), 1.0)).collect();
            resources[500].wants = Some(f64::NAN);
            let answer =
                server.get_capacity(asking("careless".to_owned(), resources)).await.unwrap().into_inner();
            assert_eq!((answer.response.len(), answer.refused.len()), (999, 1));
            assert_eq!(answer.refused[0].index, 500);
        })
        .await;
}

/// A mistake of somebody who may write the file, which must hold nobody up.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_configuration_that_becomes_a_named_pipe() {
    Siege::open(&[])
        .await
        .hold(async |house: &House| {
            let path = house.config().to_owned();
            std::fs::remove_file(&path).unwrap();
            rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RUSR).unwrap();
            house.signal(Signal::HUP);
            eventually("it is refused", async || house.has_logged_part("is a named pipe")).await;
            std::fs::remove_file(&path).unwrap();
            house.configure(CONFIG);
        })
        .await;
}
