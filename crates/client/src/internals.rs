//! The parts from which the server, the commands and the simulator of this workspace are made. A program needs none of them,
//! and no promise holds for them: any version may change them in any way.
//!
//! Nearly all of them are free of clocks, sockets and tasks, and take the time as an argument. They are what remains without
//! the feature `shell`:
//!
//! ```
//! use lessor_client::internals::holding::HoldingConfig;
//! use lessor_client::internals::session::{Action, Event, Session, SessionConfig};
//! use lessor_client::{Kind, Rung, Transport};
//! use lessor_proto::{ClientId, Incarnation, ResourceId, Time, message::Answer};
//!
//! let id = ClientId::new("web-1", 256)?;
//! let config = SessionConfig::new(id, Incarnation(1), vec!["127.0.0.1:15000".into()]);
//! let mut session = Session::new(SessionConfig { transport: Transport::Poll, ..config });
//! let db = ResourceId::new("db", 256)?;
//! session.add(Time::ZERO, db.clone(), HoldingConfig::new(Kind::Rate, 100.0, 0));
//! let Some(Action::Ask { id, to, ask }) = session.poll(Time::ZERO) else { panic!("it asks at once") };
//! assert_eq!((&*to, ask.reports.len()), ("127.0.0.1:15000", 1));
//! session.handle(Time::ZERO, Event::Answered { id, answer: Answer::default() });
//! assert_eq!(session.rung(Time::ZERO, &db), Rung::Waiting);
//! # Ok::<(), lessor_proto::name::BadName>(())
//! ```

#[cfg(feature = "shell")]
pub use crate::shell::{ParentLine, clock};

/// Certificates and keys, and connections made with them.
#[cfg(feature = "shell")]
pub mod tls {
    pub use crate::shell::tls::certificate::{BadCertificate, end_of, end_of_chain, identity};
    pub use crate::shell::tls::pem::PemSource;
    pub use crate::shell::tls::renewed::{Renewed, Texts};
    pub use crate::shell::tls::showing::{ShownCertificate, shown_sources};
    pub use crate::shell::tls::{ClientTls, certified, roots};
    pub use crate::shell::{Connector, Protocol};
}

/// The amount that may be spent, and until when.
pub mod allowance {
    pub use crate::allowance::Allowance;
}

/// The resources as which second limits are leased.
pub mod companions {
    pub use crate::companions::{AccompaniedUse, Companions};
}

/// The demand of a program, measured.
pub mod demand {
    pub use crate::demand::haste::{KnockGate, SOON};
    pub use crate::demand::peak::{Attempts, Peak};
    pub use crate::demand::{DemandOptions, Estimator};
}

/// Tenants inside a lease.
pub mod domain {
    pub use crate::domain::{
        BadPolicies, CADENCE, Clocks, DeltaStream, DomainWish, Domains, Lender, MOST_LEASES, MOST_OVERRIDES,
        News, NotStrict, Override, Policies, Rule, Rules, Scope, Share, Sublease, Subleases,
        UNREACHABLE_AFTER, entry_at, is_marked, is_share, least_limit, message_at, none,
    };
}

/// Enforcement of a gauge.
pub mod gauge {
    pub use crate::gauge::{GaugeUsage, Semaphore};
}

/// The jobs of a gauge, for those who wait until one is done elsewhere.
#[cfg(feature = "shell")]
pub mod jobs {
    pub use crate::shell::GaugeJobs;
}

/// One lease as it is held.
pub mod holding {
    pub use crate::holding::{HoldingConfig, Inheritance, Proof, Surplus};
}

/// Enforcement of a rate.
pub mod limiter {
    pub use crate::limiter::{Limiter, RateUsage, SentUnits, UnitWish};
    pub use crate::waiting::{Clock, Waiting};
}

/// Rules of a holder that a test can take out.
pub mod mutation {
    #[cfg(feature = "mutations")]
    pub use crate::mutation::take_asked;
    pub use crate::mutation::{HolderRule, HolderRules};
}

/// All leases of one process from one server.
pub mod session {
    pub use crate::session::{Action, Change, Event, JobEvent, Session, SessionConfig};
}

/// The leases that domains have for themselves.
pub mod sublessee {
    pub use crate::sublessee::Sublessee;
}

/// Time that is lost while a machine sleeps.
pub mod suspend {
    pub use crate::suspend::{BELIEVED, SuspendWatch};
}

/// Enforcement of a limit on the uses in any window.
pub mod window {
    pub use crate::window::{
        ExactWindow, KeysOptions, WindowHolder, WindowKey, WindowKeys, WindowUsage, WindowWant,
    };
}

/// Several limiters, gauges and domains in one request.
pub mod together {
    pub use crate::together::Combination;
}
