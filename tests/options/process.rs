//! The environment of workers.

use super::stage::{Stage, skip};
use super::{calls, fio, has_all};

#[test]
fn commands_run_before_and_after_each_worker() {
    let stage = Stage::new();
    let words = [
        "--size=4k",
        "--rw=write",
        "--exec_prerun=echo before; ls",
        "--exec_postrun=echo after >&2; cat a.0.0 | wc -c",
    ];
    fio(&stage, &words).code(0);
    assert!(stage.read("a.prerun.txt").starts_with("before\n"));
    assert_eq!(
        stage.read("a.postrun.txt").replace(' ', ""),
        "after\n4096\n"
    );
}

#[test]
fn a_command_that_fails_fails_the_job_before_anything_is_written() {
    let stage = Stage::new();
    stage.file("f", "old");
    let words = ["--filename=f", "--size=3", "--bs=1", "--rw=write"];
    let said =
        stage.peer_says(&[&["fio", "--name=a"], &words[..], &["--exec_prerun=exit 3"]].concat());
    said.code(1);
    assert_eq!(stage.read("f"), "old");
    stage
        .peer_says(&[&["fio", "--name=a"], &words[..], &["--exec_postrun=exit 3"]].concat())
        .code(1);
}

#[test]
fn ctrl_c_waits_for_a_command_and_ends_the_run() {
    let programs = [
        (&["fio"][..], 128, true),
        // fio's threads are of the same group as what they start.
        (&["fio", "--thread"], 0, false),
        (&[super::stage::peer("fio")], 128, true),
    ];
    for (program, code, waits) in programs {
        if !super::stage::has(program[0]) {
            skip("ctrl_c_waits_for_a_command", "no fio");
            continue;
        }
        let stage = Stage::new();
        let mut command = stage.command(program[0]);
        let prerun = "--exec_prerun=echo > begun; sleep 1; echo > over";
        let job = ["--name=a", "--ioengine=null", "--size=4k", prerun];
        command.args(&program[1..]).args(job);
        let running = super::stage::Running::start(command);
        super::stage::until("the command runs", || {
            stage.list().contains(&"begun".to_owned())
        });
        running.signal_all(rustix::process::Signal::INT);
        let said = running.end().code(code);
        let is_over = stage.list().contains(&"over".to_owned());
        assert_eq!(is_over, waits, "{program:?} {said}");
    }
}

#[test]
fn workers_get_the_io_priority_of_the_job() {
    if let Err(missing) = has_all(&["strace"]) {
        return skip("workers_get_the_io_priority_of_the_job", &missing);
    }
    let stage = Stage::new();
    for (words, value) in [
        (&["--prio=3"][..], "IOPRIO_CLASS_BE, 3)"),
        (&["--prioclass=3"], "IOPRIO_CLASS_IDLE, 0)"),
        (&["--prioclass=2", "--prio=7"], "IOPRIO_CLASS_BE, 7)"),
    ] {
        let all = [&["--size=4k", "--rw=write", "--numjobs=2"], words].concat();
        let calls = calls(&stage, "ioprio_set", &all);
        assert_eq!(
            calls.iter().filter(|c| c.contains(value)).count(),
            2,
            "{calls:?}"
        );
    }
    fio(&stage, &["--size=4k", "--prio=8"]).code(1);
}

#[test]
fn memory_policies_and_locked_memory_reach_the_kernel() {
    if let Err(missing) = has_all(&["strace"]) {
        return skip(
            "memory_policies_and_locked_memory_reach_the_kernel",
            &missing,
        );
    }
    if !std::path::Path::new("/sys/devices/system/node/node0").exists() {
        return skip("memory_policies_and_locked_memory", "no memory nodes");
    }
    let stage = Stage::new();
    let words = [
        "--size=4k",
        "--rw=write",
        "--numa_cpu_nodes=0",
        "--numa_mem_policy=bind:0",
        "--lockmem=64k",
    ];
    let calls = calls(&stage, "set_mempolicy,mlock,sched_setaffinity", &words);
    for call in [
        "set_mempolicy(MPOL_BIND, [0x",
        "mlock(",
        "sched_setaffinity(",
    ] {
        assert!(
            calls.iter().any(|c| c.starts_with(call)),
            "{call}: {calls:?}"
        );
    }
}

#[test]
fn a_memory_node_that_does_not_exist_fails_the_job() {
    let stage = Stage::new();
    for bad in ["--numa_cpu_nodes=1000", "--numa_mem_policy=bind:1000"] {
        fio(&stage, &["--size=4k", "--rw=write", bad]).code(1);
    }
    for bad in [
        "--numa_cpu_nodes=x",
        "--numa_mem_policy=prefer:0-1",
        "--numa_mem_policy=bind",
    ] {
        fio(&stage, &["--size=4k", "--rw=write", bad]).code(1);
    }
}
