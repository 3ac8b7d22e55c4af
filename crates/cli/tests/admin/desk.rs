//! A caller of the admin port that says exactly what it is told to say.

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

use crate::house::AGES;

/// An answer of an admin port.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

/// A caller at an address, or at `unix:PATH`.
pub(crate) struct Desk {
    at: String,
    headers: String,
    host: &'static str,
}

// === impl Desk ===

impl Desk {
    pub(crate) fn new(at: &str) -> Desk {
        Desk { at: at.to_string(), headers: String::new(), host: "localhost" }
    }

    /// The same with a token.
    pub(crate) fn with_token(at: &str, token: &str) -> Desk {
        Desk { headers: format!("Authorization: Bearer {token}\r\n"), ..Desk::new(at) }
    }

    /// The same with another header.
    pub(crate) fn with_header(mut self, line: &str) -> Desk {
        self.headers.push_str(&format!("{line}\r\n"));
        self
    }

    /// The same that names another host.
    pub(crate) fn with_host(self, host: &'static str) -> Desk {
        Desk { host, ..self }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.call("GET", path, None).await
    }

    /// A call with that for a body, which it says is JSON.
    pub(crate) async fn call(&self, method: &str, path: &str, body: Option<&str>) -> Answer {
        let kind = if body.is_some() { "Content-Type: application/json\r\n" } else { "" };
        self.say(method, path, kind, body.unwrap_or_default()).await
    }

    /// A call with a body, and its kind as a line of the head.
    pub(crate) async fn say(&self, method: &str, path: &str, kind: &str, body: &str) -> Answer {
        let (headers, host, length) = (&self.headers, self.host, body.len());
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{headers}{kind}Content-Length: {length}\r\n\r\n{body}"
        );
        let asked = async {
            match self.at.strip_prefix("unix:") {
                Some(path) => ask(UnixStream::connect(path).await.unwrap(), &request).await,
                None => ask(TcpStream::connect(&self.at).await.unwrap(), &request).await,
            }
        };
        let text =
            timeout(AGES, asked).await.unwrap_or_else(|_| panic!("{method} {path}: no answer in time"));
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{method} {path}: {text:?}"));
        let code = head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
        Answer { code, head: head.to_ascii_lowercase(), body: body.to_owned() }
    }
}

async fn ask(mut stream: impl AsyncRead + AsyncWrite + Unpin, request: &str) -> String {
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    String::from_utf8(answer).unwrap()
}

// === impl Answer ===

impl Answer {
    /// Its content, of a call that was done.
    pub(crate) fn done(&self) -> Value {
        assert_eq!(self.code, 200, "{self:?}");
        assert!(self.head.contains("content-type: application/json\r"), "{self:?}");
        serde_json::from_str(&self.body).unwrap()
    }

    /// The problem that it says there is.
    pub(crate) fn problem(&self, code: u16) -> Value {
        assert_eq!(self.code, code, "{self:?}");
        assert!(self.head.contains("content-type: application/problem+json\r"), "{self:?}");
        let problem: Value = serde_json::from_str(&self.body).unwrap();
        assert_eq!(problem["status"], code, "{self:?}");
        assert!(problem["title"].is_string() && problem["type"] == "about:blank", "{self:?}");
        problem
    }

    /// Its detail.
    pub(crate) fn detail(&self, code: u16) -> String {
        self.problem(code)["detail"].as_str().unwrap().to_owned()
    }
}
