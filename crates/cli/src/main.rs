//! `lessor`: a server that leases out capacity, and the commands around it.

#[macro_use]
mod output;

mod admin;
mod agent;
mod can;
mod check;
mod demo;
mod doctor;
mod doors;
mod exit;
mod explain;
mod get;
mod http;
mod import;
mod log;
mod manual;
mod office;
mod overrides;
mod pages;
mod plan;
mod revisions;
mod serve;
mod signals;
mod sim;
mod status;
mod tls;
mod token;
mod top;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

/// The allocator of the program, which gives memory back when holders have gone; the system's keeps nearly all of it.
#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Leases out the capacity of shared resources.
#[derive(Debug, Parser)]
#[command(version = env!("LESSOR_VERSION"), max_term_width = 100)]
struct Lessor {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a server
    Serve(Box<serve::Serve>),
    /// Watch a tree of servers, a dozen clients and a real HTTP target with a limit, in one process
    Demo(demo::Demo),
    /// Answer proxies that ask for limits (Envoy, nginx and others), out of leases of a server
    Doors(Box<doors::OpenDoors>),
    /// Run beside the programs of a host: doors on loopback and on sockets, and on request a leaf for programs
    Agent(Box<agent::Agent>),
    /// Print the templates that a server needs for rules of doors
    Import(import::Import),
    /// Ask a server for capacity, once or until interrupted
    Get(get::Get),
    /// Say everything that is wrong with a configuration
    Check(check::Check),
    /// Say whether an identity may do something, by the rules of access
    Can(can::Can),
    /// List the rules by which somebody may do something
    WhoCan(can::WhoCan),
    /// Make bearer tokens, or say what is in one
    Token(token::Token),
    /// Show what is leased of each resource, the fullest first; of one, who has what, wants what, until when
    Status(status::Status),
    /// Watch in a terminal what is full, and who has it
    Top(top::Top),
    /// Say why a client gets what it gets
    Explain(explain::Explain),
    /// Look whether a tree is well, and say what to do where it is not
    Doctor(doctor::Doctor),
    /// Say what other templates would change, for whom, and how long that would take
    Plan(Box<plan::PlanArgs>),
    /// Act on a server that runs: reload, resign, recall, log, connections, access, whoami
    Admin(admin::Admin),
    /// Push templates into etcd, where servers follow them
    Push(Box<revisions::Push>),
    /// List the revisions of the templates in etcd
    History(revisions::History),
    /// Print the documents of a revision
    Show(revisions::ShowRevision),
    /// Show what two revisions have different, or a revision and a file
    Diff(revisions::Diff),
    /// Write the documents of a revision into files
    Export(revisions::Export),
    /// Push the content of an earlier revision
    Rollback(revisions::Rollback),
    /// Change single fields of a template in etcd
    Set(revisions::Set),
    /// Put the second limit in force that is tried beside a resource
    Promote(revisions::Promote),
    /// Let nobody push for a while
    PushFreeze(revisions::PushFreezing),
    /// Remove old revisions from etcd
    Prune(revisions::Prune),
    /// Let nobody have more of a resource for a while
    Freeze(Box<overrides::Freeze>),
    /// Take everything back from a client, a node or a domain for a while
    Drain(Box<overrides::DrainCommand>),
    /// Let there be less of a resource for a while
    Cap(Box<overrides::Cap>),
    /// Have clients let everything of a resource pass for a while: not strict
    Unenforce(Box<overrides::Unenforce>),
    /// List what operators have put above the templates
    Overrides(Box<overrides::ListOverrides>),
    /// End such a thing before its time
    Lift(Box<overrides::Lift>),
    /// Credit what a client has without its word: not strict
    Seize(Box<overrides::Seize>),
    /// Run one of Doorman's seven scenarios in simulated time, or see burst tiers at work
    Sim(sim::Sim),
    /// Print what a shell completes of these commands
    Completions(manual::Completions),
    /// Write manual pages
    Man(manual::Man),
}

fn main() -> ExitCode {
    let outcome = match Lessor::parse().command {
        Command::Serve(serve) => run(serve.run()),
        Command::Demo(demo) => run(demo.run()),
        Command::Doors(doors) => run(doors.run()),
        Command::Agent(agent) => run(agent.run()),
        Command::Import(import) => import.run(),
        Command::Get(get) => run(get.run()),
        Command::Check(check) => check.run(),
        Command::Can(can) => can.run(),
        Command::WhoCan(who) => who.run(),
        Command::Token(token) => token.run(),
        Command::Status(status) => run(status.run()),
        Command::Top(top) => run(top.run()),
        Command::Doctor(doctor) => run(doctor.run()),
        Command::Explain(explain) => run(explain.run()),
        Command::Plan(plan) => run(plan.run()),
        Command::Admin(admin) => run(admin.run()),
        Command::Push(push) => run(push.run()),
        Command::History(history) => run(history.run()),
        Command::Show(show) => run(show.run()),
        Command::Diff(diff) => run(diff.run()),
        Command::Export(export) => run(export.run()),
        Command::Rollback(rollback) => run(rollback.run()),
        Command::Set(set) => run(set.run()),
        Command::Promote(promote) => run(promote.run()),
        Command::PushFreeze(freezing) => run(freezing.run()),
        Command::Prune(prune) => run(prune.run()),
        Command::Freeze(freeze) => run(freeze.run()),
        Command::Drain(drain) => run(drain.run()),
        Command::Cap(cap) => run(cap.run()),
        Command::Unenforce(unenforce) => run(unenforce.run()),
        Command::Overrides(list) => run(list.run()),
        Command::Lift(lift) => run(lift.run()),
        Command::Seize(seize) => run(seize.run()),
        Command::Sim(sim) => sim.run(),
        Command::Completions(completions) => completions.run(Lessor::command()),
        Command::Man(man) => man.run(Lessor::command()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is::<clap::Error>() => {
            let fault = error.downcast::<clap::Error>().expect("it is one");
            // Who does not see it can be told nothing else.
            let _ = fault.print();
            ExitCode::from(2)
        }
        Err(error) => {
            let exit = error.downcast_ref::<exit::Exit>();
            if exit.is_none_or(|exit| !exit.is_silent()) {
                // All that led to it, on one line each.
                eprintln!("error: {error:#}");
            }
            exit.map_or(ExitCode::FAILURE, |exit| ExitCode::from(exit.code))
        }
    }
}

fn run(command: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(command)
}
