//! The structures and constants, compared with the installed headers by a C program.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use super::{CONSTANTS, LAYOUTS};
use crate::links::ofi::tests::skip;

/// Structures that weir allocates: what the library takes for one has to lie within.
const OWN: &[&str] = &[
    "struct fi_cq_attr",
    "struct fi_av_attr",
    "struct fi_cq_err_entry",
];
/// Structures that weir allocates in arrays.
const ARRAYS: &[&str] = &["struct fi_cq_data_entry"];

fn claims() -> Vec<String> {
    let mut claims = Vec::new();
    for layout in LAYOUTS {
        let (name, size) = (layout.name, layout.size);
        claims.push(if ARRAYS.contains(&name) {
            format!("sizeof({name}) == {size}")
        } else if OWN.contains(&name) {
            format!("sizeof({name}) <= {}", size + 256)
        } else {
            format!("sizeof({name}) >= {size}")
        });
        for (field, offset, bytes) in layout.fields {
            let field = field.trim_start_matches("r#");
            claims.push(format!("offsetof({name}, {field}) == {offset}"));
            claims.push(format!("sizeof((({name} *)0)->{field}) == {bytes}"));
        }
    }
    for (name, value) in CONSTANTS {
        claims.push(format!("(__int128){name} == (__int128){value}U"));
    }
    claims
}

const NAME: &str = "structures_and_constants_are_those_of_the_installed_headers";

fn scratch(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("weir-{}-{name}", std::process::id()))
}

#[test]
fn structures_and_constants_are_those_of_the_installed_headers() {
    let (source, program) = (scratch("fabric.c"), scratch("fabric"));
    let headers = [
        "fabric",
        "fi_domain",
        "fi_endpoint",
        "fi_cm",
        "fi_rma",
        "fi_errno",
    ];
    let mut text = "#include <stddef.h>\n#include <stdio.h>\n".to_owned();
    for header in headers {
        writeln!(text, "#include <rdma/{header}.h>").unwrap();
    }
    text += "int main(void) {\n";
    for claim in claims() {
        writeln!(text, "    if (!({claim})) puts({claim:?});").unwrap();
    }
    text += "    return 0;\n}\n";
    fs::write(&source, text).unwrap();
    let built = Command::new("cc")
        .arg("-o")
        .arg(&program)
        .arg(&source)
        .output();
    let built = match built {
        Ok(built) => built,
        Err(error) => return skip(NAME, &format!("no C compiler ({error})")),
    };
    let complaints = String::from_utf8_lossy(&built.stderr);
    if complaints.contains("rdma/fabric.h: No such file") {
        fs::remove_file(source).unwrap();
        return skip(
            NAME,
            "no headers of libfabric (Debian package libfabric-dev)",
        );
    }
    assert!(built.status.success(), "{complaints}");
    let said = Command::new(&program).output().unwrap();
    assert_eq!(
        String::from_utf8_lossy(&said.stdout),
        "",
        "these do not hold"
    );
    fs::remove_file(source).unwrap();
    fs::remove_file(program).unwrap();
}
