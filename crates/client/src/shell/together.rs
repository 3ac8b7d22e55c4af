//! Several open resources in one request.

use std::time::Duration;

use super::clock;
use super::resource::{Core, Resource, Tally};
use crate::gauge::Gauge;
use crate::limiter::Limiter;
use crate::together::{self, Answer, Denied, Permit, Price};
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
    request: together::Together<'a>,
    /// Of all parts; those of gauges have one.
    tallies: Vec<Option<&'a Tally>>,
    /// Whose domains are asked.
    rates: Vec<&'a Core<Limiter>>,
    max_wait: Duration,
}

// === impl Together ===

impl<'a> Together<'a> {
    /// One copy of everything that is named after this.
    pub fn once() -> Together<'a> {
        Together::between(1, 1)
    }

    /// As many copies as possible, up to `copies`, and no fewer than `min`: see [`together::Together::between`].
    pub fn between(min: u32, copies: u32) -> Together<'a> {
        let request = together::Together::between(min, copies);
        let max_wait = Waiting::DEFAULT.max_wait;
        Together { request, tallies: Vec::new(), rates: Vec::new(), max_wait }
    }

    /// Units of a gauge as well, until the permit is dropped.
    pub fn gauge(mut self, gauge: &'a Resource<Gauge>, price: Price) -> Together<'a> {
        let core = gauge.core();
        self.tallies.push(Some(&core.tally));
        Together { request: self.request.gauge(&core.enforcer, price), ..self }
    }

    /// Hits of a domain of a rate, and as much of its lease, as well.
    pub fn domain(mut self, rate: &'a Resource<Limiter>, name: &'a str, price: Price) -> Together<'a> {
        let core = rate.core();
        self.tallies.push(None);
        self.rates.push(core);
        Together { request: self.request.domain(&core.domains, &core.enforcer, name, price), ..self }
    }

    /// Units of a rate as well.
    pub fn rate(mut self, rate: &'a Resource<Limiter>, price: Price) -> Together<'a> {
        self.tallies.push(None);
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
    /// See [`together::Together::try_acquire`].
    pub fn try_acquire(&self) -> Result<Permit, Denied> {
        self.count(self.request.try_acquire(clock::now()))
    }

    /// The same, and waits as long as nothing is granted. Nothing is held meanwhile.
    ///
    /// # Errors
    /// See [`together::Together::acquire_by`].
    pub async fn acquire(&self) -> Result<Permit, Denied> {
        self.count(self.request.acquire_by(&Boot, self.max_wait).await)
    }

    /// Counts what gauges have said, and has others told of what domains did.
    fn count(&self, permit: Result<Permit, Denied>) -> Result<Permit, Denied> {
        let refusal = permit.as_ref().map_err(Denied::refusal);
        let answers = match refusal {
            Ok(permit) => permit.answers(),
            Err(refusal) => refusal.map_or(&[][..], |refusal| &refusal.answers),
        };
        for (tally, answer) in self.tallies.iter().zip(answers) {
            match (tally, answer) {
                (Some(tally), Answer::Taken(_)) => tally.granted(),
                (Some(tally), Answer::GaugeDenied(_)) => tally.denied(),
                _ => {}
            }
        }
        self.rates.iter().filter(|core| core.domains.take_call()).for_each(|core| core.call());
        permit
    }
}
