//! The memory of a page that is open for long: as many messages as come in an hour leave nothing behind.

use serde_json::json;

use super::town::Town;
use super::{Browser, Look};

/// Puts a stream in the place of that of the server: the same first message, and then an hour of changes as fast as they are read.
const HOUR: &str = "
const asked = window.fetch;
window.fetch = async (url, options) => {
  if (!String(url).includes('/v1/events')) return asked(url, options);
  const real = await asked(url, options);
  const reader = real.body.pipeThrough(new TextDecoderStream()).getReader();
  const { value } = await reader.read();
  const first = JSON.parse(/data: (.*)/.exec(value)[1]);
  reader.cancel();
  const encoder = new TextEncoder();
  const send = (said) => encoder.encode(`event: change\\ndata: ${JSON.stringify(said)}\\n\\n`);
  window.sent = 0;
  return new Response(new ReadableStream({
    start(controller) { controller.enqueue(send(first)); },
    async pull(controller) {
      await new Promise((done) => setTimeout(done, window.sent % 20 ? 0 : 1));
      window.sent += 1;
      const resources = first.resources.map((row, index) => ({ ...row, outstanding: row.outstanding + ((window.sent + index) % 7), wants: row.wants + (window.sent % 11) }));
      // Some come and go.
      const visitor = { ...first.resources[0], resource: `visitor ${window.sent % 50}` };
      controller.enqueue(send({ ...first, all: false, resources: [...resources, visitor], gone: [`visitor ${(window.sent + 25) % 50}`], findings: window.sent % 9 ? undefined : [{ severity: 'note', kind: 'ghost', about: 'db', what: `${window.sent} left`, todo: 'Wait.' }] }));
      if (window.sent > 8000) controller.close();
    },
  }), { headers: { 'content-type': 'text/event-stream' } });
};";

/// Bytes that an hour may leave.
const MOST: f64 = 1_500_000.0;

/// A script after which nothing is laid out and painted, which would take most of the time and none of the heap. All else of the
/// page goes on, in the document as well.
const UNDRAWN: &str = "document.documentElement.style.display = 'none'";

async fn heap(browser: &Browser) -> f64 {
    browser.chrome("HeapProfiler.collectGarbage", json!({})).await;
    browser.chrome("HeapProfiler.collectGarbage", json!({})).await;
    let usage = browser.chrome("Runtime.getHeapUsage", json!({})).await;
    usage["usedSize"].as_f64().expect("a number")
}

#[tokio::test]
async fn an_hour_of_messages_leaves_nothing_behind() {
    let Some(browser) = Browser::open().await else { return };
    let town = Town::open().await;
    browser.chrome("Page.addScriptToEvaluateOnNewDocument", json!({"source": HOUR})).await;
    let look = Look { width: 1280, is_dark: false };
    for hash in ["#/tree", "#/r/db", "#/findings"] {
        browser.visit(&town.view(hash), look).await;
        browser.run(UNDRAWN).await;
        browser.until("a while has passed", "return window.sent >= 400").await;
        let before = heap(&browser).await;
        let start = browser.run("return window.sent").await.as_u64().expect("a number");
        // Ten minutes at a time, as each wait has its end.
        for minutes in (10..=60).step_by(10) {
            let sent = start + 60 * minutes;
            browser.until("ten minutes have passed", &format!("return window.sent >= {sent}")).await;
        }
        let grown = heap(&browser).await - before;
        assert!(grown < MOST, "{hash}: {grown} bytes after an hour, from {before}");
    }
    browser.close().await;
    town.close().await;
}
