//! The program that hands packets of an interface to sockets: IPv4 packets to some UDP ports, whatever the
//! queue on which they came; everything else goes to the kernel as if there were no program.
//!
//! In: an interface, ports, sockets with their queues. Out: an [`XdpProgram`]; when it is dropped, or the
//! process ends, the interface has no program any more. Not here: packets (`socket`).

#![expect(unsafe_code, reason = "bpf(2), which has no wrapper")]

use std::io;
use std::ops::RangeInclusive;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use super::{XdpMode, XdpSocket};
use crate::error::SysError;
use crate::interface;

/// Commands of bpf(2).
const MAP_CREATE: libc::c_int = 0;
const MAP_UPDATE: libc::c_int = 2;
const PROGRAM_LOAD: libc::c_int = 5;
const LINK_CREATE: libc::c_int = 28;

/// A map of sockets by queue, a program of this kind, and where it is attached.
const MAP_OF_SOCKETS: u32 = 17;
const PROGRAM_OF_XDP: u32 = 6;
const ATTACHED_AT_XDP: u32 = 37;

/// Mode in which a program is attached to socket buffers.
const GENERIC_MODE: u32 = 1 << 1;
/// Mode in which a program is attached in the driver.
const NATIVE_MODE: u32 = 1 << 2;

/// Queues that have a place in the map.
pub(super) const MOST_QUEUES: u32 = 256;

const RIGHTS: &str = "it takes root, or CAP_NET_ADMIN and CAP_BPF";

/// One command's arguments.
///
/// # Safety
/// Made of numbers without padding, in the kernel's layout; addresses in it are of memory that lives
/// through the call and is as long as the kernel expects.
unsafe trait BpfArguments {}

#[repr(C)]
struct MapArguments {
    kind: u32,
    key_bytes: u32,
    value_bytes: u32,
    entries: u32,
    flags: u32,
}

#[repr(C)]
struct UpdateArguments {
    map: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
struct ProgramArguments {
    kind: u32,
    instructions: u32,
    code: u64,
    license: u64,
    log_level: u32,
    log_bytes: u32,
    log: u64,
    kernel: u32,
    flags: u32,
    name: [u8; 16],
    interface: u32,
    attached_at: u32,
}

#[repr(C)]
struct LinkArguments {
    program: u32,
    interface: u32,
    attached_at: u32,
    flags: u32,
}

// SAFETY: the kernel's layout, without addresses.
unsafe impl BpfArguments for MapArguments {}
// SAFETY: the kernel's layout; made in `serve` alone, with addresses of two numbers of 4 bytes there.
unsafe impl BpfArguments for UpdateArguments {}
// SAFETY: the kernel's layout; made in `load` alone, with addresses of the code and text there.
unsafe impl BpfArguments for ProgramArguments {}
// SAFETY: the kernel's layout, without addresses.
unsafe impl BpfArguments for LinkArguments {}

fn bpf<A: BpfArguments>(command: libc::c_int, arguments: &A) -> io::Result<RawFd> {
    // SAFETY: the arguments are as long as is said, and what they point to lives, by their trait.
    let result = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command,
            std::ptr::from_ref(arguments),
            size_of::<A>(),
        )
    };
    RawFd::try_from(result)
        .ok()
        .filter(|fd| *fd >= 0)
        .ok_or_else(io::Error::last_os_error)
}

/// A command whose answer is a descriptor.
fn bpf_object<A: BpfArguments>(command: libc::c_int, arguments: &A) -> io::Result<OwnedFd> {
    let fd = bpf(command, arguments)?;
    // SAFETY: the kernel has just opened it for this process, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// One instruction, or half of a long one.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Instruction {
    code: u8,
    /// Destination in the low four bits, source in the high ones.
    registers: u8,
    offset: i16,
    value: i32,
}

const fn instruction(code: u8, to: u8, from: u8, offset: i16, value: i32) -> Instruction {
    let registers = if cfg!(target_endian = "little") {
        to | from << 4
    } else {
        from | to << 4
    };
    Instruction {
        code,
        registers,
        offset,
        value,
    }
}

