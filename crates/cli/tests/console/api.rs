//! `/v1`: what lists say is what `/status` says, and what makes no sense is named.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::house::holder::{Holder, Nature};
use crate::house::page::{Page, get_as};
use crate::house::{AGES, House, eventually};

pub(crate) const FAIR: &str = "resources:
- identifier_glob: \"*\"
  capacity: 100
  algorithm: {kind: FAIR_SHARE, lease_length: 60, refresh_interval: 5, learning_mode_duration: 0}
";

/// A crowd of clients of a resource, of which each wants a bit more than the one before.
pub(crate) async fn crowd(house: &House, resource: &str, count: usize) {
    let mut capacity = house.capacity().await;
    for number in 0..count {
        let wants = 1.0 + number as f64;
        let mut holder = Holder::new(format!("web-{number:03}"), Nature::Knows, resource, wants);
        holder.report(&mut capacity).await.expect("it is served");
    }
}

async fn json_of(house: &House, path: &str) -> Value {
    let answer = house.page(path).await.json();
    assert_eq!(answer["schema"], 1, "{path}: {answer}");
    answer
}

/// The answer to something that makes no sense.
async fn fault(house: &House, path: &str) -> (u16, Value) {
    let page: Page = house.page(path).await;
    (
        page.code,
        serde_json::from_str(&page.body).unwrap_or_else(|error| panic!("{path}: {error} in {}", page.body)),
    )
}

/// The head of a page, in lower case but for values.
async fn head(house: &House, path: &str) -> String {
    let asking = async {
        let mut stream = TcpStream::connect(house.http()).await.expect("it takes connections");
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: lessor\r\nOrigin: http://evil.example\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.expect("it is read");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("text");
        answer.split("\r\n\r\n").next().unwrap_or_default().to_owned()
    };
    timeout(AGES, asking).await.expect("an answer in time")
}

#[tokio::test]
async fn lists_say_what_the_status_says() {
    let house = House::open(FAIR).await;
    crowd(&house, "db", 7).await;
    crowd(&house, "api", 2).await;
    let listed = async || {
        let rows = json_of(&house, "/v1/resources?sort=resource").await;
        rows["matching"] == 2 && rows["rows"][1]["clients"] == 7
    };
    eventually("both resources are listed", listed).await;
    let rows = json_of(&house, "/v1/resources?sort=resource").await;
    let status = house.page("/status").await.json();
    for (row, of) in rows["rows"]
        .as_array()
        .expect("rows")
        .iter()
        .zip(status["status"]["resources"].as_array().expect("rows"))
    {
        for field in
            ["resource", "template", "capacity", "leased", "wants", "clients", "outstanding", "in_debt"]
        {
            assert_eq!(row[field], of[field], "{field} of {row}");
        }
    }
    let holders = json_of(&house, "/v1/holders?resource=db&sort=client").await;
    assert_eq!((&holders["holders_in_all"], &holders["matching"]), (&json!(7), &json!(7)));
    let of: BTreeSet<&str> = status["status"]["resources"][1]["holders"]
        .as_array()
        .expect("holders")
        .iter()
        .filter_map(|holder| holder["client"].as_str())
        .collect();
    let told: BTreeSet<&str> =
        holders["rows"].as_array().expect("rows").iter().filter_map(|row| row["client"].as_str()).collect();
    assert_eq!(told, of);
    let node = json_of(&house, "/v1/node").await;
    assert_eq!(
        (&node["node"], &node["leads"], &node["resources_in_all"]),
        (&json!("root"), &json!(true), &json!(2)),
        "{node}"
    );
    let tasks = json_of(&house, "/v1/tasks").await;
    assert_eq!((&tasks["are_all"], &tasks["rows"][0]["leads"]), (&json!(false), &json!(true)), "{tasks}");
    assert_eq!(json_of(&house, "/v1/history").await["prefix"], Value::Null);
    house.stop().await;
}

