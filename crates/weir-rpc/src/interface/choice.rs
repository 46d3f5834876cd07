//! Which network interface a process uses: the one asked for, else one near its CPUs.
//!
//! In: the interfaces of the machine, its nodes, the CPUs of this process, the name that was asked
//! for, and whose turn it is among the processes of the machine. Out: an [`InterfaceChoice`], with
//! what the user should know. Choosing is a pure function; [`next_turn`] counts in a file. Not here:
//! which interfaces reach a server, and their addresses (`local_interface`).

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::OnceLock;

use rustix::fs::{FlockOperation, OFlags, flock};
use weir_sys::device::{NetworkInterface, network_interfaces};
use weir_sys::topology::Topology;
use weir_sys::{CpuList, Tree};

use crate::{DerCode, RpcError};

/// The file of the group's directory that counts the turns.
const TURNS: &str = "weir-interface-turns";
/// So much of it is read: a machine has few nodes.
const MOST_TURNS: u64 = 64 << 10;

/// Facts that a choice of an interface rests on.
#[derive(Clone, Copy, Debug)]
pub struct InterfaceChoiceFacts<'a> {
    /// All interfaces of the machine.
    pub interfaces: &'a [NetworkInterface],
    /// The machine's CPUs and nodes.
    pub topology: &'a Topology,
    /// The CPUs that this process may use.
    pub cpus: &'a CpuList,
}

/// The interface that a process uses, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InterfaceChoice {
    /// Its name.
    pub name: String,
    /// The node that it counts as attached to.
    pub node: u32,
    /// The only node of the process's CPUs; `None` where they are of several.
    pub process_node: Option<u32>,
    /// The process's CPUs.
    pub process_cpus: CpuList,
    /// Note for standard error.
    pub note: Option<String>,
}

/// The interfaces of this machine, looked for once.
pub fn interfaces_of_this_machine() -> &'static [NetworkInterface] {
    static SCANNED: OnceLock<Vec<NetworkInterface>> = OnceLock::new();
    SCANNED.get_or_init(|| network_interfaces(&Tree::real()))
}

/// The one that was asked for, or one of those that `supports` says can be used. `turn` says which
/// turn a process of a node has among those that chose there before (`None`: among those of no node
/// in particular), and is asked only where there are several to choose from.
///
/// # Errors
/// There is none of that name: [`DerCode::NotThere`], with those that there are.
pub fn choose_interface(
    facts: &InterfaceChoiceFacts<'_>,
    asked: Option<&str>,
    supports: impl Fn(&NetworkInterface) -> bool,
    turn: impl FnOnce(Option<u32>) -> u64,
) -> Result<InterfaceChoice, RpcError> {
    let process_node = node_of(facts.topology, facts.cpus);
    let choice = |interface: Option<&NetworkInterface>, note| InterfaceChoice {
        name: interface
            .map_or("lo", |interface| &interface.name)
            .to_owned(),
        node: interface.map_or(0, node_of_interface),
        process_node,
        process_cpus: facts.cpus.clone(),
        note,
    };
    if let Some(name) = asked {
        return Ok(choice(Some(named_interface(facts.interfaces, name)?), None));
    }
    let usable = |known: &&NetworkInterface| known.is_up && !known.is_loopback && supports(known);
    let candidates: Vec<_> = facts.interfaces.iter().filter(usable).collect();
    let of_node = |node| {
        candidates
            .iter()
            .filter(move |c| node_of_interface(c) == node)
    };
    let Some(first) = candidates.iter().map(|c| node_of_interface(c)).min() else {
        let note = "No network devices detected in fabric scan; default AttachInfo response may be \
                    incorrect";
        return Ok(choice(None, Some(note.to_owned())));
    };
    let (near, note): (Vec<_>, _) = match process_node {
        None => (candidates.iter().collect(), None),
        Some(node) if of_node(node).next().is_some() => (of_node(node).collect(), None),
        Some(node) => {
            let note = format!(
                "No network devices bound to client NUMA node {node}.  Using response from NUMA \
                 {first}"
            );
            (of_node(first).collect(), Some(note))
        }
    };
    let several = near.len() as u64;
    let mine = if several > 1 {
        turn(process_node) % several
    } else {
        0
    };
    let mine = usize::try_from(mine).ok().and_then(|mine| near.get(mine));
    Ok(choice(mine.copied().copied(), note))
}

/// The node that all of these CPUs are of; a machine without nodes is node 0.
fn node_of(topology: &Topology, cpus: &CpuList) -> Option<u32> {
    let nodes = cpus.as_slice().iter().map(|&cpu| topology.node_of(cpu));
    let nodes: CpuList = nodes.map(|node| node.unwrap_or(0)).collect();
    match nodes.as_slice() {
        [one] => Some(*one),
        _ => None,
    }
}

/// Devices of no node count as of node 0.
fn node_of_interface(interface: &NetworkInterface) -> u32 {
    let node = interface.attachment.numa_node.unwrap_or(0);
    u32::try_from(node).unwrap_or(0)
}

/// The interface of this name.
///
/// # Errors
/// There is none: [`DerCode::NotThere`], with those that there are.
pub fn named_interface<'a>(
    interfaces: &'a [NetworkInterface],
    name: &str,
) -> Result<&'a NetworkInterface, RpcError> {
    let found = interfaces.iter().find(|known| known.name == name);
    found.ok_or_else(|| {
        let known: Vec<_> = interfaces.iter().map(|i| i.name.as_str()).collect();
        let known = known.join(", ");
        RpcError::new(
            DerCode::NotThere,
            format!("there is no network interface `{name}` (there are {known})"),
        )
    })
}

/// The number of processes that have had a turn for this node before, counted in a file of the
/// group's directory; the file is locked meanwhile, so that each number is given once. A file that
/// cannot be understood begins anew.
///
/// # Errors
/// The directory does not let the file be made, read or written.
pub fn next_turn(directory: &Path, node: Option<u32>) -> io::Result<u64> {
    let path = directory.join(TURNS);
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(false);
    // In a directory that others write to, a link could lead anywhere.
    options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
    let mut file = options.open(path)?;
    // Freed with the file.
    flock(&file, FlockOperation::LockExclusive)?;
    let mut text = String::new();
    let read = Read::by_ref(&mut file)
        .take(MOST_TURNS)
        .read_to_string(&mut text);
    if read.is_err_and(|error| error.kind() != io::ErrorKind::InvalidData) {
        return Err(io::Error::other("the turns cannot be read"));
    }
    let key = node.map_or_else(|| "any".to_owned(), |node| node.to_string());
    let mut turn = 0_u64;
    let mut lines = String::new();
    for (of, count) in text.lines().filter_map(|line| line.split_once(' ')) {
        if of == key {
            turn = count.parse().unwrap_or(0);
        } else {
            lines.push_str(of);
            lines.push(' ');
            lines.push_str(count);
            lines.push('\n');
        }
    }
    let next = turn.wrapping_add(1).to_string();
    lines.extend([key.as_str(), " ", &next, "\n"]);
    file.rewind()?;
    file.set_len(0)?;
    file.write_all(lines.as_bytes())?;
    Ok(turn)
}

#[cfg(test)]
mod tests;
