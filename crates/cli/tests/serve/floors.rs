//! Floors, as one sees them who reaches no server: `lessor get --hold` under a server that is killed.

use std::process::Stdio;

use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::ChildStdout;
use tokio::time::timeout;

use crate::house::{AGES, House, lessor};

/// A fifth of it reserved, by leases of eight seconds, where others have two.
const CONFIG: &str = "resources:
- identifier_glob: \"*\"
  capacity: 100
  safe_fraction: 0.2
  safe_lease: 8s
  algorithm: {kind: FAIR_SHARE, lease_length: 2, refresh_interval: 1, learning_mode_duration: 0}
";

/// The next line that says what is wanted, which has to come.
async fn until(lines: &mut Lines<BufReader<ChildStdout>>, wanted: &[&str]) {
    let reading = async {
        while let Some(line) = lines.next_line().await.unwrap() {
            if wanted.iter().all(|part| line.contains(part)) {
                return;
            }
        }
        panic!("it ended before it said {wanted:?}");
    };
    timeout(AGES, reading).await.unwrap_or_else(|_| panic!("it never said {wanted:?}"));
}

#[tokio::test]
async fn a_client_of_a_server_that_is_killed_goes_on_with_its_floor_until_that_ends() {
    let mut house = House::open(CONFIG).await;
    let address = house.address().to_string();
    let mut command = lessor(&["get", "db", "--wants", "40", "--server", &address, "--hold"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    // What one client has of the twenty is a power of two of a millionth.
    until(&mut lines, &["db: 56.77", "(leased"]).await;
    let floor = house.resource("db|safe").await.unwrap();
    assert_eq!((&floor["capacity"], &floor["leased"]), (&20.0.into(), &16.777_216.into()));
    assert_eq!(house.resource("db").await.unwrap()["capacity"], 80.0);
    // There is no advice that anybody could use for ever.
    assert_eq!(house.metric("lessor_safe_capacity_out{resource=\"db\"}").await, 0.0);

    house.crash().await;
    until(&mut lines, &["db: 16.77", " for ", "(safe"]).await;
    until(&mut lines, &["db: 0/s", "no lease", "(pessimistic"]).await;

    let house = house.start_again().await;
    until(&mut lines, &["db: 56.77", "(leased"]).await;
    child.kill().await.unwrap();
    house.stop().await;
}
