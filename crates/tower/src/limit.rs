//! Limits on requests: each takes units of a rate before it reaches the service, or is denied.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use http::{Request, Response, StatusCode};
use lessor_client::{Decision, Denied, Rate};
use pin_project_lite::pin_project;
use tower_layer::Layer;
use tower_service::Service;

use crate::answer::{Answer, Problem, Rejection};
use crate::cost::{Cost, Keep, One, Settle, Settling};
use crate::fields::Fields;
use crate::key::{Key, Name};

thread_local! {
    /// The room in which names are written.
    static BUFFER: Cell<String> = const { Cell::new(String::new()) };
}

/// A layer that lets requests pass as far as a rate, and what each of its domains may do of it, allows.
///
/// It decides when it is called, and never waits. What it does not grant costs nothing, and is answered with 429, or with 503
/// where nothing is leased: see [`Answer`].
#[derive(Clone, Debug)]
#[must_use = "a layer limits nothing by itself"]
pub struct LimitLayer<K, C = One, T = Keep, A = Problem> {
    settings: Settings<K, C, T, A>,
}

/// A service behind a [`LimitLayer`].
#[derive(Debug)]
pub struct Limit<S, K, C = One, T = Keep, A = Problem> {
    pub(crate) inner: S,
    pub(crate) settings: Arc<Settings<K, C, T, A>>,
}

/// The treatment of requests while nothing is leased.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Unleased {
    /// They are denied, with 503.
    #[default]
    Deny,
    /// They pass, and nobody counts them.
    Pass,
}

#[derive(Clone, Debug)]
pub(crate) struct Settings<K, C, T, A> {
    pub(crate) rate: Rate,
    key: K,
    cost: C,
    settle: T,
    answer: A,
    policy: Arc<str>,
    fields: Option<Fields>,
    unleased: Unleased,
}

pin_project! {
    /// The answer of a [`Limit`].
    #[derive(Debug)]
    pub struct LimitFuture<F, R, K, C, T, A> {
        #[pin]
        pub(crate) stage: Stage<F, R>,
        pub(crate) settings: Arc<Settings<K, C, T, A>>,
    }
}

pin_project! {
    #[derive(Debug)]
    #[project = StageProjection]
    pub(crate) enum Stage<F, R> {
        Denied { answer: Option<Response<R>> },
        Granted { #[pin] inner: F, grant: Grant },
    }
}

/// The units that a request was granted.
#[derive(Debug)]
pub(crate) struct Grant {
    pub(crate) units: u32,
    /// Whose they are, where that is to be settled.
    pub(crate) domain: Option<String>,
    decision: Option<Decision>,
}

// === impl LimitLayer ===

impl<K> LimitLayer<K> {
    /// Each request costs a unit of `rate`, of the domain that `key` names.
    pub fn new(rate: Rate, key: K) -> LimitLayer<K> {
        let policy: Arc<str> = rate.name().as_str().into();
        let fields = Some(Fields::named(&policy));
        let settings = Settings {
            rate,
            key,
            cost: One,
            settle: Keep,
            answer: Problem,
            policy,
            fields,
            unleased: Unleased::default(),
        };
        LimitLayer { settings }
    }
}

impl<K, C, T, A> LimitLayer<K, C, T, A> {
    /// The cost of a request, before it is answered; a unit without it.
    pub fn cost<D>(self, cost: D) -> LimitLayer<K, D, T, A> {
        let Settings { rate, key, settle, answer, policy, fields, unleased, .. } = self.settings;
        LimitLayer { settings: Settings { rate, key, cost, settle, answer, policy, fields, unleased } }
    }

    /// The cost that a request turns out to have had, when its answer begins, or with [`BodyBytes`](crate::BodyBytes) when it
    /// has been sent.
    pub fn settle<U>(self, settle: U) -> LimitLayer<K, C, U, A> {
        let Settings { rate, key, cost, answer, policy, fields, unleased, .. } = self.settings;
        LimitLayer { settings: Settings { rate, key, cost, settle, answer, policy, fields, unleased } }
    }

    /// The answer to what is not granted; [`Problem`] without it.
    pub fn answer<D>(self, answer: D) -> LimitLayer<K, C, T, D> {
        let Settings { rate, key, cost, settle, policy, fields, unleased, .. } = self.settings;
        LimitLayer { settings: Settings { rate, key, cost, settle, answer, policy, fields, unleased } }
    }

    /// The name of the policy in fields and problems; that of the resource without it. `RateLimit-Policy: "NAME";q=20;w=60` says
    /// how many hits the current tier of the domain allows in how many seconds, `RateLimit: "NAME";r=7;t=60` how many of them
    /// are left. Where no tier limits a domain there is nothing to say before a denial.
    pub fn name(mut self, policy: &str) -> LimitLayer<K, C, T, A> {
        self.settings.policy = policy.into();
        self.settings.fields = self.settings.fields.map(|_| Fields::named(policy));
        self
    }

    /// Adds no fields to answers; denials keep their `Retry-After`.
    pub fn without_fields(mut self) -> LimitLayer<K, C, T, A> {
        self.settings.fields = None;
        self
    }

    /// The treatment of requests while nothing is leased; they are denied without it.
    pub fn unleased(mut self, unleased: Unleased) -> LimitLayer<K, C, T, A> {
        self.settings.unleased = unleased;
        self
    }
}

impl<S, K: Clone, C: Clone, T: Clone, A: Clone> Layer<S> for LimitLayer<K, C, T, A> {
    type Service = Limit<S, K, C, T, A>;

    fn layer(&self, inner: S) -> Limit<S, K, C, T, A> {
        Limit { inner, settings: Arc::new(self.settings.clone()) }
    }
}

// === impl Limit ===

impl<S: Clone, K, C, T, A> Clone for Limit<S, K, C, T, A> {
    fn clone(&self) -> Limit<S, K, C, T, A> {
        Limit { inner: self.inner.clone(), settings: Arc::clone(&self.settings) }
    }
}

impl<S, B, R, K, C, T, A> Service<Request<B>> for Limit<S, K, C, T, A>
where
    S: Service<Request<B>, Response = Response<R>>,
    K: Key<B>,
    C: Cost<B>,
    T: Settle,
    A: Answer<R>,
{
    type Response = Response<R>;
    type Error = S::Error;
    type Future = LimitFuture<S::Future, R, K, C, T, A>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        self.decide_and_call(request)
    }
}

