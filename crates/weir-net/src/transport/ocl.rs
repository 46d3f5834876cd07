//! Devices of OpenCL: a message goes from the sender's device to its host, over the host to the
//! partner, and there from the host to the device (spec: effective bandwidth, section 4.3).
//!
//! Every replication has a buffer to send from and another to receive into on its rank's device.
//! One exchange is a copy from the device, an exchange between the hosts, and a copy to the
//! device, each waited for. Hosts exchange over shared memory, or over MPI under a launcher. What
//! is filled, blanked and checked are the devices' buffers: in between the host's own hold bytes
//! that are all wrong, so that a copy that never happened is seen.

mod transfers;

use std::rc::Rc;

use weir_schema::catalogue::{SettingInfo, SettingKind};
use weir_schema::{MessageSize, Method, Transfer};
use weir_sys::Availability;
use weir_world::Launcher;
use weir_world::mpi::{MpiWorld, MpichAbi, OmpiAbi};

use super::mpi::MpiCalls;
use super::shm::Shm;
use super::{Asked, Facts, PLAIN, RankDevice, Setup, Transport, TransportInfo};
use crate::error::{Halt, NetError};
use crate::exchange::{ExchangeContext, ExchangeOutcome, drive};
use crate::opencl::{self, CardRequest, ChosenDevice, DeviceMemory, NoDevice, OpenDevice};
use weir_world::RankComm;
use weir_world::Watchdog;

const NAME: &str = "ocl-pcie";

pub(super) const INFO: TransportInfo = TransportInfo {
    name: NAME,
    peer: Some("PCIE"),
    summary: "device, host, exchange, host, device",
    settings: SETTINGS,
    samples: false,
    transfers: &[
        Transfer::HostToDevice,
        Transfer::KernelLaunch,
        Transfer::DeviceToHost,
    ],
    availability,
    check,
    drive: drive_over,
    ..PLAIN
};

const MANY: i64 = u32::MAX as i64;

const SETTINGS: &[SettingInfo] = &[
    SettingInfo {
        name: "platform_name",
        value: SettingKind::Text,
        default: "any",
        help: "exact name of the platform; goes before its index",
    },
    SettingInfo {
        name: "platform",
        value: SettingKind::Number { min: 0, max: MANY },
        default: "the first that has a device",
        help: "index of the platform",
    },
    SettingInfo {
        name: "device_type",
        value: SettingKind::Word(opencl::DEVICE_TYPES),
        default: "the first kind that there is, in this order",
        help: "kind of devices",
    },
    SettingInfo {
        name: "device",
        value: SettingKind::Number { min: 0, max: MANY },
        default: "the rank's number modulo the devices",
        help: "index of the device, for all ranks",
    },
    SettingInfo {
        name: "device_map",
        value: SettingKind::Word(opencl::DEVICE_MAPS),
        default: "local",
        help: "the rank's number on its machine, or of all ranks",
    },
    SettingInfo {
        name: "kernel_file",
        value: SettingKind::Text,
        default: "a kernel of weir's own",
        help: "source or binary of the kernel whose launch is timed",
    },
    SettingInfo {
        name: "batch",
        value: SettingKind::Bool,
        default: "false",
        help: "transfers are all begun, then waited for together",
    },
];

fn availability() -> Availability {
    opencl::availability()
}

/// Errors that only this machine shows: a platform or device that it has not, a file that cannot be
/// read.
fn check(asked: &Asked<'_>) -> Result<(), NetError> {
    if let Some(path) = asked.engine.text("kernel_file") {
        transfers::open(path).map_err(NetError::Plan)?;
    }
    let chosen = ChosenDevice::new(&CardRequest::of(asked.engine), 0);
    chosen.map(|_| ()).map_err(|why| match why {
        NoDevice::Wrong(why) => asked.wrong(&why.to_string()),
        NoDevice::Missing { what, remedy } => NetError::Missing {
            transport: NAME.to_owned(),
            what,
            remedy,
        },
        NoDevice::Failed(error) => NetError::Missing {
            transport: NAME.to_owned(),
            what: format!("a device that answers ({error})"),
            remedy: "look at its driver".to_owned(),
        },
    })
}

/// Over what the ranks have in common, or between host and device alone.
fn drive_over(
    context: &ExchangeContext<'_>,
    info: &TransportInfo,
    outcome: &mut ExchangeOutcome,
) -> Result<(), NetError> {
    if !context.workload.transfers.is_empty() {
        return transfers::drive_each(context, info, outcome);
    }
    match context.comm.mpi() {
        Some(MpiWorld::OpenMpi(_)) => drive::<OverHost<MpiCalls<OmpiAbi>>>(context, info, outcome),
        Some(MpiWorld::Mpich(_)) => drive::<OverHost<MpiCalls<MpichAbi>>>(context, info, outcome),
        None => drive::<OverHost<Shm>>(context, info, outcome),
    }
}

/// A rank's device, and what is known of it.
struct Own {
    card: Rc<OpenDevice>,
    facts: RankDevice,
}

