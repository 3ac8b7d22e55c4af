//! Pages of servers: of the first of several tasks that answers, and of the one that leads where that is another.

use std::time::{Duration, SystemTime};

use anyhow::{Context, anyhow, bail};
use clap::Args;
use http_body_util::Full;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, DATE};
use hyper::{Request, StatusCode};
use lessor_client::{Builder, Client};
use serde_json::Value;

use crate::http;
use crate::tls::ClientTlsFlags;

/// The servers to ask, and what is shown to them.
#[derive(Clone, Debug, Args)]
pub(crate) struct ServerFlags {
    /// The server; of a node with several tasks all of them, or some: the one that leads is asked
    #[arg(
        long,
        env = "LESSOR_SERVER",
        value_name = "HOST:PORT,...",
        default_value = "127.0.0.1:15000",
        value_delimiter = ','
    )]
    pub(crate) server: Vec<String>,
    #[command(flatten)]
    pub(crate) tls: ClientTlsFlags,
}

// === impl ServerFlags ===

impl ServerFlags {
    /// A client of these servers, of that id or one that is made up.
    pub(crate) fn client(&self, id: Option<&str>) -> anyhow::Result<Builder> {
        let (first, others) = self.server.split_first().context("no server is given")?;
        let mut builder = others.iter().fold(Client::builder(first), Builder::server);
        if let Some(id) = id {
            builder = builder.id(id);
        }
        if let Some(tls) = self.tls.settings() {
            builder = builder.tls(tls);
        }
        if let Some(token) = self.tls.token() {
            builder = builder.token(token);
        }
        Ok(builder)
    }
}

/// A page, and who sent it.
#[derive(Clone, Debug)]
pub(crate) struct Page {
    pub(crate) server: String,
    pub(crate) status: StatusCode,
    pub(crate) text: String,
    /// When it was sent, to the second, by the clock of the server.
    pub(crate) date: Option<SystemTime>,
}

/// The error of a page of something that is not there.
#[derive(Debug, thiserror::Error)]
#[error("{server}: {text}")]
pub(crate) struct Missing {
    pub(crate) server: String,
    /// The words of the server; none where it has no such page at all.
    pub(crate) text: String,
}

const TIMEOUT: Duration = Duration::from_secs(5);
/// The same of what a server has to ask many others for.
const LONG_TIMEOUT: Duration = Duration::from_secs(15);
/// Leaders that are asked one after the other, as each names another.
const MOST_LEADERS: usize = 3;

/// A request for a page.
struct PageRequest<'a> {
    path: &'a str,
    /// The document that is posted; absent: nothing is.
    body: Option<&'a str>,
    timeout: Duration,
}

// === impl ServerFlags ===

impl ServerFlags {
    /// The page at `path` of the task that leads; of another one where nobody is known to lead.
    pub(crate) async fn ask(&self, path: &str) -> anyhow::Result<Page> {
        let (mut leaderless, mut fault) = (None, None);
        for server in &self.server {
            match self.follow(server, path).await {
                Ok(page) if page.names_nobody() => leaderless = Some(page),
                Ok(page) => return Ok(page),
                Err(error) => fault = fault.or(Some(error)),
            }
        }
        match (leaderless, fault) {
            (Some(page), _) => Ok(page),
            (None, Some(fault)) => Err(fault),
            (None, None) => bail!("no server is given; wanted HOST:PORT"),
        }
    }

    /// The answer of the task that leads to a JSON document that is posted at `path`.
    pub(crate) async fn post(&self, path: &str, body: &str) -> anyhow::Result<Page> {
        let mut fault = None;
        for server in &self.server {
            match self.post_to(server, path, body).await {
                Ok(page) => return Ok(page),
                Err(error) => fault = fault.or(Some(error)),
            }
        }
        Err(fault.unwrap_or_else(|| anyhow!("no server is given; wanted HOST:PORT")))
    }

    async fn post_to(&self, server: &str, path: &str, body: &str) -> anyhow::Result<Page> {
        let asked = || PageRequest { path, body: Some(body), timeout: LONG_TIMEOUT };
        let mut page = self.fetch(server, asked()).await?;
        for _ in 0..MOST_LEADERS {
            let Some(leader) = page.leader_elsewhere() else { break };
            let led = || format!("{} is led by {leader}", page.server);
            page = self.fetch(&leader, asked()).await.with_context(led)?;
        }
        Ok(page)
    }

