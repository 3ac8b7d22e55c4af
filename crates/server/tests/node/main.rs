//! The node as its holders see it: stories in text, and laws under random holders.

mod advice;
mod below;
mod claims;
mod clocks;
mod crowd;
mod domains;
mod floors;
mod gauges;
mod holders;
mod kinds;
mod laws;
mod legacy;
mod liars;
mod listeners;
mod loans;
mod marks;
mod names;
mod pollers;
mod shared;
mod square;
mod stories;
mod streams;
mod strict;
mod strict_laws;
mod unknown;
mod village;