impl Own {
    fn open(setup: &Setup<'_>) -> Result<Self, Halt> {
        let request = CardRequest::of(setup.engine);
        let number = if request.device.counts_all_ranks() {
            setup.comm.rank()
        } else {
            number_here(setup.comm, setup.watchdog)?
        };
        let chosen = ChosenDevice::new(&request, number).map_err(|why| match why {
            NoDevice::Wrong(why) => Halt::Garbled(why.to_string()),
            NoDevice::Missing { what, remedy } => {
                Halt::Garbled(format!("this machine lacks {what}; {remedy}"))
            }
            NoDevice::Failed(error) => error.into(),
        })?;
        // A call of OpenCL lasts as long as the device wants.
        setup.watchdog.on_hang_unless_set(leave);
        let card = Rc::new(chosen.open()?);
        Ok(Self {
            card,
            facts: RankDevice {
                index: chosen.index,
                name: chosen.name,
                platform: chosen.platform,
                others: chosen.others,
            },
        })
    }
}

/// Ends the process: the rank's thread never comes back.
#[expect(clippy::exit, reason = "there is no way back to main")]
fn leave(code: u8) {
    std::process::exit(code.into());
}

/// A rank's number among those of its machine. Without a launcher all are on one; a launcher
/// mostly says it; else the names of the machines do.
fn number_here(comm: &RankComm<'_>, watchdog: &Watchdog) -> Result<u32, Halt> {
    if comm.mpi().is_none() {
        return Ok(comm.rank());
    }
    let local_rank = Launcher::of_this_process().and_then(|launcher| launcher.local_rank);
    // All of them, or none: a launcher tells every process.
    if let Some(number) = local_rank {
        return Ok(number);
    }
    let name = rustix::system::uname();
    let name = name.nodename().to_bytes();
    for higher in comm.rank() + 1..comm.size() {
        comm.send(higher, name, watchdog)?;
    }
    let mut number = 0;
    for lower in 0..comm.rank() {
        number += u32::from(comm.receive(lower, watchdog)? == name);
    }
    Ok(number)
}

/// All bytes wrong.
fn spoil(bytes: &mut [u8]) {
    for byte in bytes {
        *byte = !*byte;
    }
}

/// A replication's memory on the device.
struct Channel {
    sends: DeviceMemory,
    receives: DeviceMemory,
}

/// One rank's end: its device, and the hosts' exchange between two copies.
struct OverHost<T> {
    // Before the card, whose queue they are used with.
    channels: Vec<Channel>,
    own: Own,
    host: T,
}

impl<T: Transport> Transport for OverHost<T> {
    fn open(setup: &Setup<'_>) -> Result<Self, Halt> {
        // The hosts meet first: whoever has no device then leaves, and the others learn of it.
        let host = T::open(setup)?;
        Ok(Self {
            channels: Vec::new(),
            own: Own::open(setup)?,
            host,
        })
    }

    fn prepare(
        &mut self,
        size: MessageSize,
        method: Method,
        setup: &Setup<'_>,
    ) -> Result<(), Halt> {
        self.host.prepare(size, method, setup)?;
        self.channels.clear();
        for replication in 0..setup.partners.len() {
            let len = self.host.outgoing(replication).len();
            self.channels.push(Channel {
                sends: self.own.card.memory(len)?,
                receives: self.own.card.memory(len)?,
            });
        }
        Ok(())
    }

    fn outgoing(&mut self, replication: usize) -> &mut [u8] {
        self.host.outgoing(replication)
    }

    fn incoming(&mut self, replication: usize) -> &mut [u8] {
        self.host.incoming(replication)
    }

    fn filled(&mut self) -> Result<(), Halt> {
        for (replication, channel) in self.channels.iter().enumerate() {
            let outgoing = self.host.outgoing(replication);
            self.own.card.write(outgoing, &channel.sends)?;
            spoil(outgoing);
            let incoming = self.host.incoming(replication);
            self.own.card.write(incoming, &channel.receives)?;
        }
        Ok(())
    }

    fn rewind(&mut self, setup: &Setup<'_>) -> Result<(), Halt> {
        self.host.rewind(setup)
    }

    fn barrier(&mut self, setup: &Setup<'_>) -> Result<(), Halt> {
        self.host.barrier(setup)
    }

    #[inline]
    fn exchange(&mut self, replication: usize, watchdog: &Watchdog) -> Result<(), Halt> {
        let (card, channel) = (&self.own.card, &self.channels[replication]);
        card.read(&channel.sends, self.host.outgoing(replication))?;
        self.host.exchange(replication, watchdog)?;
        card.write(self.host.incoming(replication), &channel.receives)?;
        Ok(())
    }

    fn arrived(&mut self) -> Result<(), Halt> {
        for (replication, channel) in self.channels.iter().enumerate() {
            let incoming = self.host.incoming(replication);
            spoil(incoming);
            self.own.card.read(&channel.receives, incoming)?;
        }
        Ok(())
    }

    fn facts(&self) -> Facts {
        Facts {
            device: Some(self.own.facts.clone()),
            ..self.host.facts()
        }
    }

    fn finish(self) -> Result<(), Halt> {
        self.host.finish()
    }
}
