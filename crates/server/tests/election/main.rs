//! A candidate as etcd sees it: stories in text. Elections under random faults are in the simulator's tests.

mod clocks;
mod line;
mod restored;
mod stops;
mod stories;
