//! Several open resources in one request.

use std::time::Duration;

use super::clock;
use super::resource::{Core, Resource, Tally};
use crate::gauge::Gauge;
use crate::limiter::Limiter;
use crate::together::{self, Price, TogetherAnswer, TogetherDenied, TogetherPermit};
use crate::waiting::{Boot, Waiting};

/// A request of several open resources: all that is wanted of each of them, or nothing of any. See [`crate::together`] for
/// what that means. It can be made any number of times.
///
/// ```no_run
/// use lessor_client::together::Price;
/// use lessor_client::{Client, Together};
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
    /// Of all parts, what the driver is to hear of.
    cores: Vec<Heeded<'a>>,
    max_wait: Duration,
}

/// The news that the driver is to hear of a part.
#[derive(Clone, Copy, Debug)]
enum Heeded<'a> {
    /// The answer of a gauge.
    Gauge(&'a Tally),
    /// That domains have something to tell.
    Domains(&'a Core<Limiter>),
    Nothing,
}

// === impl Together ===

impl<'a> Together<'a> {
    /// One copy of everything that is named after this.
    pub fn once() -> Together<'a> {
        Together::between(1, 1)
    }

    /// As many copies as possible, up to `copies`, and no fewer than `min`: see [`together::Combination::between`].
    pub fn between(min: u32, copies: u32) -> Together<'a> {
        let request = together::Combination::between(min, copies);
        Together { request, cores: Vec::new(), max_wait: Waiting::DEFAULT.max_wait }
    }

    /// Units of a gauge as well, until the permit is dropped.
    pub fn gauge(mut self, gauge: &'a Resource<Gauge>, price: Price) -> Together<'a> {
        let core = gauge.core();
        self.cores.push(Heeded::Gauge(&core.tally));
        Together { request: self.request.gauge(&core.enforcer, price), ..self }
    }

    /// Hits of a domain of a rate, and as much of its lease, as well.
    pub fn domain(mut self, rate: &'a Resource<Limiter>, name: &'a str, price: Price) -> Together<'a> {
        let core = rate.core();
        self.cores.push(Heeded::Domains(core));
        Together { request: self.request.domain(&core.domains, &core.enforcer, name, price), ..self }
    }

    /// Units of a rate as well.
    pub fn rate(mut self, rate: &'a Resource<Limiter>, price: Price) -> Together<'a> {
        self.cores.push(Heeded::Nothing);
        Together { request: self.request.rate(&rate.core().enforcer, price), ..self }
    }

    /// The longest that [`Together::acquire`] waits; five seconds without it. What its resources were opened with does not
    /// count here.
    pub fn max_wait(self, max_wait: Duration) -> Together<'a> {
        Together { max_wait, ..self }
    }

    /// Takes what can be had of all parts, or nothing.
    ///
    /// # Errors
    /// See [`together::Combination::try_acquire`].
    pub fn try_acquire(&self) -> Result<TogetherPermit, TogetherDenied> {
        let permit = self.request.try_acquire(clock::now());
        self.request.earlier().for_each(|part| self.call(part));
        self.count(permit)
    }

    /// The same, and waits as long as nothing is granted. Nothing is held meanwhile.
    ///
    /// # Errors
    /// See [`together::Combination::acquire_by`].
    pub async fn acquire(&self) -> Result<TogetherPermit, TogetherDenied> {
        self.count(self.request.acquire_by(&Boot, self.max_wait, |part| self.call(part)).await)
    }

    /// Has the driver look whether domains of a part have something to tell.
    fn call(&self, part: usize) {
        if let Some(Heeded::Domains(core)) = self.cores.get(part) {
            core.call();
        }
    }

    /// Counts what gauges have said.
    fn count(
        &self,
        permit: Result<TogetherPermit, TogetherDenied>,
    ) -> Result<TogetherPermit, TogetherDenied> {
        let refusal = permit.as_ref().map_err(TogetherDenied::refusal);
        let answers = match refusal {
            Ok(permit) => permit.answers(),
            Err(refusal) => refusal.map_or(&[][..], |refusal| &refusal.answers),
        };
        for (core, answer) in self.cores.iter().zip(answers) {
            match (core, answer) {
                (Heeded::Gauge(tally), TogetherAnswer::Taken(_)) => tally.granted(),
                (Heeded::Gauge(tally), TogetherAnswer::GaugeDenied(_)) => tally.denied(),
                _ => {}
            }
        }
        permit
    }
}
