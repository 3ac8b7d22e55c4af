//! Checked forms of the messages: what comes off the wire passes here once, and is then trusted.
//!
//! A request with a fault is refused, with the field, what it holds and what was wanted; of one without a stream only the
//! resources that are at fault, where there are others. [`Ask`] and [`Release`]
//! are what a grantor works with, [`Answer`] and [`Whereabouts`] what a holder does; each is made from the wire and put
//! on the wire here and nowhere else.

mod answer;
mod ask;
mod bound_by;
mod domains;
mod field;
mod grant;
mod look;
mod notice;
mod refusal;
mod stream;
mod unenforced;

pub use answer::{Answer, Leader, RefusedReport, Whereabouts};
pub use ask::{Ask, Band, Bands, CheckedAsk, Has, HolderKind, Lasts, Release, Report};
pub use bound_by::BoundBy;
pub use domains::{
    Census, DomainEntry, DomainHits, DomainNews, DomainReport, LONGEST_DOMAIN, MOST_DOMAINS, MOST_ENTRIES,
    sealed,
};
pub use grant::{Before, Grant, Order, Sharing, UseWindow, WallClock};
pub use look::{Look, LookKind, ViewBounds, ViewPart};
pub use notice::NodeNotice;
pub use refusal::{Limits, Malformed, Refusal};
pub use stream::{Down, Hello, JobNews, StreamReport, UnitsAsked, Up, Welcome};
pub use unenforced::Unenforced;
