//! Clients that heed `Retry-After`.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use http::{Request, Response, StatusCode, header};
use lessor_client::internals::clock;
use lessor_tower::RetryAfterLayer;
use tokio::task::JoinSet;
use tower::{Layer, ServiceExt, service_fn};

use crate::house::soon;

#[tokio::test]
async fn an_authority_is_left_alone_for_as_long_as_it_asks_and_then_asked_by_one_at_a_time() {
    let [asked, inside, most] = [(); 3].map(|()| Arc::new(AtomicU32::new(0)));
    let (asked_by, inside_by, most_by) = (Arc::clone(&asked), Arc::clone(&inside), Arc::clone(&most));
    // The first two requests to "busy" are told to come again in a second.
    let service = service_fn(move |request: Request<()>| {
        let (asked, inside, most) = (Arc::clone(&asked_by), Arc::clone(&inside_by), Arc::clone(&most_by));
        async move {
            let is_busy = request.uri().host() == Some("busy") && asked.fetch_add(1, Ordering::SeqCst) < 2;
            most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::task::yield_now().await;
            inside.fetch_sub(1, Ordering::SeqCst);
            let mut answer = Response::new(());
            if is_busy {
                *answer.status_mut() = StatusCode::TOO_MANY_REQUESTS;
                answer.headers_mut().insert(header::RETRY_AFTER, 1.into());
            }
            Ok::<_, Infallible>(answer)
        }
    });
    let heeding = RetryAfterLayer::new().layer(service);
    let ask = |host: &str| {
        let request = Request::get(format!("http://{host}/")).body(()).unwrap();
        let heeding = heeding.clone();
        async move { (heeding.oneshot(request).await.unwrap().status(), clock::now()) }
    };
    let (status, first) = soon(ask("busy")).await;
    assert_eq!(status, StatusCode::TOO_MANY_REQUESTS, "it is passed on");

    most.store(0, Ordering::SeqCst);
    let waiting: JoinSet<_> = (0..3).map(|_| ask("busy")).collect();
    let (status, _) = soon(ask("idle")).await;
    assert_eq!((status, asked.load(Ordering::SeqCst)), (StatusCode::OK, 1), "nobody else waits");
    let mut answers = soon(waiting.join_all()).await;
    answers.sort_by_key(|&(_, at)| at);
    let second = Duration::from_secs(1);
    assert_eq!(answers.iter().map(|(status, _)| status.as_u16()).collect::<Vec<_>>(), [429, 200, 200]);
    assert!(answers[0].1 >= first + second, "the one that went first has waited");
    assert!(answers[1].1 >= answers[0].1 + second, "and was told to wait again, which holds for all");
    assert_eq!(most.load(Ordering::SeqCst), 1);
}
