//! Network cards: alone, at an end of a wire to another guest, with RDMA by the kernel's `rdma_rxe`.
//!
//! In: `net`, `rxe`. Out: an interface with an address, whose name is the device's node; for RDMA the library and the
//! driver that programs open.

use std::path::PathBuf;

use anyhow::{Result, ensure};

use super::{DeviceKind, Spec, Wiring};

pub(super) const NET: DeviceKind = DeviceKind {
    name: "net",
    form: "net[:wire=NAME,end=0,mtu=1500]",
    what: "virtio network card, 10.77.0.1 (end 1: 10.77.0.2); wire: to the guest with the other end",
    wire: |wiring, spec| card(wiring, spec).map(|_| ()),
};

pub(super) const RXE: DeviceKind = DeviceKind {
    name: "rxe",
    form: "rxe[:wire=NAME,end=0,mtu=1500]",
    what: "the same with an RDMA device, rxe0 and so on (needs a kernel with rdma_rxe)",
    wire: |wiring, spec| {
        let number = card(wiring, spec)?;
        for module in ["crc32_generic", "rdma_rxe", "rdma_ucm"] {
            wiring.module(module);
        }
        if number == 0 {
            wiring.files.extend(LIBRARIES);
            wiring.programs.push(("rdma", "iproute2"));
        }
        wiring.setup.push(format!("lab_rxe {number}"));
        Ok(())
    },
};

/// Adds a card; its number.
fn card(wiring: &mut Wiring, spec: &Spec) -> Result<usize> {
    spec.only(&["wire", "end", "mtu"])?;
    let (end, mtu) = (spec.number("end", 0)?, spec.number("mtu", 1500)?);
    ensure!(end < 2, "device `{spec}`: a wire has the ends 0 and 1");
    let number = wiring.next("net");
    let net = match spec.value("wire") {
        None => format!("hubport,id=net{number},hubid={number}"),
        Some(wire) => {
            let at = |end: u64| socket(wire, end).display().to_string().replace(',', ",,");
            format!(
                "dgram,id=net{number},local.type=unix,local.path={},remote.type=unix,remote.path={}",
                at(end),
                at(1 - end)
            )
        }
    };
    wiring.qemu("-netdev", net);
    let address = format!("52:54:00:77:{number:02x}:{:02x}", end + 1);
    let card = format!("virtio-net-pci,netdev=net{number},mac={address}");
    wiring.qemu("-device", card);
    wiring.module("virtio_pci");
    wiring.module("virtio_net");
    let own = format!("10.77.{number}.{}/24", end + 1);
    wiring
        .setup
        .push(format!("lab_net {number} {address} {own} {mtu}"));
    wiring.node(format!("echo eth{number}"));
    Ok(number)
}

/// The socket of an end: a path of a socket has at most 107 bytes, which those of a tree may exceed.
fn socket(wire: &str, end: u64) -> PathBuf {
    std::env::temp_dir().join(format!("weir-wire-{wire}.{end}"))
}

/// Files by which programs of a guest reach `rdma_rxe`, with their packages.
const LIBRARIES: [(&str, &str); 5] = [
    ("/etc/libibverbs.d/rxe.driver", "ibverbs-providers"),
    ("libibverbs/librxe-rdmav", "ibverbs-providers"),
    ("libibverbs.so.1", "libibverbs1"),
    ("libnl-3.so.200", "libnl-3-200"),
    ("libnl-route-3.so.200", "libnl-route-3-200"),
];
