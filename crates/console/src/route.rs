//! The routes of the console, and the headers of everything that it answers.

use std::time::Duration;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::{HeaderName, HeaderValue, header};
use axum::middleware::{self, Next};
use axum::response::{Redirect, Response};
use axum::routing::{get, post};
use lessor_server::shell::{MadePages, MorePages, PageParts};

use crate::desk::Desk;
use crate::{
    assets, check, domains, events, findings, holders, node, overrides, plain, resources, revisions, series,
    tiers,
};

/// The settings of a console.
#[derive(Clone)]
pub struct Console {
    /// The time for which the figures of the busiest resources are kept; 0: they are not.
    pub history: Duration,
}

/// Bytes in the body of a request.
const MOST_BODY: usize = 1 << 20;

/// The headers of everything: nothing but what comes from here is run, shown or asked, and nobody frames it.
const HEADERS: [(HeaderName, &str); 5] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

// === impl Console ===

impl Default for Console {
    fn default() -> Console {
        Console { history: Duration::from_secs(900) }
    }
}

impl Console {
    /// The pages, as a server takes them.
    #[must_use]
    pub fn pages(self) -> MorePages {
        MorePages::new(move |parts: PageParts| {
            let desk = Desk::new(parts, &self);
            series::keep(&desk);
            let admin = router(desk.of_operators());
            MadePages { public: router(desk), admin }
        })
    }
}

fn router(desk: Desk) -> Router {
    Router::new()
        .route("/", get(assets::front))
        .route("/console.js", get(assets::script))
        .route("/push.js", get(assets::push))
        .route("/console.css", get(assets::style))
        .route("/favicon.ico", get(assets::icon))
        .route("/plain", get(plain::page))
        .route("/debug/status", get(async || Redirect::temporary("/")))
        .route("/debug/resources", get(async || Redirect::temporary("/")))
        .route("/v1/node", get(node::node))
        .route("/v1/here", get(node::here))
        .route("/v1/tasks", get(revisions::tasks))
        .route("/v1/resources", get(resources::resources))
        .route("/v1/holders", get(holders::holders))
        .route("/v1/domains", get(domains::domains))
        .route("/v1/overrides", get(overrides::overrides))
        .route("/v1/findings", get(findings::findings))
        .route("/v1/series", get(series::series))
        .route("/v1/events", get(events::events))
        .route("/v1/history", get(revisions::history))
        .route("/v1/revision", get(revisions::revision))
        .route("/v1/diff", get(revisions::diff))
        .route("/v1/tiers", post(tiers::tiers))
        .route("/v1/check", post(check::check))
        .layer(DefaultBodyLimit::max(MOST_BODY))
        .layer(middleware::from_fn(async |request, next: Next| guarded(next.run(request).await)))
        .with_state(desk)
}

fn guarded(mut response: Response) -> Response {
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}
