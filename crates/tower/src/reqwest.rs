//! Limits on what is sent with reqwest, as a middleware of `reqwest-middleware`.

use http::Extensions;
use lessor_client::Rate;
use reqwest_middleware::reqwest::{Request, Response};
use reqwest_middleware::{Error, Next, Result};

use crate::hold_back::HoldBack;

/// A middleware: each request waits, in order, for a unit of a rate, and is sent then. Hosts that answer 429 or 503 with
/// `Retry-After` are left alone for so long, as by [`RetryAfterLayer`](crate::RetryAfterLayer).
///
/// Its error is that of reqwest, or, as `reqwest_middleware::Error::Middleware`, the [`Denied`](lessor_client::Denied) of a
/// request that was not sent.
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
}

#[async_trait::async_trait]
impl reqwest_middleware::Middleware for Middleware {
    async fn handle(
        &self,
        request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> Result<Response> {
        let turn = self.held.turn(request.url().authority().to_owned()).await;
        let host = request.url().host_str().unwrap_or_default();
        let granted = match self.is_per_host {
            true => self.rate.domain(host).acquire(1).await.map(drop),
            false => self.rate.acquire(1).await,
        };
        granted.map_err(Error::middleware)?;
        let answer = next.run(request, extensions).await?;
        self.held.answered(turn, answer.status(), answer.headers());
        Ok(answer)
    }
}
