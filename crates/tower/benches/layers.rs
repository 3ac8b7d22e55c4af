//! The cost of a request through a layer: ours beside that of `tower_governor`, in one run.
//!
//! The service behind them answers at once with an empty body. `bare` is it alone; `one for all` limits all requests together,
//! `each address` each of 1,000 addresses for itself. The rates are never used up but in `denied`, where nearly all is.

use std::convert::Infallible;
use std::hint::black_box;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use axum::body::Body;
use axum::extract::ConnectInfo;
use criterion::{BenchmarkGroup, Criterion, criterion_group, criterion_main};
use http::{Request, Response};
use lessor_algorithms::tiers::{Contract, Tier, TierPolicy, Window};
use lessor_client::internals::domain::{Policies, Rules, Scope};
use lessor_client::{Client, Rate, Rung};
use lessor_proto::{Amount, Epoch};
use lessor_server::node::NodeConfig;
use lessor_server::repository::{Domains, Glob, Repository, Template};
use lessor_server::shell::{Server, ServerOptions};
use lessor_tower::{Global, LimitLayer, PeerIp};
use tower::{Layer, Service, service_fn};
use tower_governor::GovernorLayer;
use tower_governor::governor::GovernorConfigBuilder;
use tower_governor::key_extractor::{GlobalKeyExtractor, PeerIpKeyExtractor};

/// Addresses that ask in turn.
const ADDRESSES: u32 = 1_000;

/// A rate that is leased, of which each domain may have `limit` in a second.
async fn rate(limit: u32) -> (Server, Client, Rate) {
    let second = Duration::from_secs(1);
    let (window, active, cooldown, kind) = (second, second, Duration::ZERO, Window::Bucket);
    let tier = Tier { limit, window, active, cooldown, is_skippable: false, kind };
    let default = TierPolicy::new(vec![tier], None, None).map(Contract::from).ok();
    let policies = Policies::new(Rules { default, scope: Scope::Client, ..Rules::default() });
    let policies = Arc::new(policies.expect("policies"));
    let domains = Some(Domains { policies, changes: Vec::new() });
    let template = Template::new(Glob::new("*").expect("a glob"), Amount::from_units(1_000_000_000));
    let repository = Repository::new(vec![Template { domains, learning: Duration::ZERO, ..template }]);
    let options = ServerOptions::new(([127, 0, 0, 1], 0).into());
    let config = NodeConfig::new("root", Epoch(1));
    let server = Server::start(options, config, repository.expect("a repository")).await.expect("a server");
    let client = Client::builder(server.address().to_string()).build().expect("a client");
    let mut rate = client.rate("requests").wants(1e9).open().expect("a rate");
    while rate.lease().rung != Rung::Leased {
        rate.changed().await.expect("a lease");
    }
    (server, client, rate)
}

fn request(turn: u32) -> Request<()> {
    let mut request = Request::new(());
    let address = Ipv4Addr::from_bits(0x0a00_0000 + turn % ADDRESSES);
    request.extensions_mut().insert(ConnectInfo(SocketAddr::from((address, 80))));
    request
}

/// Calls a service that is ready at once and answers at once.
fn bench<S>(group: &mut BenchmarkGroup<'_, criterion::measurement::WallTime>, name: &str, mut service: S)
where
    S: Service<Request<()>, Response = Response<Body>, Error = Infallible>,
{
    let (mut turn, mut cx) = (0, Context::from_waker(Waker::noop()));
    group.bench_function(name, |bencher| {
        bencher.iter(|| {
            turn += 1;
            assert!(service.poll_ready(&mut cx).is_ready());
            let mut answer = std::pin::pin!(service.call(black_box(request(turn))));
            match answer.as_mut().poll(&mut cx) {
                Poll::Ready(answer) => black_box(answer),
                Poll::Pending => panic!("it answers at once"),
            }
        });
    });
}

fn layers(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.expect("a runtime");
    let (_server, _client, plenty) = runtime.block_on(rate(u32::MAX));
    let (_other, _same, little) = runtime.block_on(rate(1));
    let inner = || service_fn(async |_: Request<()>| Ok::<_, Infallible>(Response::new(Body::empty())));
    let mut group = criterion.benchmark_group("layers");
    bench(&mut group, "bare", inner());

    let config = || GovernorConfigBuilder::default().const_per_nanosecond(1).const_burst_size(u32::MAX);
    let global = config().key_extractor(GlobalKeyExtractor).finish().expect("a quota");
    bench(&mut group, "one for all/tower_governor", GovernorLayer::new(global).layer(inner()));
    bench(&mut group, "one for all/lessor", LimitLayer::new(plenty.clone(), Global).layer(inner()));

    let each = config().key_extractor(PeerIpKeyExtractor).finish().expect("a quota");
    bench(&mut group, "each address/tower_governor", GovernorLayer::new(each).layer(inner()));
    let fields = config().key_extractor(PeerIpKeyExtractor).use_headers().finish().expect("a quota");
    bench(&mut group, "each address, fields/tower_governor", GovernorLayer::new(fields).layer(inner()));
    let layer = LimitLayer::new(plenty, PeerIp::new());
    bench(&mut group, "each address/lessor", layer.clone().without_fields().layer(inner()));
    bench(&mut group, "each address, fields/lessor", layer.layer(inner()));

    let mut denying = GovernorConfigBuilder::default().const_per_second(1).const_burst_size(1);
    let denying = denying.key_extractor(PeerIpKeyExtractor).finish();
    bench(&mut group, "denied/tower_governor", GovernorLayer::new(denying.expect("a quota")).layer(inner()));
    bench(&mut group, "denied/lessor", LimitLayer::new(little, PeerIp::new()).layer(inner()));
    group.finish();
}

criterion_group!(benches, layers);
criterion_main!(benches);
