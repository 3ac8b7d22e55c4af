//! The page before whoever looks has shown who he is.

use serde_json::json;

use super::operators::{faults, shows};
use super::{Browser, Look};
use crate::gate::Gate;
use crate::rights::TEAMS;

#[tokio::test]
async fn whoever_shows_a_token_that_does_not_do_is_asked_again() {
    let Some(browser) = Browser::open().await else { return };
    let gate = Gate::open(TEAMS).await;
    let role = |identity: &'static str| ["--identity", identity, "--role", "see"];
    let (oncall, team) = (gate.token(&role("oncall")).await, gate.token(&role("team")).await);
    let mut found = Vec::new();
    for look in [Look { width: 1280, is_dark: false }, Look { width: 360, is_dark: true }] {
        browser.visit(&format!("http://{}/#/findings", gate.house.http()), look).await;
        browser.run("sessionStorage.clear()").await;
        browser.visit(&format!("http://{}/#/findings", gate.house.http()), look).await;
        // The same twice: it is refused with the same words.
        for token in ["nonsense", "nonsense", &team, &oncall] {
            browser.until("it is asked for", "return document.getElementById('token')?.value === ''").await;
            shows(&browser, "h1", &["Who are you?"]).await;
            if token == team {
                found.extend(faults(&browser, "token", look).await);
            }
            let of = json!(token);
            browser
                .run(&format!(
                    "document.getElementById('token').value = {of}; document.querySelector('main button').click()"
                ))
                .await;
        }
        browser.until("it is let in", "return document.body.dataset.state === 'live'").await;
        let is_shown =
            "return !['Who are you?', 'Looking …'].includes(document.querySelector('h1').textContent)";
        browser.until("it says what is found", is_shown).await;
    }
    assert!(found.is_empty(), "{} faults:\n{}", found.len(), found.join("\n"));
    browser.close().await;
    gate.house.stop().await;
}