    /// The page at `path` of one server, or of the leader that it names.
    pub(crate) async fn follow(&self, server: &str, path: &str) -> anyhow::Result<Page> {
        let mut page = self.get(server, path).await?;
        for _ in 0..MOST_LEADERS {
            let Some(leader) = page.leader_elsewhere() else { break };
            let led = || format!("{} is led by {leader}", page.server);
            page = self.get(&leader, path).await.with_context(led)?;
        }
        Ok(page)
    }

    /// The page at `path` of that very server.
    pub(crate) async fn get(&self, server: &str, path: &str) -> anyhow::Result<Page> {
        self.fetch(server, PageRequest { path, body: None, timeout: TIMEOUT }).await
    }

    async fn fetch(&self, server: &str, asked: PageRequest<'_>) -> anyhow::Result<Page> {
        let PageRequest { path, body, timeout } = asked;
        let uri = http::uri(server, path, &self.tls)
            .with_context(|| format!("server {server:?}: wanted HOST:PORT"))?;
        let token = self.tls.token().map(|token| token.http_header(&uri)).transpose()?;
        let mut request = match body {
            Some(_) => Request::post(uri).header(CONTENT_TYPE, "application/json"),
            None => Request::get(uri),
        };
        if let Some(token) = token {
            request = request.header(AUTHORIZATION, token);
        }
        let body = body.map_or_else(Full::default, |body| Full::from(body.to_owned()));
        let request = request.body(body)?;
        let fetch = async {
            let response = http::send(request, &self.tls, server).await?;
            let date = response.headers().get(DATE).and_then(|date| date.to_str().ok());
            let date = date.and_then(|date| httpdate::parse_http_date(date).ok());
            anyhow::Ok((http::read(response).await?, date))
        };
        let waited = tokio::time::timeout(timeout, fetch).await;
        let ((status, text), date) =
            waited.map_err(|_| anyhow!("no answer from {server} in {timeout:?}"))??;
        Ok(Page { server: server.to_owned(), status, text, date })
    }
}

// === impl Page ===

impl Page {
    /// The text, if the page is what was asked for.
    pub(crate) fn wanted(self) -> anyhow::Result<String> {
        if self.status == StatusCode::OK {
            return Ok(self.text);
        }
        if self.status == StatusCode::NOT_FOUND {
            return Err(Missing { server: self.server, text: self.text.trim().to_owned() }.into());
        }
        bail!("{}: {}", self.server, self.text.trim())
    }

    /// The leader that it names, if whoever sent it does not lead.
    fn leader_elsewhere(&self) -> Option<String> {
        let said = self.says_not_leading()?;
        said["leader"].as_str().map(str::to_owned)
    }

    /// Whether whoever sent it does not lead, and knows nobody who does.
    pub(crate) fn names_nobody(&self) -> bool {
        self.says_not_leading().is_some_and(|said| said["leader"].is_null())
    }

    fn says_not_leading(&self) -> Option<Value> {
        let said: Value = serde_json::from_str(&self.text).ok()?;
        (said["leads"] == Value::Bool(false)).then_some(said)
    }
}

/// Everything but letters and digits as `%41`.
pub(crate) fn percent_encode(text: &str) -> String {
    let encode = |byte: u8| match byte {
        byte if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    text.bytes().map(encode).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_name_fits_into_an_address() {
        assert_eq!(percent_encode("db/größe 1"), "db%2Fgr%C3%B6%C3%9Fe%201");
    }

    #[test]
    fn a_page_says_who_leads_if_somebody_else_does() {
        let page =
            |text: &str| Page { server: "a:1".into(), status: StatusCode::OK, text: text.into(), date: None };
        assert_eq!(page(r#"{"leads":false,"leader":"b:1"}"#).leader_elsewhere().as_deref(), Some("b:1"));
        assert!(page(r#"{"leads":false,"leader":null}"#).names_nobody());
        for other in [r#"{"leads":true,"leader":"a:1"}"#, r#"{"schema":1}"#, "no such page"] {
            assert!(page(other).leader_elsewhere().is_none() && !page(other).names_nobody(), "{other}");
        }
    }
}
