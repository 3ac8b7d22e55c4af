//! Two hundred streaming clients in twenty processes at one server. Half of the processes are killed and come back.
//!
//! Every client writes down what it believes, with the clock that leases are counted on, in the very step in which its
//! limiter is told: a reduction before the server hears of it, an increase after it was heard of. Afterwards the sum of
//! all beliefs is formed at every instant. Those of the killed count to the end of their leases, as if they went on
//! unseen, which is more than what is promised for the living.
//!
//! This program is both: the test, and with arguments, one of the processes. So it has no harness.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::float_cmp, reason = "what is counted comes out as it went in")]

#[path = "../house/mod.rs"]
mod house;

mod town;

use std::io::Write;

use crate::house::clients::{CALL, Clients};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    match arguments.first().map(String::as_str) {
        Some(CALL) => runtime.block_on(Clients::run(&arguments[1..])),
        // What test runners ask for.
        Some("--list") => println!("crowd: test"),
        _ => {
            runtime.block_on(town::test());
            let _ = writeln!(std::io::stdout(), "crowd: ok");
        }
    }
}
