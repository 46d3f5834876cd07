//! The machine as text: a heading for each memory node, a row for each device below it.

use std::fmt::Write as _;

use weir_sys::device::Attachment;
use weir_sys::topology::{Cache, Topology};
use weir_sys::{CpuList, topology};

use super::MachineMap;

/// Cells of a device: kind, name, size or speed, state or driver, address, remarks.
type Row = [String; 6];

/// Space before the cells of a row.
const INDENT: &str = "  ";

/// The map as text. Rows wider than `columns` are broken after the name.
pub(super) fn text(map: &MachineMap, columns: Option<usize>) -> String {
    let rows: Vec<(Option<u32>, Row)> = rows(map);
    let widths = widths(rows.iter().map(|(_, row)| row));
    let mut out = String::new();
    for (node, heading) in headings(&map.topology) {
        let own = rows.iter().filter(|(of, _)| *of == node);
        let own: Vec<&Row> = own.map(|(_, row)| row).collect();
        if node.is_none() && own.is_empty() && !map.topology.nodes.is_empty() {
            continue;
        }
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{}", wrapped(&heading, columns, "        "));
        for row in own {
            write_row(&mut out, row, &widths, columns);
        }
    }
    out
}

/// The nodes, and at the end a heading for devices without one. Where the kernel knows no nodes all devices
/// are there.
fn headings(topology: &Topology) -> Vec<(Option<u32>, String)> {
    let of_node = |node: &topology::Node| {
        let mut text = format!("node {}: {}", node.id, cpus_text(topology, &node.cpus));
        if let Some(memory) = node.memory {
            let _ = write!(text, ", memory {memory}");
        }
        if topology.nodes.len() > 1 {
            let others = node.distances.iter().map(u32::to_string);
            let _ = write!(text, ", distances {}", others.collect::<Vec<_>>().join(" "));
        }
        (Some(node.id), text)
    };
    let mut all: Vec<_> = topology.nodes.iter().map(of_node).collect();
    let rest = if topology.nodes.is_empty() {
        let cpus = cpus_text(topology, &topology.online());
        format!("the kernel knows no nodes: {cpus}")
    } else {
        "no node:".to_owned()
    };
    all.push((None, rest));
    all
}

/// `CPUs 0-3,8-11 (4 cores of 2 threads), package 0, L3 16.0 MiB`.
fn cpus_text(topology: &Topology, cpus: &CpuList) -> String {
    let own = || topology.cpus.iter().filter(|cpu| cpus.contains(cpu.id));
    if own().next().is_none() {
        return "no CPUs".to_owned();
    }
    let first = |cpu: &&topology::Cpu| cpu.siblings.as_slice().first() == Some(&cpu.id);
    let cores = own().filter(first).count().max(1);
    let threads = own().map(|cpu| cpu.siblings.len()).max().unwrap_or(1);
    let packages: CpuList = own().filter_map(|cpu| cpu.package).collect();
    let s = |count: usize| if count == 1 { "" } else { "s" };
    let mut text = format!(
        "CPU{} {cpus} ({cores} core{} of {threads} thread{})",
        s(cpus.len()),
        s(cores),
        s(threads)
    );
    if !packages.is_empty() {
        let _ = write!(text, ", package{} {packages}", s(packages.len()));
    }
    let shares = |cache: &&Cache| cache.cpus.as_slice().iter().any(|&cpu| cpus.contains(cpu));
    let last = topology
        .caches
        .iter()
        .filter(shares)
        .max_by_key(|c| c.level);
    if let Some(last) = last {
        let _ = write!(text, ", L{} {}", last.level, last.size);
    }
    text
}

/// Disks, then interfaces, each with the node under which it is shown.
fn rows(map: &MachineMap) -> Vec<(Option<u32>, Row)> {
    let known = |attachment: &Attachment| {
        let node = u32::try_from(attachment.numa_node?).ok()?;
        map.topology
            .nodes
            .iter()
            .any(|n| n.id == node)
            .then_some(node)
    };
    let text = |word: &Option<String>| word.clone().unwrap_or_default();
    let mut rows = Vec::new();
    for disk in &map.disks {
        let facts = &disk.facts;
        let link = facts.pcie.as_ref().map(|link| {
            let width = link.width.map(|width| format!(" ×{width}"));
            link.speed.replace(" PCIe", "") + &width.unwrap_or_default()
        });
        let more = [without_node(&disk.attachment), link, facts.model.clone()];
        rows.push((
            known(&disk.attachment),
            [
                "disk".to_owned(),
                facts.name.clone(),
                facts.size.map(|size| size.to_string()).unwrap_or_default(),
                text(&disk.attachment.driver),
                text(&disk.attachment.bus_address),
                joined(more),
            ],
        ));
    }
    for network in &map.networks {
        let state = if network.is_up { "up" } else { "down" };
        let more = [
            without_node(&network.attachment),
            Some(state.to_owned()),
            network.mtu.map(|mtu| format!("MTU {mtu}")),
        ];
        rows.push((
            known(&network.attachment),
            [
                "network".to_owned(),
                network.name.clone(),
                network.speed_mbit_per_s.map(speed).unwrap_or_default(),
                text(&network.attachment.driver),
                text(&network.attachment.bus_address),
                joined(more),
            ],
        ));
    }
    rows
}

