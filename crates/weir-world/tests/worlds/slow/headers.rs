//! The constants of both binary interfaces, compared with the headers of the installed libraries
//! by a C program that each library's own compiler builds.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests, outside of test functions"
)]

use std::ffi::CStr;
use std::fmt::Write;
use std::fs;
use std::process::Command;
use std::ptr::NonNull;

use crate::launch::{MPICH, Mpi, OPEN_MPI, is_here, run, scratch, skip};
use weir_world::mpi::{Abi, Constant, MpichAbi, OmpiAbi};

const CONSTANTS: [(Constant, &str); 4] = [
    (Constant::CommWorld, "MPI_COMM_WORLD"),
    (Constant::Byte, "MPI_BYTE"),
    (Constant::RequestNull, "MPI_REQUEST_NULL"),
    (Constant::ErrorsReturn, "MPI_ERRORS_RETURN"),
];

/// Properties of a family's headers, as C expressions.
fn claims<A: Abi>() -> Vec<String> {
    let (size, align) = (size_of::<A::Status>(), align_of::<A::Status>());
    let ignored = A::STATUS_IGNORE.addr();
    vec![
        format!("sizeof(MPI_Status) == {size}"),
        format!("_Alignof(MPI_Status) <= {align}"),
        format!("(uintptr_t)MPI_STATUS_IGNORE == {ignored}"),
        format!("(uintptr_t)MPI_STATUSES_IGNORE == {ignored}"),
        format!("sizeof(MPI_Request) == {}", size_of::<A::Handle>()),
        format!("sizeof(MPI_Comm) == {}", size_of::<A::Handle>()),
        format!("sizeof(MPI_Datatype) == {}", size_of::<A::Handle>()),
        format!("sizeof(MPI_Errhandler) == {}", size_of::<A::Handle>()),
        "MPI_SUCCESS == 0".to_owned(),
        "MPI_THREAD_SINGLE == 0".to_owned(),
        "MPI_MAX_ERROR_STRING <= 512".to_owned(),
        "MPI_MAX_LIBRARY_VERSION_STRING <= 8192".to_owned(),
    ]
}

/// The claims about handles that are numbers.
fn numbers() -> Vec<String> {
    let claim = |(which, name)| {
        let value = MpichAbi::handle(which, |_| None).unwrap();
        format!("{name} == {value}")
    };
    CONSTANTS.map(claim).to_vec()
}

/// The claims about handles that are addresses: of the symbols that are asked for.
fn addresses() -> Vec<String> {
    let claim = |(which, name)| {
        let asked = std::cell::Cell::new(String::new());
        let found = OmpiAbi::handle(which, |symbol: &CStr| {
            asked.set(symbol.to_str().unwrap().to_owned());
            NonNull::new(std::ptr::without_provenance_mut(8))
        });
        assert_eq!(found.unwrap().addr(), 8);
        let symbol = asked.into_inner();
        format!("(void *){name} == dlsym(RTLD_DEFAULT, \"{symbol}\")")
    };
    CONSTANTS.map(claim).to_vec()
}

fn check(test: &str, mpi: Mpi, claims: &[String]) {
    if !is_here(mpi, test) {
        return;
    }
    let (source, program) = (scratch(&format!("{test}.c")), scratch(test));
    let mut text =
        "#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <mpi.h>\n#include <stdint.h>\n\
        #include <stdio.h>\nint main(void) {\n"
            .to_owned();
    for claim in claims {
        writeln!(text, "    if (!({claim})) puts({claim:?});").unwrap();
    }
    text += "    return 0;\n}\n";
    fs::write(&source, text).unwrap();
    let built = run(Command::new(mpi.compiler).args(["-o", &program, &source, "-ldl"]));
    if built.code != Some(0) && built.err.contains("mpi.h") {
        return skip(test, &format!("{} has no headers", mpi.compiler));
    }
    built.good();
    assert_eq!(
        run(&mut Command::new(&program)).good(),
        "",
        "these do not hold"
    );
    fs::remove_file(source).unwrap();
    fs::remove_file(program).unwrap();
}

#[test]
fn the_constants_of_open_mpi_are_those_of_its_headers() {
    let all = [claims::<OmpiAbi>(), addresses()].concat();
    check(
        "the_constants_of_open_mpi_are_those_of_its_headers",
        OPEN_MPI,
        &all,
    );
}

#[test]
fn the_constants_of_mpich_are_those_of_its_headers() {
    let all = [claims::<MpichAbi>(), numbers()].concat();
    check(
        "the_constants_of_mpich_are_those_of_its_headers",
        MPICH,
        &all,
    );
}
