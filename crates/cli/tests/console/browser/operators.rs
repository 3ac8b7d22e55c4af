//! The views of operators: what is overridden, and what a configuration would change before it is pushed.

use lessor_client::Client;
use serde_json::{Value, json};

use super::looks::AXE;
use super::{Browser, Look, axe};
use crate::house::{House, eventually, run};

const TEMPLATES: &str = "resources:
- identifier_glob: db
  capacity: 100
  algorithm: {kind: FAIR_SHARE, lease_length: 60, refresh_interval: 2, learning_mode_duration: 0}
- identifier_glob: mail
  capacity: 40
  algorithm: {kind: FAIR_SHARE, lease_length: 60, refresh_interval: 2, learning_mode_duration: 0}
";

/// Waits until that is so, in the page.
pub(super) async fn shows(browser: &Browser, selector: &str, parts: &[&str]) -> String {
    let script = format!(
        "return [...document.querySelectorAll({})].map((element) => element.textContent).join('\\n')",
        json!(selector)
    );
    let mut seen = String::new();
    eventually(&format!("{parts:?} in {selector}"), async || {
        seen = browser.run(&script).await.as_str().unwrap_or_default().to_owned();
        parts.iter().all(|part| seen.contains(part))
    })
    .await;
    seen
}

/// Keeps pictures of what is shown, and says what sticks out or keeps people out.
pub(super) async fn faults(browser: &Browser, name: &str, look: Look) -> Vec<String> {
    browser.keep_picture(name, look).await;
    let mut faults = Vec::new();
    let widths = browser.run("return [document.documentElement.scrollWidth, innerWidth]").await;
    // A narrow page that is too wide is shown smaller, and so all of it is seen.
    if widths[0].as_u64() > widths[1].as_u64() || widths[1].as_u64() > Some(u64::from(look.width)) {
        faults.push(format!("{name} {look:?}: it is {} wide in {}", widths[0], widths[1]));
    }
    // Without the script the views are looked at in the test of all views, which says so.
    if let Some(axe) = axe() {
        browser.run(&axe).await;
        let told = browser.run_async(AXE).await;
        let told = told.as_array().cloned().unwrap_or_default();
        faults.extend(told.iter().map(|violation| format!("{name} {look:?}: {violation}")));
    }
    faults
}

#[tokio::test]
async fn overrides_are_shown_with_their_ends_and_plans_with_who_loses_what() {
    let Some(browser) = Browser::open().await else { return };
    let house = House::open_with(TEMPLATES, &["--admin", "127.0.0.1:0"]).await;
    let admin = house.admin().unwrap().to_owned();
    let mut clients = Vec::new();
    for (number, wants) in [80.0, 35.0, 20.0, 5.0].into_iter().enumerate() {
        let id = format!("web-{number}");
        let client = Client::builder(house.address().to_string()).id(id).connect().await.unwrap();
        let rates = [client.rate("db").wants(wants).open(), client.rate("mail").wants(3.0).open()];
        clients.push((client, rates.map(Result::unwrap)));
    }
    let told = async |path: &str| house.page(path).await.json();
    eventually("all are settled", async || {
        let rows = told("/v1/holders?resource=db").await["rows"].clone();
        rows.as_array()
            .is_some_and(|rows| rows.len() == 4 && rows.iter().all(|row| row["state"] == "settled"))
    })
    .await;
    let mut found = Vec::new();
    for look in Look::ALL {
        browser.visit(&format!("http://{}/#/plan", house.http()), look).await;
        browser.until("it is there", "return document.querySelector('textarea') !== null").await;
        let type_it = |text: &str| {
            format!(
                "document.getElementById('yaml').value = {}; document.querySelector('button.main').click()",
                json!(text)
            )
        };
        browser.run(&type_it("resources: nothing")).await;
        shows(&browser, ".outcome .problem", &["resources: "]).await;
        browser.run(&type_it(&TEMPLATES.replace("100", "40").replace("mail", "letters"))).await;
        let heading = shows(&browser, ".outcome > h2", &["2 resources would change, and "]).await;
        assert!(heading.ends_with("; 4 clients would be refused."), "{heading}");
        let plan = shows(
            &browser,
            ".planned",
            &["web-0", "40/s of 40/s", "100/s of 100/s", "no template", "would be refused"],
        )
        .await;
        assert!(!["null", "undefined", "NaN"].iter().any(|word| plan.contains(word)), "{plan}");
        found.extend(faults(&browser, "planned", look).await);
    }
    // The table says what the server says.
    let body = json!({"documents": [{"for": "*", "name": "a", "text": TEMPLATES.replace("100", "40")}]});
    let plan = browser.run_async(&format!("const done = arguments[0]; fetch('/v1/plan', {{method: 'POST', headers: {{'content-type': 'application/json'}}, body: {}}}).then((said) => said.json()).then(done)", json!(body.to_string()))).await;
    let mut after: Vec<&Value> = plan["resources"][0]["losers"]["worst"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| &row["share"][1])
        .collect();
    after.truncate(1);
    let shown = browser.run("return document.querySelector('.planned tbody tr').cells[4].textContent").await;
    assert_eq!(
        shown.as_str().and_then(|text| text.parse::<f64>().ok()).map(f64::round),
        after[0].as_f64().map(f64::round),
        "{plan}"
    );

    browser.visit(&format!("http://{}/#/overrides", house.http()), Look::ALL[0]).await;
    shows(&browser, "h1", &["Nothing is overridden."]).await;
    for command in [
        &["cap", "db", "60", "--for", "1h", "--reason", "<b>half</b> of it is broken"][..],
        &["freeze", "mail", "--for", "2m", "--reason", "the queue is full"],
    ] {
        let outcome = run(&[command, &["--admin", &admin]].concat()).await;
        assert_eq!(outcome.code, Some(0), "{}", outcome.err);
    }
    shows(&browser, "h1", &["2 overrides in force."]).await;
    for look in Look::ALL {
        browser.visit(&format!("http://{}/#/overrides", house.http()), look).await;
        let seen = shows(
            &browser,
            ".card",
            &["db has no more than 60", "capped", "mail is frozen", "(not verified)"],
        )
        .await;
        assert!(seen.contains("<b>half</b> of it is broken"), "as text: {seen}");
        found.extend(faults(&browser, "overridden", look).await);
    }
    let rows = told("/v1/overrides?where=kind=freeze").await;
    assert_eq!((&rows["matching"], &rows["rows"][0]["reason"]), (&json!(1), &json!("the queue is full")));
    let id = told("/v1/overrides").await["rows"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(run(&["lift", &id, "--admin", &admin]).await.code, Some(0));
    shows(&browser, "h1", &["1 override in force."]).await;
    let errors = browser.log("browser").await;
    // The one of which it is tried that it is refused.
    let severe = errors
        .iter()
        .filter(|line| line["level"] == "SEVERE" && !line["message"].to_string().contains("/v1/plan"));
    found.extend(severe.map(|line| line["message"].to_string()));
    assert!(found.is_empty(), "{} faults:\n{}", found.len(), found.join("\n"));
    browser.close().await;
    for (client, rates) in clients {
        drop(rates);
        client.close().await;
    }
    house.stop().await;
}
