//! Commands that chromedriver knows beside those of WebDriver.

use fantoccini::wd::WebDriverCompatibleCommand;
use serde_json::{Value, json};

/// A command that is posted to the session.
#[derive(Debug)]
pub(crate) struct ChromeCommand {
    path: &'static str,
    body: String,
}

// === impl ChromeCommand ===

impl ChromeCommand {
    /// One of the protocol of developer tools.
    pub(crate) fn protocol(name: &str, parameters: &Value) -> ChromeCommand {
        ChromeCommand {
            path: "goog/cdp/execute",
            body: json!({"cmd": name, "params": parameters}).to_string(),
        }
    }

    /// The lines of a log.
    pub(crate) fn log(kind: &str) -> ChromeCommand {
        ChromeCommand { path: "se/log", body: json!({"type": kind}).to_string() }
    }
}

impl WebDriverCompatibleCommand for ChromeCommand {
    fn endpoint(&self, base: &url::Url, session: Option<&str>) -> Result<url::Url, url::ParseError> {
        base.join(&format!("session/{}/{}", session.unwrap_or_default(), self.path))
    }

    fn method_and_body(&self, _: &url::Url) -> (http::Method, Option<String>) {
        (http::Method::POST, Some(self.body.clone()))
    }
}