impl<S, K, C, T, A> Limit<S, K, C, T, A> {
    pub(crate) fn decide_and_call<B, R>(
        &mut self,
        request: Request<B>,
    ) -> LimitFuture<S::Future, R, K, C, T, A>
    where
        S: Service<Request<B>, Response = Response<R>>,
        K: Key<B>,
        C: Cost<B>,
        T: Settling,
        A: Answer<R>,
    {
        let settings = Arc::clone(&self.settings);
        let stage = match settings.decide(&request) {
            Ok(grant) => Stage::Granted { inner: self.inner.call(request), grant },
            Err(rejection) => Stage::Denied { answer: Some(settings.reject(&rejection)) },
        };
        LimitFuture { stage, settings }
    }
}

// === impl Settings ===

impl<K, C, T, A> Settings<K, C, T, A> {
    /// Takes what the request costs.
    fn decide<B>(&self, request: &Request<B>) -> Result<Grant, Rejection>
    where
        K: Key<B>,
        C: Cost<B>,
        T: Settling,
    {
        let mut name = Name::within(BUFFER.take());
        let granted = match self.key.key(request, &mut name) {
            Ok(()) => self.take(name.domain(), self.cost.cost(request)),
            Err(unkeyed) => Err(Rejection::unkeyed(unkeyed, &self.policy)),
        };
        BUFFER.set(name.into_buffer());
        granted
    }

    fn take(&self, domain: Option<&str>, units: u32) -> Result<Grant, Rejection>
    where
        T: Settling,
    {
        let decision = match domain {
            _ if units == 0 => Ok(None),
            Some(domain) => self.rate.domain(domain).try_acquire(units).map(Some),
            None => self.rate.try_acquire(units).map(|()| None),
        };
        let owner = || domain.filter(|_| T::IS_NEEDED).map(str::to_owned);
        match decision {
            Ok(decision) => Ok(Grant { units, domain: owner(), decision }),
            Err(denied) if self.passes(&denied) => Ok(Grant { units: 0, domain: owner(), decision: None }),
            Err(denied) => Err(Rejection::denied(denied, &self.policy, StatusCode::TOO_MANY_REQUESTS)),
        }
    }

    fn passes(&self, denied: &Denied) -> bool {
        self.unleased == Unleased::Pass && !denied.is_over_limit()
    }

    fn reject<R>(&self, rejection: &Rejection) -> Response<R>
    where
        A: Answer<R>,
    {
        let mut answer = self.answer.answer(rejection);
        crate::fields::finish(self.fields.as_ref(), answer.headers_mut(), rejection);
        answer
    }

    /// Says what is left.
    pub(crate) fn note<R>(&self, answer: &mut Response<R>, grant: &Grant) {
        if let (Some(fields), Some(decision)) = (&self.fields, &grant.decision) {
            fields.note(answer.headers_mut(), decision);
        }
    }

    /// Says what is left, and settles what the request cost.
    fn finish<R>(&self, mut answer: Response<R>, grant: &Grant) -> Response<R>
    where
        T: Settle,
    {
        self.note(&mut answer, grant);
        if !T::IS_NEEDED {
            return answer;
        }
        let (parts, body) = answer.into_parts();
        let actual = self.settle.actual(&parts, grant.units);
        match &grant.domain {
            Some(domain) => self.rate.domain(domain).settle(grant.units, actual),
            None => self.rate.settle(grant.units, actual),
        }
        Response::from_parts(parts, body)
    }
}

// === impl LimitFuture ===

impl<F, E, R, K, C, T, A> Future for LimitFuture<F, R, K, C, T, A>
where
    F: Future<Output = Result<Response<R>, E>>,
    T: Settle,
{
    type Output = Result<Response<R>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        match this.stage.project() {
            StageProjection::Denied { answer } => {
                Poll::Ready(Ok(answer.take().expect("a future is not polled after it has ended")))
            }
            StageProjection::Granted { inner, grant } => {
                let answer = ready!(inner.poll(cx))?;
                Poll::Ready(Ok(this.settings.finish(answer, grant)))
            }
        }
    }
}