/// Codes of instructions: loads of 1, 2 and 4 bytes, moves, sums, jumps, calls.
const LOAD_8: u8 = 0x71;
const LOAD_16: u8 = 0x69;
const LOAD_32: u8 = 0x61;
const MOVE: u8 = 0xbf;
const MOVE_VALUE: u8 = 0xb7;
const ADD_VALUE: u8 = 0x07;
const LOAD_MAP: u8 = 0x18;
const NETWORK_ORDER: u8 = 0xdc;
const JUMP_IF_MORE: u8 = 0x2d;
const JUMP_IF_VALUE_LESS: u8 = 0xa5;
const JUMP_IF_MORE_THAN_VALUE: u8 = 0x25;
const JUMP_IF_NOT_VALUE: u8 = 0x55;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;

/// `bpf_redirect_map`, and what says that the kernel takes the packet.
const REDIRECT_MAP: i32 = 51;
const PASS: i32 = 2;

/// The length of the headers that are looked at: Ethernet, IPv4 without options, UDP.
const HEADERS: i32 = 42;

/// The program: what is an IPv4 packet to one of the ports goes to the socket of its queue.
fn code_of(map: RawFd, ports: &RangeInclusive<u16>) -> [Instruction; 22] {
    let (first, last) = (i32::from(*ports.start()), i32::from(*ports.end()));
    // From an instruction to the last but one of all, which passes the packet on.
    let out = |at: i16| 23 - at - 1;
    [
        // r6 = packet's description; r2 = its start, r3 = its end.
        instruction(MOVE, 6, 1, 0, 0),
        instruction(LOAD_32, 2, 6, 0, 0),
        instruction(LOAD_32, 3, 6, 4, 0),
        instruction(MOVE, 4, 2, 0, 0),
        instruction(ADD_VALUE, 4, 0, 0, HEADERS),
        instruction(JUMP_IF_MORE, 4, 3, out(5), 0),
        // IPv4 without options, UDP.
        instruction(LOAD_16, 5, 2, 12, 0),
        instruction(NETWORK_ORDER, 5, 0, 0, 16),
        instruction(JUMP_IF_NOT_VALUE, 5, 0, out(8), 0x0800),
        instruction(LOAD_8, 5, 2, 14, 0),
        instruction(JUMP_IF_NOT_VALUE, 5, 0, out(10), 0x45),
        instruction(LOAD_8, 5, 2, 23, 0),
        instruction(JUMP_IF_NOT_VALUE, 5, 0, out(12), 17),
        // r5 = the port that it goes to.
        instruction(LOAD_16, 5, 2, 36, 0),
        instruction(NETWORK_ORDER, 5, 0, 0, 16),
        instruction(JUMP_IF_VALUE_LESS, 5, 0, out(15), first),
        instruction(JUMP_IF_MORE_THAN_VALUE, 5, 0, out(16), last),
        // r1 = map, r2 = queue; without a socket there the packet is passed on.
        instruction(LOAD_32, 2, 6, 16, 0),
        instruction(LOAD_MAP, 1, 1, 0, map),
        instruction(0, 0, 0, 0, 0),
        instruction(MOVE_VALUE, 3, 0, 0, PASS),
        instruction(CALL, 0, 0, 0, REDIRECT_MAP),
    ]
}

/// Last instructions of every path through the program.
fn ending() -> [Instruction; 3] {
    [
        instruction(EXIT, 0, 0, 0, 0),
        instruction(MOVE_VALUE, 0, 0, 0, PASS),
        instruction(EXIT, 0, 0, 0, 0),
    ]
}

/// A program at an interface.
#[derive(Debug)]
pub struct XdpProgram {
    map: OwnedFd,
    _link: OwnedFd,
}

