//! A real Chromium without a window, driven by chromedriver, and the tree that it looks at.

pub(crate) mod commands;
mod heap;
mod looks;
mod names;
mod operators;
mod pages;
mod push;
mod token;
mod town;

use std::io::Write as _;
use std::path::PathBuf;
use std::process::Stdio;

use fantoccini::{Client, ClientBuilder};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Map, Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use self::commands::ChromeCommand;
use crate::house::AGES;

/// A browser with one page.
pub(crate) struct Browser {
    client: Client,
    driver: Child,
}

/// A look of a page: its width, and whether it is dark.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look {
    pub(crate) width: u32,
    pub(crate) is_dark: bool,
}

impl Look {
    pub(crate) const ALL: [Look; 4] = [
        Look { width: 1280, is_dark: false },
        Look { width: 1280, is_dark: true },
        Look { width: 360, is_dark: false },
        Look { width: 360, is_dark: true },
    ];
}

/// Something that the tests need is not there: that is said.
///
/// # Panics
/// When it has to be there.
pub(crate) fn skip(what: &str) {
    let must = std::env::var_os("LESSOR_REQUIRE_BROWSER").is_some_and(|value| value == "1");
    assert!(!must, "LESSOR_REQUIRE_BROWSER=1, and {what}");
    // Past the harness, which would show it only if the test failed.
    let _ = writeln!(std::io::stderr(), "SKIPPED: {what}");
}

/// The script of axe-core, where tools/test has put it.
pub(crate) fn axe() -> Option<String> {
    let target = PathBuf::from(env!("CARGO_BIN_EXE_lessor"));
    let target = target.ancestors().find(|folder| folder.join("axe").is_dir())?;
    std::fs::read_to_string(target.join("axe/node_modules/axe-core/axe.min.js")).ok()
}

// === impl Browser ===

