//! Several open resources in one request.

use std::future::{Future, poll_fn};
use std::task::Poll;
use std::time::Duration;

use super::clock;
use super::resource::{Core, Gauge, Rate};
use super::windows::Windows;
use crate::denied::Denied;
use crate::gauge::Semaphore;
use crate::limiter::Limiter;
use crate::together::{self, Price, TogetherAnswer, TogetherDenied, TogetherPermit};
use crate::waiting::{Boot, Waiting};

/// A request of several open resources: all that is wanted of each of them, or nothing of any. It can be made any number of times.
///
/// Of each part it takes either the same for all copies of the request, or so much for each ([`Price`]); what is granted is the
/// largest number of copies that all parts allow.
///
/// ```no_run
/// use lessor_client::{Client, Price, Together};
///
/// # async fn work(client: Client) -> Result<(), Box<dyn std::error::Error>> {
/// let workers = client.gauge("workers").open()?;
/// let calls = client.rate("api/calls").open()?;
/// let queries = client.rate("db/queries").open()?;
///
/// // A worker for up to ten jobs of one tenant, each of which is a call and three queries.
/// let jobs = Together::between(1, 10)
///     .gauge(&workers, Price::Once(1))
///     .domain(&calls, "tenant-42", Price::Each(1))
///     .domain(&queries, "tenant-42", Price::Each(3));
/// let permit = jobs.acquire().await?;
/// println!("{} jobs may run", permit.copies());
/// drop(permit); // the worker is free again
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing is asked without `try_acquire` or `acquire`"]
pub struct Together<'a> {
    request: together::Combination<'a>,
    /// The resources of all parts.
    cores: Vec<Heeded<'a>>,
    max_wait: Duration,
}

/// A part of a request, and its resource.
#[derive(Clone, Copy, Debug)]
enum Heeded<'a> {
    /// A gauge, which counts its answers.
    Gauge(&'a Core<Semaphore>),
    /// Domains, which may have something to tell.
    Domain(&'a Core<Limiter>),
    Rate(&'a Core<Limiter>),
    Window(&'a Windows),
}

// === impl Together ===

impl<'a> Together<'a> {
    /// One copy of everything that is named after this.
    pub fn once() -> Together<'a> {
        Together::between(1, 1)
    }

    /// As many copies as possible, up to `copies`, and no fewer than `min`, which is taken for `copies` if it is more, and
    /// for 1 if it is 0. Of no copies nothing is taken.
    pub fn between(min: u32, copies: u32) -> Together<'a> {
        let request = together::Combination::between(min, copies);
        Together { request, cores: Vec::new(), max_wait: Waiting::DEFAULT.max_wait }
    }

    /// Units of a gauge as well, until the permit is dropped.
    pub fn gauge(mut self, gauge: &'a Gauge, price: Price) -> Together<'a> {
        let core = gauge.core();
        self.cores.push(Heeded::Gauge(core));
        Together { request: self.request.gauge(&core.enforcer, price), ..self }
    }

    /// Hits of a domain of a rate, and as much of its lease, as well.
    pub fn domain(mut self, rate: &'a Rate, name: &'a str, price: Price) -> Together<'a> {
        let core = rate.core();
        self.cores.push(Heeded::Domain(core));
        Together { request: self.request.domain(&core.domains, &core.enforcer, name, price), ..self }
    }

    /// Units of a rate as well.
    pub fn rate(mut self, rate: &'a Rate, price: Price) -> Together<'a> {
        self.cores.push(Heeded::Rate(rate.core()));
        Together { request: self.request.rate(&rate.core().enforcer, price), ..self }
    }

    /// Uses of a key of windows as well. They are made, or not, in the same step as all else; a refusal of another part undoes
    /// nothing, as nothing was done.
    pub fn window(mut self, windows: &'a Windows, key: &'a str, price: Price) -> Together<'a> {
        self.cores.push(Heeded::Window(windows));
        Together { request: self.request.window(windows.keys_of(), key, price), ..self }
    }

    /// The longest that [`Together::acquire`] waits; five seconds without it, and with `None` as long as it takes. What its
    /// resources were opened with does not count here.
    pub fn max_wait(self, max_wait: impl Into<Option<Duration>>) -> Together<'a> {
        Together { max_wait: max_wait.into().unwrap_or(Duration::MAX), ..self }
    }

    /// Takes what can be had of all parts, or nothing.
    ///
    /// # Errors
    /// When a part refuses, or the request cannot be: see [`TogetherDenied`]. Nothing is taken then.
    pub fn try_acquire(&self) -> Result<TogetherPermit, TogetherDenied> {
        let permit = self.request.try_acquire(clock::now);
        self.request.earlier().for_each(|part| self.call(part));
        self.heed(permit)
    }

    /// The same, and waits as long as nothing is granted. Nothing is held meanwhile.
    ///
    /// # Errors
    /// At once if the time that a part names is too late, if the least that is wanted is more than a lease ever holds at once,
    /// if too many wait for a gauge, if the client is closed or the server refuses a resource, or if the request cannot be;
    /// else when the longest wait has passed. Nothing is taken then.
    pub async fn acquire(&self) -> Result<TogetherPermit, TogetherDenied> {
        let permit = self.request.acquire_by(&Boot, self.max_wait, |part| self.call(part));
        tokio::select! {
            biased;
            permit = permit => self.heed(permit),
            denied = self.hopeless() => Err(denied),
        }
    }

    /// Waits until there is nothing to wait for.
    async fn hopeless(&self) -> TogetherDenied {
        let mut waits: Vec<_> = self.cores.iter().map(|core| Box::pin(core.hopeless())).collect();
        poll_fn(|cx| {
            for (part, wait) in waits.iter_mut().enumerate() {
                if let Poll::Ready(denied) = wait.as_mut().poll(cx) {
                    return Poll::Ready(TogetherDenied::Part { part, denied });
                }
            }
            Poll::Pending
        })
        .await
    }

    /// Has the driver look whether domains of a part have something to tell.
    fn call(&self, part: usize) {
        if let Some(Heeded::Domain(core)) = self.cores.get(part) {
            core.call();
        }
    }

    /// Counts the answers of gauges, and says why nothing is leased where it comes from that.
    fn heed(
        &self,
        mut permit: Result<TogetherPermit, TogetherDenied>,
    ) -> Result<TogetherPermit, TogetherDenied> {
        let answers = match &mut permit {
            Ok(permit) => permit.answers.as_mut_slice(),
            Err(denied) => denied.answers_mut(),
        };
        for (core, answer) in self.cores.iter().zip(answers) {
            core.heed(answer);
        }
        permit
    }
}

// === impl Heeded ===

impl Heeded<'_> {
    async fn hopeless(&self) -> Denied {
        match self {
            Heeded::Gauge(core) => core.hopeless().await,
            Heeded::Domain(core) | Heeded::Rate(core) => core.hopeless().await,
            // A denial of a window says by itself that the client is closed, or the resource refused.
            Heeded::Window(_) => std::future::pending().await,
        }
    }

    fn heed(&self, answer: &mut TogetherAnswer) {
        if let Heeded::Gauge(core) = self {
            match answer {
                TogetherAnswer::Taken(_) => core.tally.granted(),
                TogetherAnswer::Denied(_) => core.tally.denied(),
                _ => {}
            }
        }
        if let TogetherAnswer::Denied(denied) = answer {
            *denied = match self {
                Heeded::Gauge(core) => core.explain(denied.clone()),
                Heeded::Domain(core) | Heeded::Rate(core) => core.explain(denied.clone()),
                Heeded::Window(windows) => windows.explain(denied.clone()),
            };
        }
    }
}
