//! Prints the names of the links that stand for doors, one per line, for the scripts that make packages.

use std::io::Write as _;

use weir_doors::DOORS;

fn main() -> std::io::Result<()> {
    let mut out = std::io::stdout();
    for link in DOORS.iter().flat_map(|door| door.links) {
        writeln!(out, "{}", link.name)?;
    }
    Ok(())
}
