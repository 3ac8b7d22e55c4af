//! Foreign pages: what somebody has open in a browser, and what must not call in his name.

use axum::Router;
use axum::extract::Request;
use axum::http::header;
use axum::http::request::Parts;
use axum::middleware::{self, Next};
use axum::response::Response;
use lessor_proto::Identity;

use super::act::Act;
use super::problem::{ActProblem, shown};
use crate::shell::caller::Caller;
use crate::shell::hosts::is_of_machine;

/// The header that the console says with each call, and that no form and no page of another origin can send unasked.
const PAGE: &str = "lessor-page";

/// Refuses browsers: a page that somebody has open could call in his name. The console of this very port may ask for some acts.
pub(super) fn check_origin(head: &Parts, act: Act) -> Result<(), ActProblem> {
    let text = |name: &str| head.headers.get(name).map(|value| value.to_str().unwrap_or_default());
    let (origin, site) = (text("origin"), text("sec-fetch-site"));
    if origin.is_none() && site.is_none_or(|site| matches!(site, "same-origin" | "none")) {
        return Ok(());
    }
    if !act.may_come_from_page() {
        return Err(ActProblem::new(
            403,
            "the call comes from a page in a browser, as it says its Origin; wanted one of a command",
        ));
    }
    let host = text("host");
    let authority = origin.and_then(|origin| origin.split_once("://")).map(|(_, authority)| authority);
    let is_own = authority.is_some() && authority == host && site == Some("same-origin");
    match is_own && text(PAGE) == Some("console") {
        true => Ok(()),
        false => Err(ActProblem::new(
            403,
            format!(
                "the call comes from a page in a browser: found Origin {:?} for Host {:?}, Sec-Fetch-Site {:?} and {PAGE} {:?}; \
                 wanted one of the console of this port: its own origin, \"same-origin\" and \"console\"",
                shown(origin.unwrap_or("none")),
                shown(host.unwrap_or("none")),
                shown(site.unwrap_or("none")),
                shown(text(PAGE).unwrap_or("none"))
            ),
        )),
    }
}

/// Refuses calls in plain over the network that name a host of the DNS: whoever answers for that name may have led the page of
/// another to this port.
pub(super) fn check_host(head: &Parts, caller: &Caller) -> Result<(), ActProblem> {
    if caller.process.is_some() || caller.identity != Identity::plain() {
        return Ok(());
    }
    let host = head.headers.get(header::HOST).map(|host| host.to_str().unwrap_or_default());
    if host.is_some_and(is_of_machine) {
        return Ok(());
    }
    let found = host.map_or("none".to_owned(), |host| format!("{:?}", shown(host)));
    let detail = format!(
        "Host: found {found}; wanted an IP address or localhost, with any port, as the call comes in plain"
    );
    Err(ActProblem::new(403, detail))
}

/// The same pages for those only who call by such a host.
pub(super) fn guard(pages: Router) -> Router {
    pages.layer(middleware::from_fn(async |request: Request, next: Next| {
        let (head, body) = request.into_parts();
        let caller = head.extensions.get::<Caller>().cloned().unwrap_or_else(Caller::unknown);
        match check_host(&head, &caller) {
            Ok(()) => next.run(Request::from_parts(head, body)).await,
            Err(problem) => Response::from(problem),
        }
    }))
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;

    #[test]
    fn a_call_in_plain_names_an_address_of_a_machine() {
        let address = ([127, 0, 0, 1], 1).into();
        let plain = Caller::remote(address, Identity::plain(), None);
        let head = |host: Option<&str>| {
            let request = Request::builder().uri("/admin/connections");
            let request = host.into_iter().fold(request, |request, host| request.header(header::HOST, host));
            request.body(()).expect("a request").into_parts().0
        };
        for good in ["127.0.0.1", "127.0.0.1:9", "[::1]:9", "[::1]", "localhost", "LocalHost:9", "10.0.0.1:9"]
        {
            assert!(check_host(&head(Some(good)), &plain).is_ok(), "{good}");
        }
        let six = "[::1].evil.example:9";
        for bad in ["evil.example", "evil.example:9", "127.0.0.1.evil.example", "localhost.", six, "", "[::1"]
        {
            let fault = check_host(&head(Some(bad)), &plain).expect_err(bad);
            let told = format!("Host: found {bad:?}; wanted an IP address or localhost");
            assert!(fault.status == 403 && fault.detail.starts_with(&told), "{bad}: {fault:?}");
        }
        let fault = check_host(&head(None), &plain).expect_err("it has none");
        assert!(fault.detail.starts_with("Host: found none; wanted"), "{fault:?}");
        // Over TLS the name is proved.
        let proved = Caller::remote(address, Identity::anonymous(), None);
        assert!(check_host(&head(Some("evil.example")), &proved).is_ok());
    }
}
