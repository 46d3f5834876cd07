//! `weir vos-perf` on memory that counts as persistent, below a file system with DAX.

use std::path::Path;

use anyhow::{Result, ensure};
use weir_lab::{Lab, Missing, Places, or_skip};

use crate::roce::has_weir;

const MAKER: &str = "/usr/sbin/mkfs.ext4";

fn lab() -> Result<Lab> {
    let missing = Missing {
        what: format!("no {MAKER}"),
        remedy: "apt install e2fsprogs".to_owned(),
    };
    ensure!(Path::new(MAKER).exists(), missing);
    has_weir(&Places::find()?)?;
    Ok(Lab::new()?.file(MAKER, "lab/mkfs.ext4").dev("pmem"))
}

#[test]
fn the_seeds_line_on_persistent_memory_survives_a_loss_of_power() -> Result<()> {
    let Some(lab) = or_skip("a store on persistent memory", lab())? else {
        return Ok(());
    };
    let script = r#"mkfs.ext4 -q -b 4096 $LAB_DEV_0 || lab_fail "no file system"
        mkdir /pool && mount -t ext4 -o dax $LAB_DEV_0 /pool && cd /pool || lab_fail "not mounted with DAX"
        ln -s "$(command -v weir)" /tmp/vos_perf
        /tmp/vos_perf -D . -P 64M -d 2000 -a 1 -n 1 -s 4K -z -R "U;p F;p V" --store-result /out/power.json 2>&1 ||
            lab_fail "exit $?""#;
    let run = lab.run(script)?;
    run.good()?;
    let said = &run.output;
    for test in ["UPDATE", "FETCH", "VERIFY"] {
        ensure!(said.contains(&format!("Completed test={test}\n")), "{said}");
    }
    // Elsewhere a note says that it is less.
    ensure!(!said.contains("durability="), "{said}");
    let stored = std::fs::read_to_string(run.out.join("power.json"))?;
    ensure!(stored.contains(r#""durability":"power""#), "{stored}");
    Ok(())
}
