//! Disks and network interfaces: their location, interrupts, links and queues.

use weir_schema::thresholds::{LEAST_COOLNESS_K, LEAST_REQUESTS, MOST_INTERRUPTS};
use weir_sys::device::{BlockFacts, PathKind, block_facts, path_facts};
use weir_sys::mounts::DevId;
use weir_sys::{Tree, pin};

use super::Machine;
use super::finding::Finding;

/// Interrupts of a disk below which their CPUs are not judged.
const FEW_INTERRUPTS: u64 = 1_000;
/// Disks that are no device.
const MADE_OF_MEMORY: [&str; 4] = ["loop", "ram", "zram", "nbd"];

/// The disks that are looked at: those of the targets, else all.
fn disks(machine: &Machine) -> Vec<BlockFacts> {
    let tree = &machine.tree;
    let of_targets = machine.targets.iter().filter_map(|target| {
        let facts = path_facts(tree, target.as_ref()).ok()?;
        facts.block
    });
    if !machine.targets.is_empty() {
        return of_targets.collect();
    }
    let names = tree.names("sys/class/block").into_iter();
    let real = names.filter(|name| !MADE_OF_MEMORY.iter().any(|kind| name.starts_with(kind)));
    let facts = real.filter_map(|name| {
        let dev = tree.word(format!("sys/class/block/{name}/dev"))?;
        let (major, minor) = dev.split_once(':')?;
        let dev = DevId {
            major: major.parse().ok()?,
            minor: minor.parse().ok()?,
        };
        block_facts(tree, dev)
    });
    facts.filter(|disk| disk.partition_of.is_none()).collect()
}

/// A finding for each disk that has one, else the reason why there is none.
fn of_disks(
    machine: &Machine,
    absent: &str,
    check: impl Fn(&BlockFacts) -> Option<Finding>,
) -> Vec<Finding> {
    let disks = disks(machine);
    if disks.is_empty() {
        return vec![Finding::absent("no disk is looked at")];
    }
    let found: Vec<Finding> = disks.iter().filter_map(check).collect();
    if found.is_empty() {
        vec![Finding::absent(absent)]
    } else {
        found
    }
}

/// The disk of a name, or the disk that has the partition of this name.
fn whole(disk: &BlockFacts) -> &str {
    disk.partition_of.as_deref().unwrap_or(&disk.name)
}

pub(super) fn nodes(machine: &Machine) -> Vec<Finding> {
    let nodes = &machine.topology.nodes;
    if nodes.len() < 2 {
        return vec![Finding::absent("there is one memory node")];
    }
    let allowed = pin::affinity().unwrap_or_default();
    let near = |node: u32| {
        let own = nodes.iter().find(|n| n.id == node);
        own.is_some_and(|n| n.cpus.as_slice().iter().any(|cpu| allowed.contains(*cpu)))
    };
    of_disks(machine, "no disk says which node it is at", |disk| {
        let node = disk.numa_node?;
        let found = format!("{} is at node {node}", disk.name);
        Some(if near(node) {
            Finding::ok(found)
        } else {
            Finding::warn(
                format!("{found}, and no CPU of it is allowed"),
                "every request crosses to another socket",
                format!("numactl --cpunodebind={node} --membind={node}"),
            )
        })
    })
}

/// Prefix of a disk's words in `/proc/interrupts`.
fn interrupt_prefix(tree: &Tree, disk: &str) -> Option<String> {
    if let Some(rest) = disk.strip_prefix("nvme") {
        let controller: String = rest.chars().take_while(char::is_ascii_digit).collect();
        return Some(format!("nvme{controller}q"));
    }
    let device = std::fs::read_link(tree.path(format!("sys/class/block/{disk}/device"))).ok()?;
    let name = device.file_name()?.to_str()?;
    name.starts_with("virtio").then(|| format!("{name}-req"))
}

/// Interrupts since the start of the machine, by CPU.
fn interrupts_of(tree: &Tree, prefix: &str) -> Vec<u64> {
    let text = tree.text("proc/interrupts").unwrap_or_default();
    let cpus = text
        .lines()
        .next()
        .map_or(0, |line| line.split_whitespace().count());
    let mut counts = vec![0; cpus];
    for line in text.lines().skip(1) {
        let words: Vec<&str> = line.split_whitespace().collect();
        if !words.iter().skip(cpus).any(|word| word.starts_with(prefix)) {
            continue;
        }
        for (count, word) in counts.iter_mut().zip(words.iter().skip(1)) {
            *count += word.parse::<u64>().unwrap_or(0);
        }
    }
    counts
}

pub(super) fn interrupts(machine: &Machine) -> Vec<Finding> {
    if machine.topology.cpus.len() < 2 {
        return vec![Finding::absent("there is one CPU")];
    }
    let absent = "the kernel counts no interrupts by the names of these disks";
    of_disks(machine, absent, |disk| {
        let prefix = interrupt_prefix(&machine.tree, whole(disk))?;
        let counts = interrupts_of(&machine.tree, &prefix);
        let total: u64 = counts.iter().sum();
        let (cpu, most) = counts.iter().enumerate().max_by_key(|(_, n)| **n)?;
        #[expect(clippy::cast_precision_loss, reason = "a share")]
        let share = *most as f64 / total.max(1) as f64;
        let used = counts.iter().filter(|n| **n > 0).count();
        Some(if total >= FEW_INTERRUPTS && share > MOST_INTERRUPTS {
            Finding::warn(
                format!(
                    "{:.0} % of those of {} go to CPU {cpu}",
                    share * 100.0,
                    disk.name
                ),
                "a worker there is slower than the others",
                format!("keep workers off CPU {cpu}, or spread /proc/irq/*/smp_affinity"),
            )
        } else {
            Finding::ok(format!("{}: {total} on {used} CPUs", disk.name))
        })
    })
}

