//! The pages at work: their tables say what `/v1` says, they work by keyboard, and they bear it that the server goes away.

use serde_json::{Value, json};

use super::town::Town;
use super::{Browser, Look};
use crate::house::eventually;

const WIDE: Look = Look { width: 1280, is_dark: false };

/// The values of a column of the table with that caption, by the first cell of each row.
fn column(caption: &str, index: usize) -> String {
    format!(
        "return Object.fromEntries([...document.querySelector('[aria-label=\"{caption}\"] tbody').rows]
            .map((row) => [row.cells[0].textContent, Number(row.cells[{index}].dataset.value)]))"
    )
}

/// Whether that is shown of a row; a number is one however it is written.
fn is_shown(shown: &Value, name: &Value, value: &Value) -> bool {
    shown[name.as_str().unwrap_or_default()].as_f64() == value.as_f64()
}

#[tokio::test]
async fn tables_say_what_the_server_says() {
    let Some(browser) = Browser::open().await else { return };
    let town = Town::open().await;
    browser.visit(&town.view("#/r/db"), WIDE).await;
    // Both are of some moment: they agree as soon as nothing changes between.
    eventually("holders have what the server says", async || {
        let shown = browser.run(&column("Holders", 1)).await;
        let told = town.root.page("/v1/holders?resource=db").await.json();
        let rows = told["rows"].as_array().cloned().unwrap_or_default();
        rows.len() == 2 && rows.iter().all(|row| is_shown(&shown, &row["client"], &row["has"]))
    })
    .await;
    browser.visit(&town.view("#/tree"), WIDE).await;
    eventually("resources have what the server says", async || {
        let shown = browser.run(&column("Resources", 5)).await;
        let told = town.root.page("/v1/resources").await.json();
        let rows = told["rows"].as_array().cloned().unwrap_or_default();
        rows.len() >= 2 && rows.iter().all(|row| is_shown(&shown, &row["resource"], &row["clients"]))
    })
    .await;
    browser.visit(&format!("http://{}/#/r/db", town.leaves[0].http()), WIDE).await;
    eventually("a leaf shows its ten clients", async || {
        browser.run("return document.querySelectorAll('[aria-label=Holders] tbody tr').length").await == 10
    })
    .await;
    browser.run("document.querySelector('[aria-label=\"Why paris-9 gets what it gets\"]').click()").await;
    browser
        .until(
            "it says why",
            "return document.querySelector('.why .bound')?.textContent.includes('the level') === true",
        )
        .await;
    // Where something is absent, nothing is said of it.
    let why = browser.run("return document.querySelector('.why').textContent").await;
    let why = why.as_str().expect("text");
    assert!(!["null", "undefined", "false", "NaN"].iter().any(|word| why.contains(word)), "{why}");
    browser.close().await;
    town.close().await;
}

#[tokio::test]
async fn the_simulator_is_asked_by_keyboard_and_its_address_holds_what_was_asked() {
    let Some(browser) = Browser::open().await else { return };
    let town = Town::open().await;
    browser.visit(&town.view("#/tiers?p=5%2F1s"), WIDE).await;
    browser.until("it is there", "return document.querySelector('.press') !== null").await;
    // However long it takes to press, it is one moment there.
    browser.run("[...document.querySelectorAll('.stage button')].find((button) => button.textContent === 'Stop time').click(); document.querySelector('.press').focus()").await;
    for kind in ["keyDown", "keyUp"].into_iter().cycle().take(14) {
        let key =
            json!({"type": kind, "key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13, "text": "\r"});
        browser.chrome("Input.dispatchKeyEvent", key).await;
    }
    let answers = "return [...document.querySelectorAll('[aria-label=Answers] tbody tr')].map((row) => row.cells[1]?.textContent ?? '')";
    eventually("five of seven are granted", async || {
        let answers = browser.run(answers).await;
        let answers: Vec<&str> = answers.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        answers.len() == 7 && answers.iter().filter(|answer| **answer == "granted").count() == 5
    })
    .await;
    // It is written a moment after the last of several.
    let held = "return new URLSearchParams(location.hash.split('?')[1]).get('hits')?.split('.').length === 7";
    browser.until("the address holds them", held).await;
    let address = browser.run("return location.href").await;
    browser.visit(address.as_str().expect("an address"), WIDE).await;
    eventually("whoever is given the address sees the same", async || {
        browser.run(answers).await.as_array().map(Vec::len) == Some(7)
    })
    .await;
    browser.close().await;
    town.close().await;
}

#[tokio::test]
async fn a_page_says_that_the_server_is_away_and_goes_on_when_it_is_back() {
    let Some(browser) = Browser::open().await else { return };
    let town = Town::open().await;
    let Town { root, .. } = &town;
    let address = root.address();
    browser.visit(&format!("http://{address}/#/tree"), WIDE).await;
    browser.until("it is live", "return document.body.dataset.state === 'live'").await;
    let Town { mut root, leaves, clients } = town;
    root.crash().await;
    browser.until("it says so", "return document.body.dataset.state === 'gone'").await;
    browser
        .until(
            "it is said",
            "return document.getElementById('spoken').textContent.startsWith('The server is away')",
        )
        .await;
    let root = root.start_again().await;
    browser.until("it goes on", "return document.body.dataset.state === 'live'").await;
    browser
        .until(
            "that is said",
            "return document.getElementById('spoken').textContent === 'The server answers again.'",
        )
        .await;
    browser.close().await;
    Town { root, leaves, clients }.close().await;
}

/// Counts what the page asks for from here on.
const COUNT: &str = "window.asked = 0; const ask = window.fetch;
    window.fetch = (...all) => { window.asked += 1; return ask(...all); };";

#[tokio::test]
async fn a_page_that_is_paused_asks_for_nothing() {
    let Some(browser) = Browser::open().await else { return };
    let town = Town::open().await;
    browser.visit(&town.view("#/r/db"), WIDE).await;
    browser.until("it is live", "return document.body.dataset.state === 'live'").await;
    browser.run(COUNT).await;
    browser.until("it asks", "return window.asked > 2").await;
    browser.run("document.getElementById('pause').click()").await;
    browser.until("it is paused", "return document.body.dataset.state === 'paused'").await;
    let more = "const done = arguments[0]; const before = window.asked; setTimeout(() => done(window.asked - before), 4000);";
    // What was under way comes to its end, and may have asked for more.
    eventually("it asks for nothing", async || browser.run_async(more).await == 0).await;
    assert_eq!(browser.run_async(more).await, 0);
    browser.run("document.getElementById('pause').click()").await;
    browser.until("it is live again", "return document.body.dataset.state === 'live'").await;
    browser.close().await;
    town.close().await;
}
