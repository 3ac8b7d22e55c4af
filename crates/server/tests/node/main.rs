//! The node as its holders see it: stories in text, and laws under random holders.

mod crowd;
mod gauges;
mod holders;
mod laws;
mod legacy;
mod listeners;
mod stories;
mod streams;