pub(super) fn links(machine: &Machine) -> Vec<Finding> {
    of_disks(
        machine,
        "no disk says what its PCI Express link is",
        |disk| {
            let link = disk.pcie.as_ref()?;
            let width = |lanes: Option<u32>| lanes.map_or(String::new(), |n| format!(" x{n}"));
            let found = format!("{}: {}{}", disk.name, link.speed, width(link.width));
            let is_slow = link
                .max_speed
                .as_ref()
                .is_some_and(|most| *most != link.speed);
            let is_narrow = link.max_width > link.width;
            let most = link.max_speed.as_deref().unwrap_or(&link.speed);
            Some(if is_slow || is_narrow {
                Finding::warn(
                    format!("{found} of {most}{}", width(link.max_width)),
                    "the link carries less than the device could",
                    "look at the slot, its bifurcation and power management",
                )
            } else {
                Finding::ok(found)
            })
        },
    )
}

pub(super) fn drives(machine: &Machine) -> Vec<Finding> {
    of_disks(machine, "no disk is an NVMe drive", |disk| {
        let name = whole(disk);
        let controller: String = name
            .strip_prefix("nvme")?
            .chars()
            .take_while(char::is_ascii_digit)
            .collect();
        let top = format!("sys/class/nvme/nvme{controller}");
        let sensor = machine
            .tree
            .names(&top)
            .into_iter()
            .find(|n| n.starts_with("hwmon"));
        let read = |sensor: &str, file: &str| -> Option<f64> {
            let millis: f64 = machine.tree.number(format!("{top}/{sensor}/{file}"))?;
            Some(millis / 1e3)
        };
        let found = sensor
            .as_deref()
            .and_then(|s| Some((read(s, "temp1_input")?, s)));
        let Some((now, sensor)) = found else {
            return Some(Finding::absent(format!("{name} shows no temperature")));
        };
        let Some(limit) = read(sensor, "temp1_max") else {
            return Some(Finding::ok(format!("{name} is at {now:.0} °C")));
        };
        let found = format!("{name} is at {now:.0} of {limit:.0} °C");
        Some(if now > limit - LEAST_COOLNESS_K {
            let why = "a hot drive slows itself down";
            Finding::warn(found, why, "cool it, or pause between runs")
        } else {
            Finding::ok(found)
        })
    })
}

pub(super) fn queues(machine: &Machine) -> Vec<Finding> {
    of_disks(machine, "no disk says what its queue is", |disk| {
        let scheduler = disk.scheduler.as_deref()?;
        let requests = disk.queue_requests;
        let held = requests.map_or(String::new(), |n| format!(", {n} requests"));
        let polls = if disk.has_polling == Some(true) {
            ", polled queues"
        } else {
            ""
        };
        let name = whole(disk);
        let found = format!("{name}: scheduler {scheduler}{held}{polls}");
        Some(if scheduler != "none" {
            let why = "the scheduler reorders requests, and costs CPU time";
            Finding::warn(
                found,
                why,
                format!("echo none > /sys/block/{name}/queue/scheduler"),
            )
        } else if requests.is_some_and(|n| n < LEAST_REQUESTS) {
            let why = "deeper queues wait in the kernel";
            let remedy = format!("echo {LEAST_REQUESTS} > /sys/block/{name}/queue/nr_requests");
            Finding::warn(found, why, remedy)
        } else {
            Finding::ok(found)
        })
    })
}

pub(super) fn networks(machine: &Machine) -> Vec<Finding> {
    let top = "sys/class/net";
    let names = machine.tree.names(top).into_iter();
    let real = names.filter(|name| machine.tree.has(format!("{top}/{name}/device")));
    let cpus = machine.topology.cpus.len();
    let of_interface = |name: String| {
        let word = |file: &str| machine.tree.word(format!("{top}/{name}/{file}"));
        if word("operstate").as_deref() != Some("up") {
            return None;
        }
        let queues = machine
            .tree
            .numbered(format!("{top}/{name}/queues"), "rx-")
            .len();
        let mtu = word("mtu").unwrap_or_default();
        let s = if queues == 1 { "" } else { "s" };
        let found = format!("{name}: {queues} receive queue{s}, MTU {mtu}");
        Some(if queues > 0 && queues < cpus {
            let why = format!("{cpus} workers would share them");
            let remedy = format!("ethtool -L {name} combined {cpus}, or fewer workers");
            Finding::warn(found, &why, remedy)
        } else {
            Finding::ok(found)
        })
    };
    let found: Vec<Finding> = real.filter_map(of_interface).collect();
    if found.is_empty() {
        return vec![Finding::absent("no interface of a device is up")];
    }
    found
}

/// True if a target is a regular file. Devices and directories have no holes.
pub(super) fn is_file(machine: &Machine, target: &str) -> bool {
    path_facts(&machine.tree, target.as_ref()).is_ok_and(|f| f.kind == PathKind::Regular)
}
