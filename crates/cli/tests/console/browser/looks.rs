//! The look of every view: nothing sticks out, nothing fails, everything has a name, and nothing is asked of anybody else.

use serde_json::Value;

use super::town::Town;
use super::{Browser, Look, axe, skip};
use crate::house::eventually;

const VIEWS: [(&str, &str, &str); 8] = [
    (
        "tree",
        "#/tree",
        "return document.querySelectorAll('.box').length >= 3 && document.querySelectorAll('tbody tr th a').length >= 2",
    ),
    (
        "resource",
        "#/r/db",
        "return document.querySelectorAll('.level .wet').length >= 1 && document.querySelectorAll('tbody tr').length >= 2",
    ),
    ("domains", "#/domains", "return document.querySelectorAll('.card').length >= 1"),
    ("findings", "#/findings", "return document.querySelector('h1').textContent !== 'Looking …'"),
    (
        "tiers",
        "#/tiers?p=5%2F1s%2C+50%2F5s%3A5s%3A15s&hits=dw.a.a.a.a.a.a.a.a&now=3",
        "return document.querySelectorAll('tbody tr').length >= 8 && document.querySelectorAll('.phase').length >= 2",
    ),
    ("history", "#/history", "return document.querySelectorAll('tbody tr').length >= 1"),
    (
        "overrides",
        "#/overrides",
        "return document.querySelector('h1').textContent === 'Nothing is overridden.'",
    ),
    ("plan", "#/plan", "return document.querySelector('textarea') !== null"),
];

pub(super) const AXE: &str = "const done = arguments[arguments.length - 1];
    axe.run(document, {resultTypes: ['violations']}).then((found) => done(found.violations.map((violation) =>
        `${violation.id}: ${violation.help}: ${violation.nodes.map((node) => node.html.slice(0, 160)).slice(0, 3).join(' | ')}`)), (fault) => done([String(fault)]));";

#[tokio::test]
async fn every_view_is_in_order_wide_and_narrow_light_and_dark() {
    let Some(browser) = Browser::open().await else { return };
    let axe = axe();
    if axe.is_none() {
        skip(
            "axe-core is not there: no view is looked through for what keeps people out (npm: axe-core, see tools/test)",
        );
    }
    let town = Town::open().await;
    let mut faults = Vec::new();
    for look in Look::ALL {
        for (name, hash, is_there) in VIEWS {
            browser.visit(&town.view(hash), look).await;
            town.press();
            browser.until(name, "return document.body.dataset.state === 'live'").await;
            eventually(name, async || {
                town.press();
                browser.run(is_there).await == Value::Bool(true)
            })
            .await;
            browser.keep_picture(name, look).await;
            let widths = browser.run("return [document.documentElement.scrollWidth, innerWidth]").await;
            // A narrow page that is too wide is shown smaller, and so all of it is seen.
            if widths[0].as_u64() > widths[1].as_u64() || widths[1].as_u64() > Some(u64::from(look.width)) {
                faults.push(format!("{name} {look:?}: it is {} wide in {}", widths[0], widths[1]));
            }
            let landmarks = browser.run("return ['main', 'header', 'nav', 'h1'].map((name) => document.querySelectorAll(name).length)").await;
            if landmarks != serde_json::json!([1, 1, 1, 1]) {
                faults.push(format!("{name} {look:?}: main, header, nav, h1: {landmarks}"));
            }
            if let Some(axe) = &axe {
                browser.run(axe).await;
                let violations = browser.run_async(AXE).await;
                let told = violations.as_array().cloned().unwrap_or_default();
                faults.extend(told.iter().map(|violation| format!("{name} {look:?}: {violation}")));
            }
        }
    }
    let errors = browser.log("browser").await;
    let errors = errors.iter().filter(|line| line["level"] == "SEVERE");
    faults.extend(errors.map(|line| line["message"].to_string()));
    faults.extend(foreign(&browser, &town.view("")).await);
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
    browser.close().await;
    town.close().await;
}

/// Requests to anybody but the server itself.
async fn foreign(browser: &Browser, own: &str) -> Vec<String> {
    let lines = browser.log("performance").await;
    let messages =
        lines.iter().filter_map(|line| serde_json::from_str::<Value>(line["message"].as_str()?).ok());
    let sent = messages.filter(|message| message["message"]["method"] == "Network.requestWillBeSent");
    let addresses: Vec<String> = sent
        .filter_map(|message| message["message"]["params"]["request"]["url"].as_str().map(str::to_owned))
        .collect();
    assert!(addresses.len() > 50, "{addresses:?}");
    let is_foreign = |address: &&String| {
        !address.starts_with(own) && !["data:", "about:"].iter().any(|scheme| address.starts_with(scheme))
    };
    addresses.iter().filter(is_foreign).map(|address| format!("asked elsewhere: {address}")).collect()
}
