//! Which network interface a process uses: the one asked for, else one near its CPUs.
//!
//! In: the interfaces of the machine, its nodes, the CPUs of this process, what the environment asks
//! for, and whose turn it is among the processes of the machine. Out: an [`InterfaceChoice`], with
//! what the user should know. Choosing is a pure function; [`next_turn`] counts in a file. Not here:
//! which interfaces a provider supports, and the addresses of an interface (`transport::interface`).

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::Path;
use std::sync::OnceLock;

use rustix::fs::{FlockOperation, flock};
use weir_sys::device::{NetworkInterface, network_interfaces};
use weir_sys::topology::Topology;
use weir_sys::{CpuList, Tree};

use super::{DerCode, RpcError};

/// The variables that name an interface, the one that wins first.
pub const INTERFACE_VARIABLES: [&str; 2] = ["D_INTERFACE", "OFI_INTERFACE"];
/// The variables that name a domain of the provider, the one that wins first.
pub const DOMAIN_VARIABLES: [&str; 2] = ["D_DOMAIN", "OFI_DOMAIN"];
/// The file of the group's directory that counts the turns.
const TURNS: &str = "weir-interface-turns";
/// So much of it is read: a machine has few nodes.
const MOST_TURNS: u64 = 64 << 10;

/// What is known before an interface is chosen.
#[derive(Clone, Copy, Debug)]
pub struct InterfaceFacts<'a> {
    /// All interfaces of the machine.
    pub interfaces: &'a [NetworkInterface],
    /// The machine's CPUs and nodes.
    pub topology: &'a Topology,
    /// The CPUs that this process may use.
    pub cpus: &'a CpuList,
}

/// The interface that a process uses, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceChoice {
    /// Its name.
    pub name: String,
    /// The node that it counts as attached to.
    pub node: u32,
    /// The domain of the provider that was asked for.
    pub domain: Option<String>,
    /// The only node of the process's CPUs; `None` where they are of several.
    pub process_node: Option<u32>,
    /// The process's CPUs.
    pub process_cpus: CpuList,
    /// Variables that had an effect.
    pub variables: Vec<&'static str>,
    /// What to say on standard error.
    pub note: Option<String>,
}

/// The interfaces of this machine, looked for once.
pub fn interfaces_of_this_machine() -> &'static [NetworkInterface] {
    static SCANNED: OnceLock<Vec<NetworkInterface>> = OnceLock::new();
    SCANNED.get_or_init(|| network_interfaces(&Tree::real()))
}

/// Chooses among the interfaces that `supports` says the provider can use. `variable` reads the
/// environment; `turn` says which turn a process of a node has among those that chose there before
/// (`None`: among those of no node in particular), and is asked only where there are several
/// to choose from.
///
/// # Errors
/// The environment names an interface that there is not: [`DerCode::NotThere`], with those that
/// there are.
pub fn choose_interface(
    facts: &InterfaceFacts<'_>,
    supports: impl Fn(&NetworkInterface) -> bool,
    variable: impl Fn(&str) -> Option<String>,
    turn: impl FnOnce(Option<u32>) -> u64,
) -> Result<InterfaceChoice, RpcError> {
    let set = |names: [&'static str; 2]| {
        let value = |name| Some((name, variable(name).filter(|value| !value.is_empty())?));
        names.into_iter().find_map(value)
    };
    let domain = set(DOMAIN_VARIABLES);
    let process_node = node_of(facts.topology, facts.cpus);
    let choice = |interface: Option<&NetworkInterface>, note| InterfaceChoice {
        name: interface
            .map_or("lo", |interface| &interface.name)
            .to_owned(),
        node: interface.map_or(0, node_of_interface),
        domain: domain.as_ref().map(|(_, value)| value.clone()),
        process_node,
        process_cpus: facts.cpus.clone(),
        variables: domain.iter().map(|(name, _)| *name).collect(),
        note,
    };
    if let Some((variable, name)) = set(INTERFACE_VARIABLES) {
        let named = facts.interfaces.iter().find(|known| known.name == name);
        let named = named.ok_or_else(|| no_such_interface(facts, variable, &name))?;
        let mut chosen = choice(Some(named), None);
        chosen.variables.insert(0, variable);
        return Ok(chosen);
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

fn no_such_interface(facts: &InterfaceFacts<'_>, variable: &str, name: &str) -> RpcError {
    let known: Vec<_> = facts.interfaces.iter().map(|i| i.name.as_str()).collect();
    RpcError::new(
        DerCode::NotThere,
        format!(
            "{variable}={name}: there is no such network interface (there are {})",
            known.join(", ")
        ),
    )
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
