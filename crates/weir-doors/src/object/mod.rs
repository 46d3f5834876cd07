//! `weir vos-perf` and `weir daos-perf`, also reached by links named `vos_perf` and `daos_perf`: tests on an
//! object store, in this process and over a network, with the options, the command strings and the text of the
//! tools of DAOS.
//!
//! In: arguments, the machine. Out: a [`Request`](crate::Request); from a result the texts of `output`. Spec:
//! object store performance, 1 to 3. Not here: stores, running a plan.

mod block;
mod command_string;
pub(crate) mod flags;
mod output;
mod plan;
pub(crate) mod stores;
#[cfg(test)]
mod tests;

pub use flags::{DAOS_FLAGS, VOS_FLAGS};

use crate::door::{Door, DoorLink, Getopt, Manner, Measures};
use crate::given::Given;
use crate::refusal::Refusal;

/// The door of the store alone.
pub const VOS_PERF: Door = Door {
    links: &[DoorLink::new("vos_perf")],
    flags: VOS_FLAGS,
    measures: Some(Measures {
        manner: Manner::Getopt(&Getopt {
            refuse: |why| refuse("vos_perf", why),
            help: || VOS_PERF.command().render_help().to_string(),
            ..GETOPT
        }),
        help: include_str!("help.md"),
        examples: &[
            "weir vos-perf -D /dev/shm -P 4G -d 200000 -a 1 -n 1 -s 4K -z -R \"U;p F;p\"",
            "weir vos-perf -D /dev/shm -P 1G -d 2 -n 4 -s 1M -A -R \"U U;o=4k;s=4k V\"",
            "weir vos-perf -D /dev/shm -P 1G -i -I -A -d 5 -o 5 -n 10 -R \"U Q;p I;p A;p\"",
        ],
        ..MEASURES
    }),
    ..Door::new(
        "vos-perf",
        "[OPTIONS]",
        "tests on a store of versioned keys and arrays, as vos_perf of DAOS",
    )
};

/// The door of a store that is reached over a network.
pub const DAOS_PERF: Door = Door {
    links: &[DoorLink::new("daos_perf")],
    flags: DAOS_FLAGS,
    measures: Some(Measures {
        manner: Manner::Getopt(&Getopt {
            refuse: |why| refuse("daos_perf", why),
            help: || DAOS_PERF.command().render_help().to_string(),
            ..GETOPT
        }),
        help: include_str!("daos_help.md"),
        examples: &[
            "weir daos-perf --server tcp://127.0.0.1:7000 -A -C 16 -R \"U;p F;p V\"",
            "weir daos-perf --server tcp://127.0.0.1:7000 -T echo -A -R \"U;p F;p\"",
            "weir daos-perf --server tcp://host:7000 --ranks 2 -A -R \"U;p O;p\"",
            "mpirun -n 4 weir daos-perf --server tcp://host:7000 -R \"U;p F;p\"",
        ],
        ..MEASURES
    }),
    ..Door::new(
        "daos-perf",
        "[OPTIONS]",
        "the same on servers over a network, as daos_perf of DAOS",
    )
};

/// Syntax of both.
const GETOPT: Getopt = Getopt {
    abbreviates: |flag| flag.category == flags::REFERENCE,
    // Its older name.
    alias: |name| (name == "stride").then_some("size"),
    letters_stand_together: true,
    takes_any_value: true,
    operand,
    ..Getopt::new(|why| Refusal::usage(why), String::new)
};

const MEASURES: Measures = Measures {
    print: Some(|result, given, _| Ok(output::print(result, given))),
    peers_form: |given| {
        let forms = ["output-style", "compat-truncate"];
        forms.into_iter().find(|form| given.has(form))
    },
    names_jobs: false,
    ..Measures::new(plan::read)
};

/// Takes the letter of shuffled arrays written apart, and after `-f` the path of older versions.
fn operand(word: &str, given: &Given) -> Result<(), String> {
    let last = given.iter().last();
    match last.map(|(flag, value)| (flag.name, value)) {
        Some(("array", "")) if word.eq_ignore_ascii_case("r") => Ok(()),
        Some(("flat_dkey", _)) if stores::older_path(given).is_none() => Ok(()),
        _ => Err(format!(
            "`{word}` is no option; `weir {} --help` lists them",
            given.door.verb
        )),
    }
}

/// A refusal, with the two lines that the peer has for an option it does not know.
fn refuse(program: &str, why: &str) -> Refusal {
    let refusal = Refusal::usage(why);
    let option = why
        .strip_prefix("no option `")
        .and_then(|rest| rest.split_once('`'));
    let line = match option {
        Some((word, _)) if word.starts_with("--") => format!("unrecognized option '{word}'"),
        Some((word, _)) => format!("invalid option -- '{}'", word.trim_start_matches('-')),
        None => return refusal,
    };
    refusal.by_peer(format!("{program}: {line}\nUnknown option ?"))
}
