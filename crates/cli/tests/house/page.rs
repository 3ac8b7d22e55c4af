//! Pages as a browser or a monitor fetches them.

use std::net::SocketAddr;

use http_body_util::{BodyExt, Empty};
use hyper::Request;
use hyper::body::Bytes;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use tokio::time::timeout;

use super::AGES;

#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) code: u16,
    pub(crate) content_type: String,
    pub(crate) body: String,
}

/// Fetches a page over HTTP/1.1.
pub(crate) async fn get(address: SocketAddr, path: &str) -> Page {
    get_as(address, path, "*/*").await
}

/// The same for somebody who accepts these types.
pub(crate) async fn get_as(address: SocketAddr, path: &str, accept: &str) -> Page {
    let fetch = async {
        let client: Client<_, Empty<Bytes>> = Client::builder(TokioExecutor::new()).build_http();
        let request = Request::get(format!("http://{address}{path}")).header("accept", accept);
        let request = request.body(Empty::new()).expect("an address");
        let response = client.request(request).await.unwrap_or_else(|error| panic!("{path}: {error}"));
        let code = response.status().as_u16();
        let content_type =
            response.headers().get("content-type").map(|value| value.to_str().expect("text").to_owned());
        let body = response.into_body().collect().await.expect("the whole page").to_bytes();
        let body = String::from_utf8(body.to_vec()).expect("text");
        Page { code, content_type: content_type.unwrap_or_default(), body }
    };
    timeout(AGES, fetch).await.unwrap_or_else(|_| panic!("{path}: no page in time"))
}

// === impl Page ===

impl Page {
    pub(crate) fn json(&self) -> serde_json::Value {
        assert_eq!((self.code, self.content_type.as_str()), (200, "application/json"), "{}", self.body);
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error} in\n{}", self.body))
    }
}
