//! Several limits in one request: all of them grant it, or nothing of any is taken.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{HeaderMap, Request, Response, StatusCode};
use lessor_client::{Gauge, Price, Rate, Together, TogetherAnswer, TogetherDenied, TogetherPermit};
use tower_layer::Layer;
use tower_service::Service;

use crate::answer::{Answer, Problem, Rejection};
use crate::fields::{self, Fields};
use crate::held::HeldFuture;
use crate::key::{Key, Name, Unkeyed};

/// A layer that lets a request pass when several rates and gauges have room for it, and takes nothing of any when one has not.
///
/// Two layers one after the other take of the first what the second denies; this one does not. Units of gauges are held until
/// the body of the answer has ended or is dropped, as by [`InFlightLayer`](crate::InFlightLayer). What is not granted is
/// answered as by the layer for the part that denies, and the fields name that.
///
/// ```
/// # use lessor_client::{Gauge, Rate};
/// use lessor_tower::{Global, Header, TogetherLayer};
///
/// # fn layer(queries: Rate, calls: Rate, workers: Gauge) -> TogetherLayer<String> {
/// TogetherLayer::new()
///     .rate(queries, Header::new("x-tenant"), 3) // three queries of its tenant
///     .rate(calls, Global, 1) // a call
///     .gauge(workers, 1) // and a worker, as long as it takes
/// # }
/// ```
#[must_use = "a layer limits nothing by itself"]
pub struct TogetherLayer<B, A = Problem> {
    parts: Vec<Part<B>>,
    answer: A,
}

/// A service behind a [`TogetherLayer`].
pub struct AllOf<S, B, A = Problem> {
    inner: S,
    layer: Arc<TogetherLayer<B, A>>,
}

/// The answer of an [`AllOf`], whose body holds the units of gauges.
pub type AllOfFuture<F, R> = HeldFuture<F, R, TogetherPermit>;

/// A resource, and what a request costs of it.
struct Part<B> {
    of: Resource<B>,
    units: u32,
    policy: Arc<str>,
    fields: Fields,
}

enum Resource<B> {
    Rate(Rate, Arc<dyn Key<B> + Send + Sync>),
    Gauge(Gauge),
}

// === impl TogetherLayer ===

impl<B> TogetherLayer<B> {
    /// No part yet: everything passes.
    pub fn new() -> TogetherLayer<B> {
        TogetherLayer { parts: Vec::new(), answer: Problem }
    }
}

impl<B> Default for TogetherLayer<B> {
    fn default() -> TogetherLayer<B> {
        TogetherLayer::new()
    }
}

impl<B, A> TogetherLayer<B, A> {
    /// Each request costs so many units of `rate` as well, of the domain that `key` names. A rate can be named once.
    pub fn rate(
        self,
        rate: Rate,
        key: impl Key<B> + Send + Sync + 'static,
        units: u32,
    ) -> TogetherLayer<B, A> {
        let policy = rate.name().as_str().into();
        self.with(Resource::Rate(rate, Arc::new(key)), units, policy)
    }

    /// Each request holds so many units of `gauge` as well. A gauge can be named once.
    pub fn gauge(self, gauge: Gauge, units: u32) -> TogetherLayer<B, A> {
        let policy = gauge.name().as_str().into();
        self.with(Resource::Gauge(gauge), units, policy)
    }

    /// The answer to what is not granted; [`Problem`] without it.
    pub fn answer<D>(self, answer: D) -> TogetherLayer<B, D> {
        TogetherLayer { parts: self.parts, answer }
    }

    fn with(mut self, of: Resource<B>, units: u32, policy: Arc<str>) -> TogetherLayer<B, A> {
        let fields = Fields::named(&policy);
        self.parts.push(Part { of, units, policy, fields });
        self
    }

    /// The domains of all parts; of gauges, and of rates that are shared whole, none.
    fn domains(&self, request: &Request<B>) -> Result<Vec<Option<String>>, Rejection> {
        let domain = |part: &Part<B>| match &part.of {
            Resource::Rate(_, key) => {
                let mut name = Name::default();
                key.key(request, &mut name)
                    .map_err(|unkeyed: Unkeyed| Rejection::unkeyed(unkeyed, &part.policy))?;
                Ok(name.domain().map(str::to_owned))
            }
            Resource::Gauge(_) => Ok(None),
        };
        self.parts.iter().map(domain).collect()
    }

