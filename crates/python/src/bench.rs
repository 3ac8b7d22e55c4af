//! The cost of a call, and of a decision without one: what `python/bench` compares with.

use lessor_client::internals::clock;
use pyo3::prelude::*;

use crate::arguments::Units;
use crate::rate::Rate;

/// The measures that a decision is compared with.
#[pyclass(frozen, module = "lessor._native")]
pub(crate) struct Bench;

#[pymethods]
impl Bench {
    #[new]
    fn new() -> Bench {
        Bench
    }

    /// A method that does nothing but read its argument.
    #[pyo3(signature = (n=Units(1)), text_signature = "($self, n=1)")]
    fn try_acquire(&self, n: Units) -> bool {
        n.0 > 0
    }

    /// The seconds that so many attempts take in Rust.
    #[staticmethod]
    fn attempts(py: Python<'_>, rate: &Rate, times: Units) -> PyResult<f64> {
        let rate = rate.handle.resource(py)?;
        let began = clock::now();
        for _ in 0..times.0 {
            let _ = std::hint::black_box(rate).try_acquire(std::hint::black_box(1));
        }
        Ok(clock::now().since(began).as_secs_f64())
    }
}
