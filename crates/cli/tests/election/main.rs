//! Tasks of three nodes under a real etcd, a hundred clients below them, and whoever leads is told to end, killed, frozen, and cut off.
//!
//! Every client writes down what it believes, with the clock that leases are counted on, in the very step in which its
//! limiter is told. Afterwards the sum of all beliefs is formed at every instant, and nobody who had a lease may have
//! been without one for a moment. How long it took until a new leader granted anything is printed.
//!
//! This program is both: the test, and with arguments, one of the processes with clients. So it has no harness. Where
//! there is no etcd it says so and passes, unless `LESSOR_REQUIRE_ETCD=1` is set. Debian has it in `etcd-server`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../house/mod.rs"]
mod house;

mod faults;
mod handover;
mod newcomer;
mod node;
mod town;

use std::io::Write;

use crate::house::clients::{CALL, Clients};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some(CALL) => {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(Clients::run(&arguments[1..]));
        }
        // What test runners ask for.
        Some("--list") => println!("election: test"),
        _ => {
            // The ways to etcd are open while diaries are read.
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
            let runtime = runtime.unwrap();
            runtime.block_on(faults::test());
            let _ = writeln!(std::io::stdout(), "election: ok");
        }
    }
}