fn joined(parts: impl IntoIterator<Item = Option<String>>) -> String {
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Reason why a device is shown under no node.
fn without_node(attachment: &Attachment) -> Option<String> {
    match attachment.numa_node {
        None if attachment.is_virtual => Some("virtual".to_owned()),
        None => Some("node unknown".to_owned()),
        Some(node) if node < 0 => Some(format!("numa_node {node}")),
        Some(_) => None,
    }
}

fn speed(mbit_per_s: u64) -> String {
    if mbit_per_s >= 1_000 && mbit_per_s.is_multiple_of(100) {
        let (whole, tenth) = (mbit_per_s / 1_000, mbit_per_s / 100 % 10);
        let tenth = if tenth == 0 {
            String::new()
        } else {
            format!(".{tenth}")
        };
        format!("{whole}{tenth} Gbit/s")
    } else {
        format!("{mbit_per_s} Mbit/s")
    }
}

fn widths<'a>(rows: impl Iterator<Item = &'a Row>) -> [usize; 6] {
    let mut widths = [0; 6];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    widths
}

fn write_row(out: &mut String, row: &Row, widths: &[usize; 6], columns: Option<usize>) {
    let mut line = INDENT.to_owned();
    for (cell, &width) in row.iter().zip(widths) {
        // A column that nothing stands in takes no room.
        if width > 0 {
            let _ = write!(line, "{cell:width$}  ");
        }
    }
    let line = line.trim_end();
    if columns.is_none_or(|columns| line.chars().count() <= columns) {
        let _ = writeln!(out, "{line}");
        return;
    }
    let [kind, name, facts @ ..] = row;
    let facts: Vec<&str> = facts
        .iter()
        .map(String::as_str)
        .filter(|f| !f.is_empty())
        .collect();
    let line = format!("{INDENT}{kind}  {name}  {}", facts.join(", "));
    let _ = writeln!(out, "{}", wrapped(&line, columns, "      "));
}

/// Breaks a line between words where it is longer than `columns`.
fn wrapped(text: &str, columns: Option<usize>, indent: &str) -> String {
    let columns = columns.unwrap_or(usize::MAX);
    let mut out = String::new();
    let mut used = 0;
    for word in text.split_inclusive(' ') {
        let width = word.trim_end().chars().count();
        if used + width > columns && used > indent.len() {
            out.truncate(out.trim_end().len());
            let _ = write!(out, "\n{indent}");
            used = indent.len();
        }
        out.push_str(word);
        used += word.chars().count();
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_sys::topology::{Cpu, Node};
    use weir_units::Bytes;

    fn two_nodes() -> MachineMap {
        let cpu = |id: u32| Cpu {
            id,
            package: Some(id % 4 / 2),
            core: Some(id % 2),
            siblings: [id % 4, id % 4 + 4].into_iter().collect(),
            node: Some(id % 4 / 2),
        };
        let node = |id: u32| Node {
            id,
            cpus: [2 * id, 2 * id + 1, 2 * id + 4, 2 * id + 5]
                .into_iter()
                .collect(),
            memory: Some(Bytes(64 << 30)),
            free: None,
            distances: vec![10, 21],
        };
        let network = |name: &str, numa_node: Option<i32>| weir_sys::device::NetworkInterface {
            name: name.to_owned(),
            is_up: true,
            is_loopback: name == "lo",
            speed_mbit_per_s: numa_node.map(|_| 2_500),
            mtu: Some(1500),
            attachment: Attachment {
                numa_node,
                driver: numa_node.map(|_| "ice".to_owned()),
                bus_address: numa_node.map(|_| "0000:5e:00.0".to_owned()),
                is_virtual: numa_node.is_none(),
            },
        };
        MachineMap {
            topology: Topology {
                cpus: (0..8).map(cpu).collect(),
                caches: Vec::new(),
                nodes: vec![node(0), node(1)],
            },
            disks: Vec::new(),
            networks: vec![
                network("eth0", Some(1)),
                network("eth1", Some(-1)),
                network("lo", None),
            ],
        }
    }

    #[test]
    fn devices_stand_below_their_node_and_the_rest_says_why() {
        assert_eq!(
            text(&two_nodes(), None),
            "\
node 0: CPUs 0-1,4-5 (2 cores of 2 threads), package 0, memory 64.0 GiB, distances 10 21
node 1: CPUs 2-3,6-7 (2 cores of 2 threads), package 1, memory 64.0 GiB, distances 10 21
  network  eth0  2.5 Gbit/s  ice  0000:5e:00.0  up, MTU 1500
no node:
  network  eth1  2.5 Gbit/s  ice  0000:5e:00.0  numa_node -1, up, MTU 1500
  network  lo                                   virtual, up, MTU 1500
"
        );
    }

    #[test]
    fn no_line_is_longer_than_a_narrow_terminal() {
        let text = text(&two_nodes(), Some(40));
        let longest = text.lines().map(|line| line.chars().count()).max();
        assert!(longest <= Some(40), "{text}");
        assert!(text.contains("numa_node -1"), "{text}");
    }

    #[test]
    fn a_machine_whose_kernel_knows_no_nodes_has_one_group() {
        let mut map = two_nodes();
        map.topology.nodes.clear();
        let text = text(&map, None);
        assert!(text.starts_with("the kernel knows no nodes: CPUs 0-7 (4 cores"));
        assert_eq!(text.lines().count(), 4, "{text}");
    }
}
