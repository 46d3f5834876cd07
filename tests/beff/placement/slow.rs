//! Slow tests: under the launchers of MPI.

use super::{Command, FEW, Stage, affinity, cpus, has, peer, said, skip};

#[test]
fn a_rank_that_the_launcher_has_bound_stays_where_it_is() {
    let allowed = affinity().unwrap();
    let name = "ranks bound by a launcher";
    if let Some(missing) = ["mpirun.mpich", "taskset"].iter().find(|p| !has(p)) {
        return skip(name, &format!("no {missing}"));
    }
    let [first, second, ..] = *allowed.as_slice() else {
        return skip(name, "one processor alone");
    };
    let stage = Stage::new();
    let mut command: Command = stage.command("mpirun.mpich");
    let bound =
        "if [ $PMI_RANK = 0 ]; then cpu=$2; else cpu=$1; fi; shift 2; exec taskset -c $cpu \"$@\"";
    let (first, second) = (first.to_string(), second.to_string());
    command.args(["-n", "2", "sh", "-c", bound, "bound", &first, &second]);
    command.args([peer("Network_intel"), "--pin", "auto"]);
    command.args(FEW.split_whitespace());
    said(command).code(0);
    let found: Vec<String> = cpus(&stage).iter().map(u32::to_string).collect();
    assert_eq!(found, [second, first]);
}

#[test]
fn a_cpu_that_there_is_not_ends_every_rank_of_a_launcher_at_once() {
    let name = "a wrong processor under a launcher";
    if !has("mpirun.mpich") {
        return skip(name, "no mpirun.mpich");
    }
    let stage = Stage::new();
    let mut command: Command = stage.command("mpirun.mpich");
    command.args(["-n", "2", peer("Network_intel"), "--pin", "0,9999"]);
    command.args(FEW.split_whitespace());
    said(command)
        .code(1)
        .err("rank 1, before the exchanges: --pin: cannot run on CPUs 9999")
        .err("(allowed are ");
}
