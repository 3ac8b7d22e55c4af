//! The node as its holders see it: stories in text, and laws under random holders.

mod holders;
mod laws;
mod stories;
