//! Writes the JSON Schemas of plans, results and comparisons into `schemas/`, generated from the types.
//!
//! `cargo run -p weir-compare --features json-schema --example write_schemas`, after a change of a type; with `-- --check`
//! it writes nothing and exits with 1 if a file is not what the types say.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schemas");
const REMEDY: &str = "cargo run -p weir-compare --features json-schema --example write_schemas";

fn main() -> io::Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let check = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => false,
        ["--check"] => true,
        _ => {
            writeln!(io::stderr(), "usage: write_schemas [--check]")?;
            return Ok(ExitCode::from(2));
        }
    };
    let folder = Path::new(FOLDER);
    let mut stale = Vec::new();
    let schemas = weir_schema::json_schemas().into_iter();
    for (name, schema) in schemas.chain([weir_compare::json_schema()]) {
        let text = serde_json::to_string_pretty(&schema)? + "\n";
        let path = folder.join(name);
        if check {
            if std::fs::read_to_string(&path).ok() != Some(text) {
                stale.push(name);
            }
        } else {
            std::fs::create_dir_all(folder)?;
            std::fs::write(path, text)?;
        }
    }
    if stale.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    let names = stale.join(" and ");
    writeln!(
        io::stderr(),
        "schemas: {names} differ from the types; write them again: {REMEDY}"
    )?;
    Ok(ExitCode::FAILURE)
}
