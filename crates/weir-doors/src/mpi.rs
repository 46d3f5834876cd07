//! The page of `weir mpi`. Its one argument, `info`, is read with the verbs (`top`).

use clap::{Arg, Command};

/// Command that parses the arguments after `mpi`.
pub(crate) fn words() -> Command {
    let (_, about) = HELP.split_once("\n\n").unwrap_or_default();
    let word = Arg::new("word").value_name("WORD").required(true);
    Command::new("mpi")
        .about("Show which MPI library and launcher weir works with here")
        .after_help(about)
        .override_usage("weir mpi info")
        .arg(word.help("What is shown").value_parser(["info"]))
}

/// The page of `weir mpi --help`.
pub(crate) const HELP: &str = "\
weir mpi info

Tells which MPI library weir opens at run time: family, the library's own words,
version of the standard, file; and the launcher, if one started it. Under a
launcher MPI is started too, and one rank prints for all: a first test of an
installation.

The launcher's family is looked for first. WEIR_MPI_LIB=FILE names another
library.

Examples:
    weir mpi info
    mpirun -n 2 weir mpi info
    mpirun.mpich -n 2 weir mpi info
    WEIR_MPI_LIB=libmpich.so.12 weir mpi info

Exit codes: 0 good; 1 MPI did not start, or the launcher belongs to another MPI;
2 usage error; 3 there is no library, and the message says what to install.
";
