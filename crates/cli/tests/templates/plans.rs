//! Saved plans: a push is held against one, and made only if it is what was planned.

use lessor_client::{Client, Rate};

use crate::house::{House, eventually, everything, run};
use crate::site::{Site, has};

/// Somebody who has so much of `db`.
async fn hold(house: &House, id: &str, wants: f64, leased: f64) -> (Client, Rate) {
    let client = Client::builder(house.address().to_string()).id(id).connect().await.unwrap();
    let rate = client.rate("db").wants(wants).open().unwrap();
    eventually("it is leased", async || {
        house.resource("db").await.is_some_and(|resource| resource["leased"].as_f64() == Some(leased))
    })
    .await;
    (client, rate)
}

/// Saves a plan of a file.
async fn plan(site: &Site, house: &House, file: &str) -> String {
    let (path, server) = (site.path("plan.json").display().to_string(), house.address().to_string());
    let outcome = run(&["plan", file, "--out", &path, "--server", &server]).await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    path
}

#[tokio::test]
async fn a_push_is_made_if_it_is_what_was_planned_and_not_if_it_is_something_else() {
    let Some(site) = Site::started().await else { return };
    site.push(&site.templates(100.0)).await;
    let root = site.alone("root", &[]).await;
    has(&root, 1.0).await;
    let first = hold(&root, "a", 80.0, 80.0).await;
    let cut = site.templates(60.0);
    let saved = plan(&site, &root, &cut).await;
    let push = |file: &str| ["push", file, "-m", "x", "--yes", "--plan", &saved].map(str::to_owned);
    let refused = async |code, file: &str| {
        let line = push(file);
        site.fails(code, &line.each_ref().map(String::as_str)).await
    };

    let told = refused(5, &site.templates(70.0)).await;
    assert!(told.contains("the plan is of other documents"), "{told}");
    // A quarter is lost by the plan, and two fifths by now.
    let second = hold(&root, "b", 20.0, 100.0).await;
    let told = refused(5, &cut).await;
    assert!(
        told.contains("40.0% of all shares would be lost by now, where the plan has said 25.0%"),
        "{told}"
    );
    let text = std::fs::read_to_string(&saved).unwrap();
    let mut old: serde_json::Value = serde_json::from_str(&text).unwrap();
    old["plan"]["at"] = "2020-01-01T00:00:00Z".into();
    std::fs::write(&saved, old.to_string()).unwrap();
    let told = refused(5, &cut).await;
    assert!(told.contains("minutes old; wanted one of at most 15"), "{told}");

    plan(&site, &root, &cut).await;
    site.push(&site.file("shorter.yaml", &everything(100.0, 30))).await;
    has(&root, 2.0).await;
    let told = refused(3, &cut).await;
    assert!(told.contains("the plan is against revision 1, and 2 is in force by now"), "{told}");

    plan(&site, &root, &cut).await;
    let line = push(&cut);
    let out = site.done(&line.each_ref().map(String::as_str)).await;
    assert!(out.contains("revision 3 is in force"), "{out}");
    has(&root, 3.0).await;
    drop((first, second));
    root.stop().await;
}
