//! The client's side of a lease: asking for it, holding it and spending it.
//!
//! A client asks a server for leases of capacity, enforces them on its own machine, and renews them in the background: what
//! a permit costs is an atomic operation, never a message. When no server answers, a lease ends to the millisecond, and the
//! program goes on with what it chose for that case ([`holding::Fallback`]).
//!
//! ```no_run
//! # #[cfg(feature = "shell")]
//! # async fn work() -> Result<(), Box<dyn std::error::Error>> {
//! use lessor_client::Client;
//!
//! let client = Client::builder("127.0.0.1:15000").id("web-1").build()?;
//! let queries = client.rate("db-orders").max_wants(500.0).open()?;
//! let connections = client.gauge("db-connections").wants(10.0).open()?;
//!
//! queries.acquire(1).await?; // waits in order, five seconds at most
//! let connection = connections.acquire(1).await?; // comes back when dropped
//! # drop(connection);
//! println!("{:?}", queries.lease());
//! client.close().await; // releases everything
//! # Ok(())
//! # }
//! ```
//!
//! Without the feature `shell` what remains is free of clocks, sockets and tasks, and takes the time as an argument:
//!
//! ```
//! use lessor_client::holding::{HoldingConfig, Kind, Rung};
//! use lessor_client::session::{Action, Event, Session, SessionConfig, Transport};
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
//!
//! | room | what it is |
//! | --- | --- |
//! | [`session`] | which resources, from which server, report, refresh, back off |
//! | [`fault`] | what can go wrong between a session and its servers |
//! | [`holding`] | one resource as we hold it, and the ladder below it |
//! | [`limiter`], [`gauge`] | the hot path: permits for a rate, and for units in use |
//! | [`domain`] | what each tenant may use of a lease: burst tiers, contracts, debts |
//! | [`together`] | several of these in one request, all or nothing |
//! | [`sublessee`] | the leases that domains have for themselves, in a session |
//! | [`demand`] | watches use, says what we want next |
//! | `shell` | the task, the clock, the sockets, and the public `Client` |
//!
//! Deliberately absent: TLS, a metrics library (`Client::metrics` gives plain numbers), a choice among several nodes, and
//! any state on disk.

pub mod allowance;
pub mod demand;
pub mod domain;
pub mod fault;
pub mod gauge;
pub mod holding;
pub mod limiter;
pub mod mutation;
pub mod session;
pub mod sublessee;
pub mod suspend;
pub mod together;
pub mod transport;
pub mod waiting;

#[cfg(feature = "shell")]
pub mod shell;

pub use domain::Snapshot;
#[cfg(feature = "shell")]
pub use shell::{Client, Resource, Together};