impl Browser {
    /// A browser; none where it is not installed, which is said.
    pub(crate) async fn open() -> Option<Browser> {
        let driver = Command::new("chromedriver")
            .arg("--port=0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn();
        let Ok(mut driver) = driver else {
            skip("chromedriver is not installed (Debian: chromium-driver)");
            return None;
        };
        let mut lines = BufReader::new(driver.stdout.take().expect("it is piped")).lines();
        let port = async {
            while let Some(line) = lines.next_line().await.expect("it is read") {
                if let Some((_, port)) = line.split_once("started successfully on port ") {
                    return port.trim_end_matches('.').parse::<u16>().expect("a port");
                }
            }
            panic!("chromedriver has ended");
        };
        let port = timeout(AGES, port).await.expect("it starts in time");
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        let mut builder = ClientBuilder::new(hyper_util::client::legacy::connect::HttpConnector::new());
        builder.capabilities(capabilities());
        let driver_address = format!("http://127.0.0.1:{port}");
        let client = timeout(AGES, builder.connect(&driver_address)).await.expect("a browser in time");
        let client = client.unwrap_or_else(|error| panic!("no browser: {error}"));
        Some(Browser { client, driver })
    }

    /// Opens an address, as wide and as dark as that.
    pub(crate) async fn visit(&self, address: &str, look: Look) {
        let scheme = if look.is_dark { "dark" } else { "light" };
        let narrow = look.width < 700;
        let size = json!({"width": look.width, "height": 860, "deviceScaleFactor": 1, "mobile": narrow});
        self.chrome("Emulation.setDeviceMetricsOverride", size).await;
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.chrome("Emulation.setEmulatedMedia", features).await;
        // A change behind the # alone would not load it anew.
        self.client.goto("about:blank").await.expect("nothing to show");
        self.client.goto(address).await.unwrap_or_else(|error| panic!("{address}: {error}"));
    }

    /// The outcome of a function body in the page.
    pub(crate) async fn run(&self, script: &str) -> Value {
        self.client.execute(script, Vec::new()).await.unwrap_or_else(|error| panic!("{script}: {error}"))
    }

    /// The same of one that calls its last argument when it is done.
    pub(crate) async fn run_async(&self, script: &str) -> Value {
        self.client
            .execute_async(script, Vec::new())
            .await
            .unwrap_or_else(|error| panic!("{script}: {error}"))
    }

    /// Waits until a function body says true. The page itself asks it again and again, as a question from here takes all three
    /// processes some milliseconds.
    pub(crate) async fn until(&self, what: &str, script: &str) {
        let waits = "const done = arguments[arguments.length - 1];
            const look = () => {
                try {
                    if (holds() === true) done(true); else setTimeout(look, 20);
                } catch (fault) {
                    done(String(fault));
                }
            };
            look();";
        let said = self.run_async(&format!("// {what}\nconst holds = () => {{ {script} }};\n{waits}")).await;
        assert_eq!(said, Value::Bool(true), "{what}");
    }

    /// A command of the protocol of Chromium.
    pub(crate) async fn chrome(&self, name: &str, parameters: Value) -> Value {
        let command = ChromeCommand::protocol(name, &parameters);
        self.client.issue_cmd(command).await.unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// The lines of a log since it was read last: `browser` or `performance`.
    pub(crate) async fn log(&self, kind: &str) -> Vec<Value> {
        let log = self.client.issue_cmd(ChromeCommand::log(kind)).await;
        log.unwrap_or_else(|error| panic!("{kind}: {error}")).as_array().cloned().unwrap_or_default()
    }

    /// Keeps a picture of the whole page beside what is built.
    pub(crate) async fn keep_picture(&self, name: &str, look: Look) {
        let shown = self.chrome("Page.captureScreenshot", json!({"captureBeyondViewport": true})).await;
        let bytes = base64(shown["data"].as_str().expect("a picture"));
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("console");
        std::fs::create_dir_all(&folder).expect("a folder");
        let scheme = if look.is_dark { "dark" } else { "light" };
        std::fs::write(folder.join(format!("{name}-{}-{scheme}.png", look.width)), bytes)
            .expect("it is written");
    }

    pub(crate) async fn close(self) {
        let _ = timeout(AGES, self.client.clone().close()).await;
    }
}

/// A test that fails leaves no browser behind: chromedriver, which is killed, would.
impl Drop for Browser {
    fn drop(&mut self) {
        let Some(driver) = self.driver.id() else { return };
        for child in children(driver) {
            // It may have ended meanwhile.
            let _ = kill_process(child, Signal::KILL);
        }
    }
}

/// The processes that one has started.
fn children(of: u32) -> Vec<Pid> {
    let is_child = |status: &str| status.lines().any(|line| line == format!("PPid:\t{of}"));
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = processes.filter_map(|process| {
        let status = std::fs::read_to_string(process.path().join("status")).ok()?;
        let number: i32 = process.file_name().to_str()?.parse().ok()?;
        is_child(&status).then(|| Pid::from_raw(number)).flatten()
    });
    numbers.collect()
}

fn capabilities() -> Map<String, Value> {
    let arguments = [
        "--headless=new",
        // Root has no sandbox, nor have most containers; it sees nothing but the servers of the tests.
        "--no-sandbox",
        "--disable-gpu",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-dev-shm-usage",
        "--no-first-run",
        "--hide-scrollbars",
    ];
    let capabilities = json!({
        "goog:chromeOptions": {"args": arguments},
        "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
        "timeouts": {"script": AGES.as_millis() as u64, "pageLoad": AGES.as_millis() as u64},
    });
    capabilities.as_object().cloned().expect("an object")
}

/// The bytes of a text in base 64.
fn base64(text: &str) -> Vec<u8> {
    let value = |letter: u8| match letter {
        b'A'..=b'Z' => letter - b'A',
        b'a'..=b'z' => letter - b'a' + 26,
        b'0'..=b'9' => letter - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let letters: Vec<u8> = text.bytes().filter(|letter| *letter != b'=').collect();
    let mut bytes = Vec::with_capacity(letters.len() * 3 / 4);
    for group in letters.chunks(4) {
        let all = group.iter().fold(0_u32, |all, letter| all << 6 | u32::from(value(*letter)));
        let all = all << (6 * (4 - group.len()));
        bytes.extend_from_slice(&all.to_be_bytes()[1..group.len()]);
    }
    bytes
}
