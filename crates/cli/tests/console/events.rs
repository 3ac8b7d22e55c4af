//! `/v1/events`: everything first, then what has changed, and an end when the server ends.

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::api::{FAIR, crowd};
use crate::house::{AGES, House};

/// Somebody who listens.
struct Listener(BufReader<TcpStream>);

// === impl Listener ===

impl Listener {
    async fn open(house: &House) -> Listener {
        let mut stream = TcpStream::connect(house.http()).await.expect("it takes connections");
        let request = "GET /v1/events HTTP/1.1\r\nHost: lessor\r\nAccept: text/event-stream\r\n\r\n";
        stream.write_all(request.as_bytes()).await.expect("it is read");
        Listener(BufReader::new(stream))
    }

    /// The data of the next message; none when there is an end.
    async fn next(&mut self) -> Option<Value> {
        let reading = async {
            let mut line = String::new();
            while self.0.read_line(&mut line).await.expect("it is read") > 0 {
                if let Some(data) = line.strip_prefix("data: ") {
                    return Some(serde_json::from_str(data).expect("JSON"));
                }
                line.clear();
            }
            None
        };
        timeout(AGES, reading).await.expect("a message in time")
    }
}

fn names(message: &Value) -> Vec<&str> {
    message["resources"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|row| row["resource"].as_str())
        .collect()
}

#[tokio::test]
async fn a_listener_hears_everything_and_then_what_changes() {
    let house = House::open(FAIR).await;
    crowd(&house, "db", 3).await;
    crowd(&house, "api", 1).await;
    let mut listener = Listener::open(&house).await;
    let first = listener.next().await.expect("a message");
    assert_eq!((&first["schema"], &first["all"]), (&1.into(), &true.into()));
    assert_eq!(names(&first), ["api", "db"]);
    assert!(first["node"]["leads"] == true && first["findings"].is_array(), "{first}");
    crowd(&house, "db", 5).await;
    loop {
        let next = listener.next().await.expect("a message");
        assert_eq!(next["all"], false);
        assert!(!names(&next).contains(&"api"), "nothing has changed there: {next}");
        // Other processes of the same ids are holders besides.
        if names(&next) == ["db"] && next["resources"][0]["clients"] == 8 {
            break;
        }
    }
    drop(listener);
    house.stop().await;
}

#[tokio::test]
async fn an_open_console_does_not_hold_up_the_end_of_a_server() {
    let house = House::open_with(FAIR, &["--drain", "25s"]).await;
    let mut listener = Listener::open(&house).await;
    assert!(listener.next().await.is_some());
    let (ended, ()) = tokio::join!(async { while listener.next().await.is_some() {} }, house.stop());
    let () = ended;
}