#[tokio::test]
async fn a_list_is_filtered_and_sorted_by_any_field_and_goes_on_page_by_page() {
    let house = House::open(FAIR).await;
    crowd(&house, "db", 30).await;
    let few = json_of(&house, "/v1/holders?resource=db&where=wants%3E25,client%5E=web-02&sort=-wants").await;
    let names: Vec<&str> =
        few["rows"].as_array().expect("rows").iter().filter_map(|row| row["client"].as_str()).collect();
    assert_eq!(names, ["web-029", "web-028", "web-027", "web-026", "web-025"]);
    let mut seen = BTreeSet::new();
    let mut after = String::new();
    for _ in 0..10 {
        let page = json_of(&house, &format!("/v1/holders?resource=db&sort=-wants&limit=7{after}")).await;
        for row in page["rows"].as_array().expect("rows") {
            assert!(seen.insert(row["client"].to_string()), "twice: {row}");
        }
        match page["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => break,
        }
    }
    assert_eq!(seen.len(), 30);
    house.stop().await;
}

#[tokio::test]
async fn what_makes_no_sense_is_named_with_what_would() {
    let house = House::open(FAIR).await;
    let cases = [
        ("/v1/node?x=1", 400, "parameter: found \"x\"; wanted no parameter"),
        ("/v1/holders", 400, "resource: is missing; wanted the name of one"),
        ("/v1/holders?resource=none", 404, "nobody holds or wants \"none\""),
        ("/v1/resources?limit=1001", 400, "limit: found \"1001\"; wanted a whole number from 1 to 1000"),
        (
            "/v1/resources?after=x",
            400,
            "after: found \"x\"; wanted what `next` of an answer with the same sort said",
        ),
        (
            "/v1/series?field=none",
            400,
            "field: found \"none\"; wanted one of capacity, outstanding, wants, ghost, mark, level",
        ),
        (
            "/v1/revision?number=1",
            404,
            "the templates come from a file, of which no earlier ones are kept (--config etcd:PREFIX)",
        ),
    ];
    for (path, code, error) in cases {
        let (found, told) = fault(&house, path).await;
        assert_eq!((found, told["error"].as_str()), (code, Some(error)), "{path}");
    }
    let (_, told) = fault(&house, "/v1/resources?wher=1").await;
    assert_eq!(told["known"], json!(["where", "sort", "limit", "after"]));
    let (_, told) = fault(&house, "/v1/resources?where=clients%3E1,nothing=3").await;
    assert!(told["known"].as_array().is_some_and(|known| known.contains(&json!("outstanding"))), "{told}");
    house.stop().await;
}

#[tokio::test]
async fn a_browser_is_given_the_page_and_everybody_else_the_index() {
    let house = House::open(FAIR).await;
    let page = get_as(house.http(), "/", "text/html,application/xhtml+xml").await;
    assert_eq!((page.code, page.content_type.as_str()), (200, "text/html; charset=utf-8"));
    assert!(page.body.contains("<main id=\"main\""), "{}", page.body);
    let head = head(&house, "/").await;
    for header in [
        "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';",
        "frame-ancestors 'none'",
        "x-content-type-options: nosniff",
        "referrer-policy: no-referrer",
        "cross-origin-opener-policy: same-origin",
    ] {
        assert!(head.contains(header), "no {header} in\n{head}");
    }
    assert!(!head.contains("access-control"), "{head}");
    for address in [house.http(), house.address()] {
        let index = get_as(address, "/", "*/*").await;
        assert!(
            index.body.starts_with("lessor\n") && index.body.contains("/v1/holders?resource=NAME"),
            "{}",
            index.body
        );
        for path in ["/console.js", "/console.css", "/favicon.ico", "/plain"] {
            assert_eq!(get_as(address, path, "*/*").await.code, 200, "{path}");
        }
        assert_eq!(get_as(address, "/debug/status", "text/html").await.code, 307);
    }
    house.stop().await;
}

#[tokio::test]
async fn what_is_out_of_the_ordinary_is_found() {
    let house = House::open_with(FAIR, &["--history", "0"]).await;
    let mut capacity = house.capacity().await;
    let mut big = Holder::new("big", Nature::Knows, "db", 500.0);
    big.report(&mut capacity).await.expect("it is served");
    let found = async || {
        let rows = json_of(&house, "/v1/findings").await;
        let is_it = |row: &Value| row["kind"] == "saturated" && row["about"] == "db";
        rows["rows"].as_array().is_some_and(|rows| rows.iter().any(is_it))
    };
    eventually("it is found to be full", found).await;
    let (code, told) = fault(&house, "/v1/series?resource=db").await;
    assert_eq!((code, told["error"].as_str()), (404, Some("no figures are kept here (--history 0)")));
    house.stop().await;
}