impl XdpProgram {
    /// Attaches the program to an interface; packets to these UDP ports go to the sockets that are
    /// [served](Self::serve).
    ///
    /// # Errors
    /// [`SysError::Refused`] without the right, without such an interface, where another program is
    /// attached, or where the driver cannot have one.
    pub fn attach(
        interface: &str,
        mode: XdpMode,
        ports: &RangeInclusive<u16>,
    ) -> Result<Self, SysError> {
        let index = interface::find(interface)?.index;
        let map = MapArguments {
            kind: MAP_OF_SOCKETS,
            key_bytes: 4,
            value_bytes: 4,
            entries: MOST_QUEUES,
            flags: 0,
        };
        let refused = |what: String, remedy| {
            move |source| SysError::Refused {
                what,
                source,
                remedy: Some(remedy),
            }
        };
        let map = bpf_object(MAP_CREATE, &map)
            .map_err(refused("make a map of AF_XDP sockets".to_owned(), RIGHTS))?;
        let program =
            load(&map, ports).map_err(refused("load a program for packets".to_owned(), RIGHTS))?;
        let arguments = LinkArguments {
            program: number(&program),
            interface: index,
            attached_at: ATTACHED_AT_XDP,
            flags: match mode {
                XdpMode::Default => 0,
                XdpMode::Generic => GENERIC_MODE,
                XdpMode::Native | XdpMode::ZeroCopy => NATIVE_MODE,
            },
        };
        let link = bpf_object(LINK_CREATE, &arguments).map_err(|source| {
            let remedy = match source.raw_os_error() {
                Some(libc::EBUSY | libc::EEXIST) => {
                    "another program is attached: `ip link set dev INTERFACE xdp off` takes it away"
                }
                Some(libc::EOPNOTSUPP) => "the driver has no XDP of its own: mode=skb does without",
                Some(libc::ERANGE | libc::EINVAL) => {
                    "the driver takes programs up to some MTU: lower it, or mode=skb"
                }
                _ => RIGHTS,
            };
            refused(format!("attach a program to {interface}"), remedy)(source)
        })?;
        Ok(Self { map, _link: link })
    }

    /// Lets the packets of a socket's queue go to the socket.
    ///
    /// # Errors
    /// [`SysError::Refused`] where the kernel does not have it.
    pub fn serve(&self, socket: &XdpSocket) -> Result<(), SysError> {
        let (queue, fd) = (socket.queue(), number(socket));
        let update = UpdateArguments {
            map: number(&self.map),
            padding: 0,
            key: address(&queue),
            value: address(&fd),
            flags: 0,
        };
        bpf(MAP_UPDATE, &update).map_err(|source| SysError::Refused {
            what: format!("let packets of queue {queue} go to a socket"),
            source,
            remedy: None,
        })?;
        Ok(())
    }
}

fn load(map: &OwnedFd, ports: &RangeInclusive<u16>) -> io::Result<OwnedFd> {
    let code = code_of(map.as_raw_fd(), ports);
    let code: Vec<Instruction> = code.into_iter().chain(ending()).collect();
    let license = c"Dual MIT/GPL";
    bpf_object(
        PROGRAM_LOAD,
        &ProgramArguments {
            kind: PROGRAM_OF_XDP,
            instructions: u32::try_from(code.len()).unwrap_or(u32::MAX),
            code: address(&code[0]),
            license: address(&license.to_bytes()[0]),
            log_level: 0,
            log_bytes: 0,
            log: 0,
            kernel: 0,
            flags: 0,
            name: *b"weir_packets\0\0\0\0",
            interface: 0,
            attached_at: ATTACHED_AT_XDP,
        },
    )
}

fn number(fd: &impl AsRawFd) -> u32 {
    u32::try_from(fd.as_raw_fd()).unwrap_or(u32::MAX)
}

fn address<T>(of: &T) -> u64 {
    std::ptr::from_ref(of).expose_provenance() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_jump_of_the_program_leads_to_the_instruction_that_passes_the_packet_on() {
        let code: Vec<Instruction> = code_of(3, &(10010..=10025))
            .into_iter()
            .chain(ending())
            .collect();
        let jumps = [
            JUMP_IF_MORE,
            JUMP_IF_NOT_VALUE,
            JUMP_IF_VALUE_LESS,
            JUMP_IF_MORE_THAN_VALUE,
        ];
        let mut seen = 0;
        for (at, one) in code
            .iter()
            .enumerate()
            .filter(|(_, one)| jumps.contains(&one.code))
        {
            let target = &code[at + 1 + usize::try_from(one.offset).unwrap()];
            assert_eq!(
                (target.code, target.value),
                (MOVE_VALUE, PASS),
                "jump at {at}"
            );
            assert_eq!(target.registers, 0);
            seen += 1;
        }
        assert_eq!(seen, 6);
        assert_eq!(size_of::<Instruction>(), 8);
    }

    #[test]
    fn arguments_have_the_layout_of_the_kernel() {
        assert_eq!(size_of::<MapArguments>(), 20);
        assert_eq!(size_of::<UpdateArguments>(), 32);
        assert_eq!(std::mem::offset_of!(ProgramArguments, name), 48);
        assert_eq!(size_of::<ProgramArguments>(), 72);
        assert_eq!(size_of::<LinkArguments>(), 16);
    }
}
