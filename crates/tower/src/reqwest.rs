//! Limits on what is sent with reqwest, as a middleware of `reqwest-middleware`.

use std::time::Duration;

use http::Extensions;
use lessor_client::internals::clock;
use lessor_client::{Denied, Rate};
use reqwest_middleware::reqwest::{Request, Response};
use reqwest_middleware::{Error, Next, Result};

use crate::hold_back::{HoldBack, Turn};

/// A middleware: each request waits, in order, for a unit of a rate, and is sent then. Hosts that answer 429 or 503 with
/// `Retry-After` are left alone for so long, as by [`RetryAfterLayer`](crate::RetryAfterLayer).
///
/// The timeout of a request holds for these waits as well, and what is left of it for the rest.
///
/// Its error is that of reqwest, or, as `reqwest_middleware::Error::Middleware`, the [`Denied`] of a request that was not sent,
/// or [`HeldBack`].
///
/// ```no_run
/// # async fn work(client: lessor_client::Client) -> Result<(), Box<dyn std::error::Error>> {
/// let calls = client.rate("partners/calls").open()?;
/// let http = reqwest_middleware::ClientBuilder::new(Default::default())
///     .with(lessor_tower::reqwest::Middleware::new(calls).per_host())
///     .build();
/// let answer = http.get("http://127.0.0.1:8080/search").send().await?;
/// # drop(answer);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Middleware {
    rate: Rate,
    is_per_host: bool,
    held: HoldBack,
}

/// A request that was not sent, as its host has asked to be left alone for longer than the request may take.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HeldBack {
    /// The host, and its port.
    pub authority: String,
    /// The timeout of the request.
    pub timeout: Duration,
}

// === impl Middleware ===

impl Middleware {
    /// Each request waits for a unit of `rate`.
    #[must_use]
    pub fn new(rate: Rate) -> Middleware {
        Middleware { rate, is_per_host: false, held: HoldBack::default() }
    }

    /// Each request waits for what its host may be asked: the host is the domain.
    #[must_use]
    pub fn per_host(self) -> Middleware {
        Middleware { is_per_host: true, ..self }
    }

    /// Waits until the host may be asked, for the time that the request has.
    async fn turn(&self, request: &Request) -> Result<Turn> {
        let turn = self.held.turn(request.url().authority().to_owned());
        let Some(&timeout) = request.timeout() else { return Ok(turn.await) };
        let late = |_| {
            let authority = request.url().authority().to_owned();
            Error::middleware(HeldBack { authority, timeout })
        };
        tokio::time::timeout(timeout, turn).await.map_err(late)
    }

    /// Waits for a unit, `left` at most.
    async fn acquire(&self, request: &Request, left: Option<Duration>) -> std::result::Result<(), Denied> {
        let longest = left.map_or(self.rate.max_wait(), |left| left.min(self.rate.max_wait()));
        let host = request.url().host_str().unwrap_or_default();
        match self.is_per_host {
            true => self.rate.domain(host).acquire_within(1, 1, longest).await.map(drop),
            false => self.rate.acquire_within(1, longest).await,
        }
    }
}

#[async_trait::async_trait]
impl reqwest_middleware::Middleware for Middleware {
    async fn handle(
        &self,
        mut request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> Result<Response> {
        let begun = clock::now();
        let timeout = request.timeout().copied();
        let left = || timeout.map(|timeout| timeout.saturating_sub(clock::now().since(begun)));
        let turn = self.turn(&request).await?;
        self.acquire(&request, left()).await.map_err(Error::middleware)?;
        *request.timeout_mut() = left();
        let answer = next.run(request, extensions).await?;
        self.held.answered(turn, answer.status(), answer.headers());
        Ok(answer)
    }
}

// === impl HeldBack ===

impl std::fmt::Display for HeldBack {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let HeldBack { authority, timeout } = self;
        write!(f, "{authority} asked to be left alone for longer than the timeout of {timeout:?}")
    }
}

impl std::error::Error for HeldBack {}
