//! `weir topo`: which CPUs, memory, disks and network interfaces belong together.
//!
//! In: the arguments after `topo`. Out: a group for each memory node as text, or JSON; the exit code.
//! Nothing is changed. Not here: reading `/sys` (`weir-sys`), and choosing one of these interfaces
//! (`weir-rpc`).

mod text;

use serde_json::{Value, json};
use weir_doors::topo::{Action, ShowTopology, read};
use weir_doors::{LACKS, Refusal};
use weir_sys::Tree;
use weir_sys::device::{
    AttachedDisk, Attachment, NetworkInterface, attached_disks, network_interfaces,
};
use weir_sys::topology::Topology;

use crate::{Outcome, environment, printed};

/// A machine with its devices.
struct MachineMap {
    topology: Topology,
    disks: Vec<AttachedDisk>,
    networks: Vec<NetworkInterface>,
}

impl MachineMap {
    fn read(tree: &Tree) -> Self {
        Self {
            topology: Topology::read(tree),
            disks: attached_disks(tree),
            networks: network_interfaces(tree),
        }
    }
}

/// Carries out the arguments after `topo`.
pub(crate) fn run(words: &[String]) -> Outcome {
    match read(words)? {
        Action::Print(text) => Ok(printed(&text)),
        Action::Show(show) => show_topology(&show),
    }
}

fn show_topology(show: &ShowTopology) -> Outcome {
    let tree = show.root.as_ref().map_or_else(Tree::real, Tree::at);
    let map = MachineMap::read(&tree);
    if map.topology.cpus.is_empty() {
        let root = show.root.as_deref().unwrap_or("/");
        return Err(Refusal::new(
            LACKS,
            format!("error: {root}: no CPUs in sys/devices/system/cpu below it"),
        ));
    }
    let columns = environment::terminal(&std::io::stdout()).columns;
    Ok(printed(&if show.json {
        json(&map).to_string() + "\n"
    } else {
        text::text(&map, columns)
    }))
}

/// The map as one JSON document.
fn json(map: &MachineMap) -> Value {
    let cpus = map.topology.cpus.iter().map(|cpu| {
        json!({
            "cpu": cpu.id,
            "package": cpu.package,
            "core": cpu.core,
            "siblings": cpu.siblings.as_slice(),
            "numa_node": cpu.node,
        })
    });
    let nodes = map.topology.nodes.iter().map(|node| {
        json!({
            "numa_node": node.id,
            "cpus": node.cpus.as_slice(),
            "memory_bytes": node.memory.map(|bytes| bytes.0),
            "free_bytes": node.free.map(|bytes| bytes.0),
            "distances": node.distances,
        })
    });
    let caches = map.topology.caches.iter().map(|cache| {
        json!({
            "level": cache.level,
            "kind": cache.kind,
            "bytes": cache.size.0,
            "cpus": cache.cpus.as_slice(),
        })
    });
    json!({
        "schema": "weir.topo.v1",
        "cpus": cpus.collect::<Vec<_>>(),
        "caches": caches.collect::<Vec<_>>(),
        "nodes": nodes.collect::<Vec<_>>(),
        "disks": map.disks.iter().map(disk_json).collect::<Vec<_>>(),
        "networks": map.networks.iter().map(network_json).collect::<Vec<_>>(),
    })
}

fn disk_json(disk: &AttachedDisk) -> Value {
    let facts = &disk.facts;
    let mut value = attachment_json(&disk.attachment);
    value["name"] = json!(facts.name);
    value["size_bytes"] = json!(facts.size.map(|bytes| bytes.0));
    value["model"] = json!(facts.model);
    value["pcie_speed"] = json!(facts.pcie.as_ref().map(|link| &link.speed));
    value["pcie_width"] = json!(facts.pcie.as_ref().and_then(|link| link.width));
    value
}

fn network_json(network: &NetworkInterface) -> Value {
    let mut value = attachment_json(&network.attachment);
    value["name"] = json!(network.name);
    value["up"] = json!(network.is_up);
    value["speed_mbit_per_s"] = json!(network.speed_mbit_per_s);
    value["mtu_bytes"] = json!(network.mtu);
    value
}

fn attachment_json(attachment: &Attachment) -> Value {
    json!({
        "name": null,
        "numa_node": attachment.numa_node,
        "driver": attachment.driver,
        "bus_address": attachment.bus_address,
        "virtual": attachment.is_virtual,
    })
}
