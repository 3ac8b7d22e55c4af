//! The hosts under which browsers may ask for pages.
//!
//! The owner of a name in the DNS can have it lead anywhere: a page of his, open in somebody's browser, would then reach a
//! server that only that browser reaches, and read all that it says. Its requests still name his host, and that gives them away.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::uri::Authority;
use axum::http::{StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use lessor_proto::Identity;

use super::caller::Caller;

/// The names that a server has, beside those that are nobody's in the DNS.
#[derive(Clone, Debug)]
pub(super) struct HostNames(Arc<[String]>);

/// The pages that monitors ask for by whatever name they know.
const OF_MONITORS: [&str; 3] = ["/healthz", "/readyz", "/metrics"];

// === impl HostNames ===

impl HostNames {
    /// The name in the address that clients are told, and those that were configured.
    pub(super) fn new(advertised: Option<&str>, configured: &[String]) -> HostNames {
        let names = configured.iter().map(String::as_str).chain(advertised.map(without_port));
        HostNames(names.map(str::to_ascii_lowercase).collect())
    }

    /// Whether it is no name of a foreigner's: an address, one of the server, or one without a dot, which is of the network
    /// that somebody is in.
    fn is_safe(&self, host: &str) -> bool {
        let name = without_port(host);
        is_of_machine(host)
            || (!name.is_empty()
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)))
            || self.0.iter().any(|known| known.eq_ignore_ascii_case(name))
    }

    /// Refuses a request of a browser in plain under the name of a foreigner. Over TLS the name is proved.
    fn check(&self, head: &Parts) -> Result<(), String> {
        let caller = head.extensions.get::<Caller>();
        let is_proved =
            caller.is_some_and(|caller| caller.process.is_some() || caller.identity != Identity::plain());
        if is_proved || !is_of_browser(head) || OF_MONITORS.contains(&head.uri.path()) {
            return Ok(());
        }
        // Over HTTP/2 it stands in the address.
        let host = head.headers.get(header::HOST).map(|host| host.to_str().unwrap_or_default());
        let host = host.or_else(|| head.uri.authority().map(Authority::as_str));
        if host.is_some_and(|host| self.is_safe(host)) {
            return Ok(());
        }
        let found = host
            .map_or("none".to_owned(), |host| format!("{:?}", host.chars().take(253).collect::<String>()));
        Err(format!(
            "Host: found {found}; wanted an IP address, a name without a dot, or one of --page-hosts, as the request is a browser's \
             and comes in plain\n"
        ))
    }

    /// The same pages for those only who ask by such a host.
    pub(super) fn guard(self, pages: Router) -> Router {
        pages.layer(middleware::from_fn(move |request: Request, next: Next| {
            let (head, body) = request.into_parts();
            let refused = self.check(&head).err();
            async move {
                match refused {
                    None => next.run(Request::from_parts(head, body)).await,
                    Some(fault) => (StatusCode::FORBIDDEN, fault).into_response() as Response,
                }
            }
        }))
    }
}

/// Whether it may come from a page in a browser. No script can leave out that the answer may be packed, which commands do not say.
fn is_of_browser(head: &Parts) -> bool {
    let marks = [header::ACCEPT_ENCODING, header::ORIGIN, header::REFERER, header::UPGRADE_INSECURE_REQUESTS];
    marks.iter().any(|mark| head.headers.contains_key(mark)) || head.headers.contains_key("sec-fetch-site")
}

/// Whether a host is an address, or the machine itself.
pub(super) fn is_of_machine(host: &str) -> bool {
    let name = without_port(host);
    let six = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<Ipv4Addr>().is_ok()
        || six.is_some_and(|name| name.parse::<Ipv6Addr>().is_ok())
}

fn without_port(host: &str) -> &str {
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    host.rsplit_once(':').filter(|(_, port)| is_port(port)).map_or(host, |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(path: &str, headers: &[(header::HeaderName, &str)]) -> Parts {
        let request = Request::builder().uri(path);
        let request = headers.iter().fold(request, |request, (name, value)| request.header(name, *value));
        request.body(axum::body::Body::empty()).expect("a request").into_parts().0
    }

    fn names() -> HostNames {
        HostNames::new(Some("root-1.lessor.example:15000"), &["Console.example".to_owned()])
    }

    #[test]
    fn a_browser_in_plain_names_a_host_that_is_no_foreigner() {
        let fault = |host: &str| {
            let browser = (header::ACCEPT_ENCODING, "gzip, deflate");
            names().check(&head("/v1/resources", &[(header::HOST, host), browser])).err()
        };
        for good in [
            "127.0.0.1:9",
            "[::1]:9",
            "10.0.0.1",
            "localhost:9",
            "paris-1:15001",
            "console.example",
            "CONSOLE.example:9",
            "root-1.lessor.example:15001",
        ] {
            assert_eq!(fault(good), None, "{good}");
        }
        for bad in
            ["evil.example:15001", "127.0.0.1.evil.example", "console.example.evil.example", "a.", "", "[::1"]
        {
            let told = fault(bad).unwrap_or_else(|| panic!("{bad} is taken"));
            assert!(told.starts_with(&format!("Host: found {bad:?}; wanted an IP address")), "{told}");
        }
        let none = names().check(&head("/status", &[(header::ORIGIN, "http://evil.example")]));
        assert!(none.is_err_and(|told| told.starts_with("Host: found none;")));
    }

    #[test]
    fn commands_monitors_and_whoever_has_proved_the_name_may_use_any() {
        let (evil, browser) = ((header::HOST, "evil.example"), (header::ACCEPT_ENCODING, "gzip"));
        assert_eq!(names().check(&head("/v1/tree", std::slice::from_ref(&evil))), Ok(()));
        for path in OF_MONITORS {
            assert_eq!(names().check(&head(path, &[evil.clone(), browser.clone()])), Ok(()), "{path}");
        }
        let address = ([127, 0, 0, 1], 1).into();
        for (identity, is_taken) in [(Identity::plain(), false), (Identity::anonymous(), true)] {
            let mut asked = head("/v1/tree", &[evil.clone(), browser.clone()]);
            asked.extensions.insert(Caller::remote(address, identity, None));
            assert_eq!(names().check(&asked).is_ok(), is_taken);
        }
    }
}
