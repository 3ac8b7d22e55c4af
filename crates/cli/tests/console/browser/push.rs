//! Pushes from the page of the port of operators: what was planned, by whom, and who was faster.

use lessor_client::Client;
use serde_json::{Value, json};

use super::operators::{faults, shows};
use super::{Browser, Look};
use crate::house::{eventually, everything};
use crate::site::{Site, has};

const WIDE: Look = Look { width: 1280, is_dark: false };

/// Puts a text into a field.
fn fill(id: &str, text: &str) -> String {
    format!("document.getElementById({}).value = {};", json!(id), json!(text))
}

/// Presses the button with that word.
fn press(word: &str) -> String {
    let of = json!(word);
    format!("[...document.querySelectorAll('button')].find((button) => button.textContent === {of}).click();")
}

#[tokio::test]
async fn what_was_planned_is_pushed_from_the_port_of_operators_and_from_no_other() {
    let Some(browser) = Browser::open().await else { return };
    let Some(site) = Site::started().await else { return };
    site.push(&site.file("root.yaml", &everything(100.0, 60))).await;
    let task = site.alone("root", &["--admin", "127.0.0.1:0"]).await;
    has(&task, 1.0).await;
    let admin = task.admin().unwrap().to_owned();
    let client = Client::builder(task.address().to_string()).id("web-1").connect().await.unwrap();
    let rate = client.rate("db").wants(80.0).open().unwrap();
    eventually("it is leased", async || {
        task.resource("db").await.is_some_and(|resource| resource["leased"] == 80.0)
    })
    .await;

    // Where everybody looks there is nothing to push with.
    browser.visit(&format!("http://{}/#/plan", task.http()), WIDE).await;
    browser.until("it is there", "return document.querySelector('textarea') !== null").await;
    let own = everything(90.0, 60);
    browser.run(&(fill("yaml", &own) + "document.querySelector('button.main').click()")).await;
    shows(&browser, ".outcome > h2", &["1 resource would change"]).await;
    assert_eq!(browser.run("return document.getElementById('why')").await, Value::Null);
    assert_eq!(task.page("/push.js").await.code, 404);

    let plan = |text: &str| fill("yaml", text) + "document.querySelector('button.main').click()";
    let mut found = Vec::new();
    let mut number = 1;
    for look in Look::ALL {
        browser.visit(&format!("http://{admin}/#/plan"), look).await;
        shows(&browser, "button.quiet", &[&format!("Take it from revision {number}")]).await;
        browser.run(&press(&format!("Take it from revision {number}"))).await;
        browser
            .until("it is taken", "return document.getElementById('yaml').value.includes('identifier_glob')")
            .await;
        number += 1;
        let capacity = 40.0 + f64::from(number);
        browser.run(&plan(&everything(capacity, 60))).await;
        shows(&browser, ".outcome section", &["Put it in force", "at every task at once, or at none"]).await;
        // A reason has to be given.
        browser.run(&press("Push it")).await;
        shows(&browser, ".outcome section .problem", &["It takes a reason"]).await;
        browser.run(&(fill("why", "a <b>cut</b>") + &press("Push it"))).await;
        shows(&browser, ".outcome .verdict", &[&format!("Revision {number} is in force.")]).await;
        has(&task, f64::from(number)).await;
        found.extend(faults(&browser, "pushed", look).await);
        // Somebody else is faster than the next.
        browser.run(&plan(&everything(capacity + 20.0, 60))).await;
        shows(&browser, ".outcome > p.hint", &[&format!("Against revision {number},")]).await;
        site.push(&site.file("root.yaml", &everything(capacity + 10.0, 60))).await;
        number += 1;
        browser.run(&(fill("why", "too late") + &press("Push it"))).await;
        let told = shows(&browser, ".outcome section", &["Somebody was faster", "both, not the same"]).await;
        let sides = [capacity, capacity + 10.0, capacity + 20.0].map(|side| side.to_string());
        assert!(sides.iter().all(|side| told.contains(side.as_str())), "{told}");
        found.extend(faults(&browser, "overtaken", look).await);
        has(&task, f64::from(number)).await;
        // What somebody has changed meanwhile is not undone unseen.
        browser.run(&plan(&everything(capacity + 20.0, 60))).await;
        let warning = format!("This was taken from revision {}, and {number} is in force", number - 2);
        shows(&browser, ".outcome section .problem", &[&warning]).await;
    }
    let history = site.done(&["history", "--json"]).await;
    let history: Value = serde_json::from_str(&history).unwrap();
    let by_page = &history[1]["revision"];
    assert_eq!((&by_page["message"], &by_page["tool"]), (&"a <b>cut</b>".into(), &"lessor console".into()));
    assert_eq!(by_page["documents"][0]["name"], "root.yaml", "the document keeps its name: {by_page}");

    // Back to the first, by the link in the history; and nobody pushes for a while.
    browser.visit(&format!("http://{admin}/#/history"), WIDE).await;
    browser
        .until(
            "there is a way back",
            "return document.querySelectorAll('[aria-label^=\"go back to revision\"]').length >= 9",
        )
        .await;
    shows(&browser, "section", &["Everybody may push who has the role."]).await;
    found.extend(faults(&browser, "history-of-operators", WIDE).await);
    browser.run("document.querySelector('[aria-label=\"go back to revision 1\"]').click()").await;
    shows(&browser, ".outcome section", &["Put it in force"]).await;
    assert_eq!(browser.run("return document.getElementById('yaml').disabled").await, true);
    for look in [Look { is_dark: true, ..WIDE }, Look { width: 360, is_dark: false }] {
        browser.visit(&format!("http://{admin}/#/plan?back=1"), look).await;
        shows(&browser, ".outcome section", &["Put it in force"]).await;
        found.extend(faults(&browser, "go-back", look).await);
    }
    browser.run(&(fill("why", "back") + &press("Go back to revision 1"))).await;
    number += 1;
    shows(&browser, ".outcome .verdict", &[&format!("Revision {number} is in force.")]).await;
    assert_eq!(site.done(&["show", &number.to_string(), "--for", "root"]).await, everything(100.0, 60));
    browser.visit(&format!("http://{admin}/#/history"), WIDE).await;
    shows(&browser, "section", &["Everybody may push"]).await;
    browser.run(&(fill("freeze-why", "the sale") + &press("Freeze pushes"))).await;
    shows(&browser, "section .problem", &["Nobody may push until", "the sale"]).await;
    site.fails(5, &["push", &site.templates(1.0), "-m", "x", "--yes"]).await;
    browser.run(&press("Let everybody push again")).await;
    shows(&browser, "section", &["Everybody may push who has the role."]).await;

    let errors = browser.log("browser").await;
    // That somebody was faster is an answer of its own.
    let is_fault = |line: &&Value| line["level"] == "SEVERE" && !line["message"].to_string().contains("409");
    found.extend(errors.iter().filter(is_fault).map(|line| line["message"].to_string()));
    assert!(found.is_empty(), "{} faults:\n{}", found.len(), found.join("\n"));
    drop((client, rate));
    browser.close().await;
    task.stop().await;
}
