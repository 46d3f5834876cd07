//! The doors: each one's flags, its way to a plan, its output dialect, its help.
//!
//! In: arguments, or a stored result. Out: a [`Request`] of the door that [`top::call`] picks, or text in
//! the door's dialect. Doors know no engine and touch nothing: files, streams, clocks and exit belong to
//! the program.
#![forbid(unsafe_code)]

/// Appends formatted text to a string, which cannot fail.
macro_rules! push {
    ($out:expr, $($text:tt)+) => {{
        use std::fmt::Write as _;
        let _ = write!($out, $($text)+);
    }};
}

pub mod args;
pub mod axio;
pub mod beff;
pub mod compare;
mod date;
pub mod diagnose;
pub mod doctor;
mod door;
mod examples;
pub mod fio;
pub mod flags;
mod given;
pub mod history;
pub mod house;
mod house_words;
pub mod import;
pub mod kio;
pub mod machine;
pub mod manual;
pub mod monitor;
mod mpi;
pub mod net;
pub mod new;
pub mod nvme;
pub mod obj;
pub mod obj_run;
pub mod object;
pub mod observer;
mod pair_table;
mod rate_bracket;
mod refusal;
pub mod report;
pub mod request;
pub mod rows;
pub mod rpc;
pub mod run;
pub mod search;
pub mod selftest;
pub mod show;
pub mod takes;
pub mod top;
pub mod topo;
pub mod tune;

pub use args::DoorCall;
pub use door::{
    Door, DoorLink, Getopt, MakeObserver, Manner, Measures, Operands, PrintMeasured, Printed,
    PrintedFile, ReadArguments, ReadRequest, Voice,
};
pub use given::{FlagNeed, Given, GivenFlags};
pub use machine::{Machine, NamedPath};
pub use refusal::{LACKS, Refusal, USAGE};
pub use request::Request;

/// All doors, in the order of the list of verbs.
pub const DOORS: &[Door] = &[
    run::DOOR,
    fio::DOOR,
    kio::DOOR,
    nvme::DOOR,
    beff::DOOR,
    net::DOOR,
    axio::DOOR,
    selftest::DOOR,
    rpc::DOOR,
    object::VOS_PERF,
    object::DAOS_PERF,
    obj::DOOR,
    obj_run::DOOR,
    show::DOOR,
    history::DOOR,
    report::DOOR,
    compare::DOOR,
    import::DOOR,
    monitor::DOOR,
    diagnose::DOOR,
    tune::DOOR,
    doctor::DOOR,
    topo::DOOR,
    new::DOOR,
    Door {
        words: Some(top::engines_words),
        ..Door::new(
            "engines",
            "",
            "list the engines and whether this machine can run them",
        )
    },
    Door {
        words: Some(mpi::words),
        ..Door::new(
            "mpi",
            "info",
            "show which MPI library and launcher weir works with here",
        )
    },
    manual::MAN,
    manual::COMPLETIONS,
];
