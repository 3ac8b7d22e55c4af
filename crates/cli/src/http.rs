//! Requests over HTTP/1 to the pages of a server, or to its admin port.

use std::sync::Arc;

use anyhow::{Context, ensure};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::http::uri::Authority;
use hyper::{Request, Response, StatusCode, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use lessor_client::internals::tls::{ClientTls, Connector, Protocol};

use crate::tls::ClientTlsFlags;

/// Bytes in an answer, at the most.
const MOST_BYTES: usize = 64 << 20;

/// The address of a page of a server at `HOST:PORT`.
pub(crate) fn uri(server: &str, path: &str, tls: &ClientTlsFlags) -> anyhow::Result<Uri> {
    let scheme = if tls.settings().is_some() { "https" } else { "http" };
    let authority: Authority = server.parse()?;
    ensure!(is_whole(&authority), "no host, or no port from 1 to 65535");
    Ok(Uri::builder().scheme(scheme).authority(authority).path_and_query(path).build()?)
}

/// Whether it names a host and a port. Without a port, or with one that is none, that of the scheme would be asked in its place.
pub(crate) fn is_whole(authority: &Authority) -> bool {
    !authority.host().is_empty() && authority.port_u16().is_some_and(|port| port > 0)
}

/// Sends a request to the server that it names, in plain or over TLS as the flags say.
pub(crate) async fn send(
    request: Request<Full<Bytes>>,
    tls: &ClientTlsFlags,
    server: &str,
) -> anyhow::Result<Response<Incoming>> {
    let tls = tls.settings().map(|tls| ClientTls::load(&tls)).transpose()?;
    let connector = Connector::new(tls.map(Arc::new), Protocol::Http1);
    let client: Client<_, Full<Bytes>> = Client::builder(TokioExecutor::new()).build(connector);
    client.request(request).await.with_context(|| format!("no answer from {server}"))
}

/// The status of an answer, and its text.
pub(crate) async fn read(response: Response<Incoming>) -> anyhow::Result<(StatusCode, String)> {
    let status = response.status();
    let body = Limited::new(response.into_body(), MOST_BYTES).collect().await;
    let body = body.map_err(anyhow::Error::from_boxed)?.to_bytes();
    Ok((status, String::from_utf8_lossy(&body).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_a_host_and_a_port() {
        for (server, is_one) in [
            ("web-1:15000", true),
            ("[::1]:15000", true),
            ("web-1", false),
            ("web-1:", false),
            ("web-1:0", false),
            ("web-1:99999", false),
            (":15000", false),
        ] {
            assert_eq!(is_whole(&server.parse().unwrap()), is_one, "{server}");
        }
    }
}
