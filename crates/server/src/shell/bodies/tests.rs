//! Tests of guarded bodies.

use std::future::poll_fn;

use axum::body::Body as PageBody;
use futures_util::{StreamExt, stream};
use lessor_proto::{Amount, Epoch};

use super::*;
use crate::node::NodeConfig;
use crate::repository::{Glob, Repository, Template};

fn bodies(patience: Duration) -> Bodies {
    let template = Template::new(Glob::new("*").unwrap(), Amount::from_units(100));
    let repository = Repository::new(vec![template]).unwrap();
    let config = NodeConfig::new("root", Epoch(1));
    Bodies::new(Arc::new(Driver::new(config, repository, "127.0.0.1:1".to_owned(), 10)), 4 << 20, patience)
}

/// A request with `bytes` of a message of 3 MiB, and no end.
fn begun(method: &str, path: &str, bytes: usize) -> Request<Body> {
    let mut first = vec![0, 0, 0x30, 0, 0];
    first.resize(bytes, 7);
    let data = stream::iter([Ok::<_, Status>(Bytes::from(first))]).chain(stream::pending());
    let body = Body::new(PageBody::from_stream(data));
    Request::builder().method(method).uri(path).body(body).unwrap()
}

async fn heard(body: &mut (impl HttpBody<Data = Bytes, Error: Into<axum::BoxError>> + Unpin)) -> String {
    let frame = poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await.expect("no end was sent");
    frame.map(|_| ()).map_err(Into::into).expect_err("no message is whole").to_string()
}

#[tokio::test]
async fn a_message_that_never_ends_gives_its_part_of_the_budget_back() {
    let bodies = bodies(Duration::from_millis(20));
    let taken = || bodies.0.taken.load(Ordering::Relaxed);
    let mut body = bodies.guard(begun("POST", "/grpc.health.v1.Health/Check", 1 << 20)).into_body();
    let mut heard = Box::pin(heard(&mut body));
    assert!(futures_util::poll!(&mut heard).is_pending());
    assert!(taken() > 0, "it takes its part");
    assert!(heard.await.contains("a message was not whole after 20ms"));
    assert_eq!(taken(), 0, "and does not keep it");
}

#[tokio::test]
async fn whatever_the_method_is_an_unfinished_message_is_within_the_budget() {
    let bodies = bodies(Duration::from_secs(60));
    for (number, method) in ["GET", "POST", "PUT"].into_iter().enumerate() {
        let before = bodies.0.taken.load(Ordering::Relaxed);
        let request = begun(method, "/grpc.health.v1.Health/Check", (number + 1) << 20);
        let mut body = bodies.guard(request).into_body();
        assert!(futures_util::poll!(Box::pin(heard(&mut body))).is_pending());
        assert!(bodies.0.taken.load(Ordering::Relaxed) > before, "{method}");
    }
}
