//! Options about the environment of workers: memory nodes, priorities, commands.

use weir_schema::{IoPriority, MemoryNodes};
use weir_units::Bytes;

use super::record::{Applied, Category, Env, OptionRecord, option, refused};
use crate::diagnostic::Fault;
use crate::draft::Draft;

const NO_USER: &str = "workers are threads of one process; start weir as that user";
const NO_CGROUP: &str = "start weir inside the cgroup, e.g. with systemd-run";

/// One above the largest number that a memory node may have.
const MAX_NODES: u32 = 1024;

fn nodes(text: &str) -> Result<Vec<u32>, Fault> {
    let bad = |piece: &str| {
        Fault::value(format!("bad list of memory nodes \"{text}\""))
            .label("expected e.g. 0-1,3")
            .piece(piece)
    };
    let read = |piece: &str| {
        let node = piece.trim().parse::<u32>().ok().filter(|n| *n < MAX_NODES);
        node.ok_or_else(|| bad(piece))
    };
    let mut nodes = Vec::new();
    for part in text.split(',').map(str::trim).filter(|p| !p.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (read(first)?, read(last)?);
        if first > last {
            return Err(bad(part));
        }
        nodes.extend(first..=last);
    }
    nodes.sort_unstable();
    nodes.dedup();
    if nodes.is_empty() {
        return Err(bad(text));
    }
    Ok(nodes)
}

fn memory_nodes(draft: &mut Draft, word: &str, tail: Option<&str>, _: &Env<'_>) -> Applied {
    let list = || {
        let tail = tail.ok_or_else(|| {
            Fault::value(format!("`numa_mem_policy={word}` names no node"))
                .label("e.g. prefer:0 or bind:0-1")
        });
        tail.and_then(nodes)
    };
    draft.placement.memory = match word {
        "local" => MemoryNodes::Local,
        "prefer" => match list()?[..] {
            [node] => MemoryNodes::Prefer { node },
            _ => {
                return Err(Fault::value("only one node can be preferred")
                    .label("bind:LIST takes several")
                    .peer("fio: 'prefer' should be followed by a single node"));
            }
        },
        "bind" => MemoryNodes::Bind { nodes: list()? },
        "interleave" => MemoryNodes::Interleave { nodes: list()? },
        _ => MemoryNodes::Default,
    };
    Ok(())
}

fn priority(draft: &mut Draft) -> &mut IoPriority {
    draft
        .placement
        .io_priority
        .get_or_insert(IoPriority { class: 0, level: 0 })
}

const fn process(name: &'static str, short: &'static str, nearest: &'static str) -> OptionRecord {
    refused(name, short, nearest).of(Category::Process)
}

pub(super) static RECORDS: &[OptionRecord] = &[
    option("numa_cpu_nodes", "The job may use the CPUs of these memory nodes")
        .of(Category::Process)
        .long("A list such as 0-1,3. cpus_allowed wins over it.")
        .text(|d, v, _| {
            d.placement.nodes = Some(nodes(v)?);
            Ok(())
        }),
    option("numa_mem_policy", "Memory nodes that memory comes from")
        .of(Category::Process)
        .default("default")
        .long("`default`, `local`, `prefer:N`, `bind:LIST`, `interleave:LIST`.")
        .words_with_tail(
            &[
                ("default", "Default policy"),
                ("local", "The node of the CPU that uses it"),
                ("prefer", "This node first"),
                ("bind", "These nodes alone"),
                ("interleave", "These nodes in turn"),
            ],
            memory_nodes,
        ),
    option("prio", "Level of the worker's I/O priority")
        .of(Category::Process)
        .long("0 is the highest. Without prioclass it is one of best effort.")
        .integer(0, 7, |d, n| priority(d).level = u8::try_from(n).unwrap_or(7)),
    option("prioclass", "Class of the worker's I/O priority")
        .of(Category::Process)
        .long("1: real time (needs privilege), 2: best effort, 3: idle.")
        .integer(0, 3, |d, n| priority(d).class = u8::try_from(n).unwrap_or(3)),
    option("lockmem", "Memory that each worker keeps from everybody else")
        .of(Category::Process)
        .default("0")
        .integer(0, u64::MAX, |d, n| d.placement.lock_bytes = Bytes(n)),
    option("exec_prerun", "Shell command before the job")
        .of(Category::Process)
        .long("Each worker runs it; what it says goes into NAME.prerun.txt. A failure fails the job.")
        .text(|d, v, _| {
            d.command_before = Some(v.to_owned());
            Ok(())
        }),
    option("exec_postrun", "Shell command after the job")
        .of(Category::Process)
        .long("Each worker runs it; what it says goes into NAME.postrun.txt. A failure fails the job.")
        .text(|d, v, _| {
            d.command_after = Some(v.to_owned());
            Ok(())
        }),
    process("uid", "User of the job", NO_USER),
    process("gid", "Group of the job", NO_USER),
    process("cgroup", "Control group of the job", NO_CGROUP),
    process("cgroup_nodelete", "Keep the control group", NO_CGROUP).neutral(&["0"]),
    process("cgroup_weight", "Weight of the control group", NO_CGROUP),
    process("profile", "A built-in test", "write its options into a job file"),
    process(
        "ioscheduler",
        "I/O scheduler of the device",
        "set /sys/block/DEV/queue/scheduler",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_nodes_are_read_and_bounded() {
        assert_eq!(nodes("0-1,3").unwrap(), [0, 1, 3]);
        for bad in ["", "x", "3-1", "0-4294967295", "1024", "-"] {
            assert!(nodes(bad).is_err(), "{bad}");
        }
    }
}