    /// Takes what the request costs of all parts, and says what is left.
    fn take(
        &self,
        request: &Request<B>,
    ) -> Result<(TogetherPermit, HeaderMap), (Rejection, Option<&Fields>)> {
        let domains = self.domains(request).map_err(|rejection| (rejection, None))?;
        let mut together = Together::once();
        for (part, domain) in self.parts.iter().zip(&domains) {
            let price = Price::Each(part.units);
            together = match (&part.of, domain) {
                (Resource::Rate(rate, _), Some(domain)) => together.domain(rate, domain, price),
                (Resource::Rate(rate, _), None) => together.rate(rate, price),
                (Resource::Gauge(gauge), _) => together.gauge(gauge, price),
            };
        }
        let permit = together.try_acquire().map_err(|denied| self.rejection(&denied))?;
        let mut headers = HeaderMap::new();
        for (part, answer) in self.parts.iter().zip(permit.answers()) {
            if let TogetherAnswer::Domain(decision) = answer {
                part.fields.note(&mut headers, decision);
            }
        }
        Ok((permit, headers))
    }

    /// The rejection by the part that is to blame.
    fn rejection(&self, denied: &TogetherDenied) -> (Rejection, Option<&Fields>) {
        let Some((index, denial)) = denied.denial() else {
            let none = "".into();
            return (Rejection::unkeyed(Unkeyed::misconfigured(denied.to_string()), &none), None);
        };
        let part = &self.parts[index];
        let (over_limit, fields) = match part.of {
            Resource::Rate(..) => (StatusCode::TOO_MANY_REQUESTS, Some(&part.fields)),
            Resource::Gauge(_) => (StatusCode::SERVICE_UNAVAILABLE, None),
        };
        (Rejection::denied(denial, &part.policy, over_limit), fields)
    }
}

impl<B, A: Clone> Clone for TogetherLayer<B, A> {
    fn clone(&self) -> TogetherLayer<B, A> {
        TogetherLayer { parts: self.parts.clone(), answer: self.answer.clone() }
    }
}

impl<B, A> fmt::Debug for TogetherLayer<B, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let policies = self.parts.iter().map(|part| (&part.policy, part.units));
        f.debug_map().entries(policies).finish()
    }
}

impl<S, B, A: Clone> Layer<S> for TogetherLayer<B, A> {
    type Service = AllOf<S, B, A>;

    fn layer(&self, inner: S) -> AllOf<S, B, A> {
        AllOf { inner, layer: Arc::new(self.clone()) }
    }
}

// === impl Part ===

impl<B> Clone for Part<B> {
    fn clone(&self) -> Part<B> {
        let of = match &self.of {
            Resource::Rate(rate, key) => Resource::Rate(rate.clone(), Arc::clone(key)),
            Resource::Gauge(gauge) => Resource::Gauge(gauge.clone()),
        };
        Part { of, units: self.units, policy: Arc::clone(&self.policy), fields: self.fields.clone() }
    }
}

// === impl AllOf ===

impl<S: Clone, B, A> Clone for AllOf<S, B, A> {
    fn clone(&self) -> AllOf<S, B, A> {
        AllOf { inner: self.inner.clone(), layer: Arc::clone(&self.layer) }
    }
}

impl<S: fmt::Debug, B, A> fmt::Debug for AllOf<S, B, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AllOf").field("inner", &self.inner).field("layer", &self.layer).finish()
    }
}

impl<S, B, R, A> Service<Request<B>> for AllOf<S, B, A>
where
    S: Service<Request<B>, Response = Response<R>>,
    A: Answer<R>,
{
    type Response = Response<crate::held::HeldBody<R, TogetherPermit>>;
    type Error = S::Error;
    type Future = AllOfFuture<S::Future, R>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        match self.layer.take(&request) {
            Ok((permit, headers)) => HeldFuture::granted(self.inner.call(request), permit, headers),
            Err((rejection, fields)) => {
                let mut answer = self.layer.answer.answer(&rejection);
                fields::finish(fields, answer.headers_mut(), &rejection);
                HeldFuture::denied(answer)
            }
        }
    }
}
