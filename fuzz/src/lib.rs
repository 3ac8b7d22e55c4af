//! The bodies of the fuzz targets, and the seeds that they begin with. A test of `lessor-server` runs the same bodies.

pub mod bodies;
pub mod seeds;
