//! The node as its holders see it: stories in text, and laws under random holders.

mod advice;
mod below;
mod caps;
mod claims;
mod clocks;
mod crowd;
mod domain_tree;
mod domain_work;
mod domains;
mod earlier;
mod floors;
mod gauges;
mod heartbeats;
mod holders;
mod kinds;
mod laws;
mod legacy;
mod liars;
mod listeners;
mod loans;
mod marks;
mod names;
mod other_kind;
mod pollers;
<<<<<<< HEAD
mod recalls;
=======
mod rooms;
>>>>>>> 92933aa (server: places, caps and revocations as the swarm wants them)
mod shared;
mod square;
mod stories;
mod streams;
mod strict;
mod strict_laws;
mod uncovered;
mod unknown;
mod village;
