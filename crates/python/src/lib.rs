//! The client for Python: the module `lessor._native`, of which the package `lessor` in `python/` is made.
//!
//! It is a shell around `lessor_client` and decides nothing: a method call takes what Python gives, asks the same code
//! as a program in Rust, and turns the answer into what Python expects. What is written in Python (`python/lessor`) is
//! what needs neither speed nor the client's insides: exceptions, the decorator, the middlewares.
//!
//! | file | is |
//! | --- | --- |
//! | `fork.rs` | values that belong to one process, and are neither used nor dropped in its children |
//! | `runtime.rs` | the runtime of the process, and waits for it that let other threads run and Ctrl-C in |
//! | `promise.rs` | the same for asyncio |
//! | `connection.rs`, `client.rs`, `settings.rs`, `options.rs` | the client, of which each process has its own |
//! | `handle.rs`, `rate.rs`, `gauge.rs` | open resources |
//! | `domain.rs`, `decision.rs`, `permit.rs`, `together.rs`, `lease.rs` | what comes of them |
//! | `arguments.rs`, `raise.rs` | what Python gives, and exceptions |
//! | `bench.rs` | what a decision is compared with |
//!
//! The interpreter's lock is held for a decision, which takes less time than to give it away, and is given away for
//! every wait. Locks of this crate are taken by threads that hold the interpreter's, and no reference to an object of
//! Python is dropped by one that does not: so none of them is held while a process forks, and no child waits for one
//! for ever.

use pyo3::prelude::*;

mod arguments;
mod bench;
mod client;
mod connection;
mod decision;
mod domain;
mod fork;
mod gauge;
mod handle;
mod lease;
mod options;
mod permit;
mod promise;
mod raise;
mod rate;
mod runtime;
mod settings;
mod together;

/// The compiled part of lessor.
#[pymodule]
mod _native {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::bench::Bench;
    #[pymodule_export]
    use crate::client::Client;
    #[pymodule_export]
    use crate::connection::close_all;
    #[pymodule_export]
    use crate::decision::Decision;
    #[pymodule_export]
    use crate::domain::{Domain, short_name};
    #[pymodule_export]
    use crate::fork::after_fork;
    #[pymodule_export]
    use crate::gauge::Gauge;
    #[pymodule_export]
    use crate::lease::Lease;
    #[pymodule_export]
    use crate::permit::Permit;
    #[pymodule_export]
    use crate::rate::Rate;
    #[pymodule_export]
    use crate::together::{Together, TogetherPermit};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::fork::look();
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        let py = module.py();
        let (at_fork, at_exit) =
            (wrap_pyfunction!(after_fork, module)?, wrap_pyfunction!(close_all, module)?);
        let os = py.import("os")?;
        if os.hasattr("register_at_fork")? {
            let keywords = pyo3::types::PyDict::new(py);
            keywords.set_item("after_in_child", at_fork)?;
            os.call_method("register_at_fork", (), Some(&keywords))?;
        }
        py.import("atexit")?.call_method1("register", (at_exit,))?;
        Ok(())
    }
}
