//! A socket of `AF_XDP` at a queue of an interface, with its own memory for frames.
//!
//! In: frames to be sent. Out: frames that came. Frames are copied between the caller's buffers and
//! chunks of the socket's memory, which is half for sending and half for receiving: a chunk is the
//! kernel's from when it is put into a ring until it comes back by the other. Not here: which packets come
//! (`program`).

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::sockopt::{
    set_xdp_rx_ring_size, set_xdp_tx_ring_size, set_xdp_umem_completion_ring_size,
    set_xdp_umem_fill_ring_size, set_xdp_umem_reg, xdp_mmap_offsets, xdp_statistics,
};
use rustix::net::xdp::{
    SocketAddrXdp, SocketAddrXdpFlags, XdpRingOffset, XdpUmemReg, XdpUmemRegFlags,
};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, recv, send, socket_with,
};

use super::XdpMode;
use super::program::MOST_QUEUES;
use super::ring::{KernelConsumer, KernelProducer, RingOffsets, mapped_bytes};
use crate::error::SysError;
use crate::interface;
use crate::shared_memory::SharedMemory;

/// Bytes of a chunk: the kernel keeps 256 of them for itself, the rest holds a frame.
const CHUNK: usize = 4096;
/// The longest frame.
const LONGEST: usize = CHUNK - 256;

/// Number of tries for a queue that a closed socket still has.
const MOST_TRIES: u32 = 100;
/// Interval between two of these tries.
const BETWEEN_TRIES: Duration = Duration::from_millis(10);

/// Offset at which the kernel's receive ring is mapped.
const RX_AT: u64 = 0;
const TX_AT: u64 = 0x8000_0000;
const FILL_AT: u64 = 0x1_0000_0000;
const COMPLETION_AT: u64 = 0x1_8000_0000;

/// A frame: its offset in the memory; its length, and options of which there are none.
type Descriptor = [AtomicU64; 2];

/// Requested properties of a socket.
#[derive(Clone, Copy, Debug)]
pub struct XdpSocketSpec<'a> {
    /// The interface's name in this network namespace.
    pub interface: &'a str,
    /// Number of its queue, for both directions.
    pub queue: u32,
    /// Frames that are on their way at once, each way: a power of two.
    pub slots: u32,
    /// Mode in which packets are moved.
    pub mode: XdpMode,
}

/// A socket. It receives nothing until a program [serves](super::XdpProgram::serve) it.
#[derive(Debug)]
pub struct XdpSocket {
    socket: OwnedFd,
    memory: Arc<SharedMemory>,
    rx: KernelConsumer<Descriptor>,
    fill: KernelProducer<AtomicU64>,
    tx: KernelProducer<Descriptor>,
    completion: KernelConsumer<AtomicU64>,
    /// Chunks for sending that the kernel does not have.
    free: Vec<u64>,
    queue: u32,
    slots: u32,
}

impl XdpSocket {
    /// Opens a socket at a queue. All its memory is present when it returns.
    ///
    /// # Errors
    /// [`SysError::Refused`] without the right, without such an interface or queue, where the queue has
    /// another socket or the driver cannot do what the mode asks for; [`SysError::Map`] without memory;
    /// [`SysError::Invalid`] for slots that are no power of two.
    pub fn open(spec: &XdpSocketSpec<'_>) -> Result<Self, SysError> {
        let slots = spec.slots;
        if !slots.is_power_of_two() || spec.queue >= MOST_QUEUES {
            return Err(SysError::Invalid(format!(
                "an AF_XDP socket of {slots} slots at queue {}: slots are a power of two, queues below \
                 {MOST_QUEUES}",
                spec.queue
            )));
        }
        let interface = interface::find(spec.interface)?;
        if !interface.is_up {
            return Err(bind_refused(spec, Errno::NETDOWN));
        }
        let socket = socket_with(
            AddressFamily::XDP,
            SocketType::RAW,
            SocketFlags::CLOEXEC,
            None,
        )
        .map_err(|error| {
            let remedy = match error {
                Errno::AFNOSUPPORT => "the kernel is built without CONFIG_XDP_SOCKETS",
                _ => "it takes root, or CAP_NET_RAW",
            };
            refused("open an AF_XDP socket".to_owned(), error, Some(remedy))
        })?;
        let memory = frames_of(&socket, slots)?;
        let fail = sizes_refused;
        set_xdp_umem_fill_ring_size(&socket, slots).map_err(fail)?;
        set_xdp_umem_completion_ring_size(&socket, slots).map_err(fail)?;
        set_xdp_rx_ring_size(&socket, slots).map_err(fail)?;
        set_xdp_tx_ring_size(&socket, slots).map_err(fail)?;
        let (rx, mut fill, tx, completion) = rings(&socket, slots)?;
        // The second half of the memory is for what comes.
        for chunk in slots..2 * slots {
            if let Some(slot) = fill.next() {
                slot.store(u64::from(chunk) * CHUNK as u64, Ordering::Relaxed);
            }
        }
        fill.publish();
        bind_to(&socket, spec, interface.index)?;
        Ok(Self {
            socket,
            memory,
            rx,
            fill,
            tx,
            completion,
            free: (0..slots)
                .map(|chunk| u64::from(chunk) * CHUNK as u64)
                .collect(),
            queue: spec.queue,
            slots,
        })
    }

    /// Its queue.
    pub fn queue(&self) -> u32 {
        self.queue
    }

    /// Frames on their way at once, each way.
    pub fn slots(&self) -> u32 {
        self.slots
    }

    /// Takes a frame, which goes on its way at the next [`flush`](Self::flush); false where there is no
    /// room now. A frame longer than any can be is cut.
    #[inline]
    pub fn push(&mut self, frame: &[u8]) -> bool {
        if self.free.is_empty() {
            self.collect();
        }
        let Some(chunk) = self.free.pop() else {
            return false;
        };
        let Some(slot) = self.tx.next() else {
            self.free.push(chunk);
            return false;
        };
        let frame = &frame[..frame.len().min(LONGEST)];
        let [at, length] = slot;
        at.store(chunk, Ordering::Relaxed);
        length.store(packed(frame.len()), Ordering::Relaxed);
        self.memory.copy_in(frame, offset(chunk));
        true
    }

    /// Takes chunks back whose frames were sent.
    fn collect(&mut self) {
        while let Some(slot) = self.completion.next() {
            self.free.push(slot.load(Ordering::Relaxed));
        }
        self.completion.release();
    }

    /// Shows the kernel what was pushed and has it send. What it does not send at once it sends when
    /// this is called again.
    ///
    /// # Errors
    /// The error of the interface: that it is down, or gone.
    #[inline]
    pub fn flush(&mut self) -> io::Result<()> {
        self.tx.publish();
        let mut left = self.tx.look();
        while left > 0 && self.tx.needs_wakeup() {
            let answer = send(&self.socket, &[], SendFlags::DONTWAIT);
            let now = self.tx.look();
            match answer {
                // The kernel sends some at a call.
                Ok(_) | Err(Errno::AGAIN) if now < left => left = now,
                // It is at work already, or has no room for more now.
                Ok(_) | Err(Errno::AGAIN | Errno::BUSY | Errno::NOBUFS | Errno::INTR) => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Frames that the kernel has not looked at yet.
    #[inline]
    pub fn unsent(&mut self) -> u32 {
        self.tx.look()
    }

    /// Frames that have come and were not taken.
    #[inline]
    pub fn waiting(&mut self) -> u32 {
        self.rx.look()
    }

    /// Copies the oldest frame that came into a buffer, as much of it as fits: how long it is there; none
    /// where nothing came.
    #[inline]
    pub fn pop(&mut self, buffer: &mut [u8]) -> Option<usize> {
        let slot = self.rx.next()?;
        let (at, length) = (
            slot[0].load(Ordering::Relaxed),
            unpacked(slot[1].load(Ordering::Relaxed)),
        );
        let length = length.min(buffer.len());
        self.memory.copy_out(offset(at), &mut buffer[..length]);
        // There are as many slots as chunks, so this one has a place.
        if let Some(slot) = self.fill.next() {
            slot.store(at - at % CHUNK as u64, Ordering::Relaxed);
        }
        Some(length)
    }

    /// Gives the kernel back the room of all frames that were taken.
    #[inline]
    pub fn release(&mut self) {
        self.rx.release();
        self.fill.publish();
        if self.fill.needs_wakeup() && self.rx.look() == 0 {
            // Its answer says nothing: frames come by the ring.
            let _ = recv(&self.socket, &mut [0_u8; 0], RecvFlags::DONTWAIT);
        }
    }

    /// Packets that came for it since it was opened and that it had no room for.
    pub fn drops(&self) -> u64 {
        let counts = xdp_statistics(&self.socket).ok();
        counts.map_or(0, |counts| {
            counts.rx_dropped + counts.rx_ring_full.unwrap_or(0)
        })
    }
}

impl AsRawFd for XdpSocket {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

/// The memory of frames, which the kernel has pinned from now on.
fn frames_of(socket: &OwnedFd, slots: u32) -> Result<Arc<SharedMemory>, SysError> {
    let bytes = 2 * slots as usize * CHUNK;
    let (mut memory, _) = SharedMemory::create("weir-frames", bytes)?;
    memory.populate()?;
    let registration = XdpUmemReg {
        addr: memory.address() as u64,
        len: bytes as u64,
        chunk_size: u32::try_from(CHUNK).unwrap_or(0),
        headroom: 0,
        flags: XdpUmemRegFlags::empty(),
        tx_metadata_len: 0,
    };
    set_xdp_umem_reg(socket, registration).map_err(|error| {
        let remedy = (error == Errno::NOBUFS).then_some(crate::pin::MEMLOCK_REMEDY);
        refused(format!("pin {bytes} B of frames"), error, remedy)
    })?;
    Ok(Arc::new(memory))
}

type Rings = (
    KernelConsumer<Descriptor>,
    KernelProducer<AtomicU64>,
    KernelProducer<Descriptor>,
    KernelConsumer<AtomicU64>,
);

/// The four rings of a socket, mapped: for what comes, its chunks; for what goes, its chunks.
fn rings(socket: &OwnedFd, slots: u32) -> Result<Rings, SysError> {
    let offsets = xdp_mmap_offsets(socket).map_err(sizes_refused)?;
    let part = |at: &XdpRingOffset| RingOffsets {
        producer: at.producer,
        consumer: at.consumer,
        flags: at.flags,
        slots: at.desc,
    };
    let map = |at, bytes| SharedMemory::map(socket, at, bytes).map(Arc::new);
    let (rx, fill, tx, completion) = (
        part(&offsets.rx),
        part(&offsets.fr),
        part(&offsets.tx),
        part(&offsets.cr),
    );
    Ok((
        KernelConsumer::new(
            &map(RX_AT, mapped_bytes::<Descriptor>(rx, slots))?,
            rx,
            slots,
        )?,
        KernelProducer::new(
            &map(FILL_AT, mapped_bytes::<u64>(fill, slots))?,
            fill,
            slots,
        )?,
        KernelProducer::new(
            &map(TX_AT, mapped_bytes::<Descriptor>(tx, slots))?,
            tx,
            slots,
        )?,
        KernelConsumer::new(
            &map(COMPLETION_AT, mapped_bytes::<u64>(completion, slots))?,
            completion,
            slots,
        )?,
    ))
}

fn bind_to(socket: &OwnedFd, spec: &XdpSocketSpec<'_>, interface: u32) -> Result<(), SysError> {
    let moves = match spec.mode {
        XdpMode::ZeroCopy => SocketAddrXdpFlags::XDP_ZEROCOPY,
        _ => SocketAddrXdpFlags::XDP_COPY,
    };
    let flags = moves | SocketAddrXdpFlags::XDP_USE_NEED_WAKEUP;
    let address = SocketAddrXdp::new(flags, interface, spec.queue);
    let mut tries = 0;
    loop {
        match bind(socket, &address) {
            // The kernel gives a queue back a while after its last socket was closed.
            Err(Errno::BUSY) if tries < MOST_TRIES => {
                tries += 1;
                std::thread::sleep(BETWEEN_TRIES);
            }
            answer => return answer.map_err(|error| bind_refused(spec, error)),
        }
    }
}

fn bind_refused(spec: &XdpSocketSpec<'_>, error: Errno) -> SysError {
    let remedy = match error {
        Errno::OPNOTSUPP => Some("the driver has no zero copy: leave mode=zc away"),
        Errno::INVAL => Some("`ip -d link show` tells how many queues the interface has"),
        Errno::BUSY => Some("another socket has this queue"),
        Errno::NETDOWN => Some("the interface is down: `ip link set dev INTERFACE up`"),
        _ => None,
    };
    let place = format!("{}, queue {}", spec.interface, spec.queue);
    refused(format!("bind an AF_XDP socket to {place}"), error, remedy)
}

fn sizes_refused(error: Errno) -> SysError {
    refused("make the rings of an AF_XDP socket".to_owned(), error, None)
}

fn refused(what: String, error: Errno, remedy: Option<&'static str>) -> SysError {
    SysError::Refused {
        what,
        source: error.into(),
        remedy,
    }
}

/// A length and no options, as they lie side by side.
#[inline]
fn packed(length: usize) -> u64 {
    let [a, b, c, d] = u32::try_from(length).unwrap_or(0).to_ne_bytes();
    u64::from_ne_bytes([a, b, c, d, 0, 0, 0, 0])
}

/// The length beside options.
#[inline]
fn unpacked(word: u64) -> usize {
    let [a, b, c, d, ..] = word.to_ne_bytes();
    u32::from_ne_bytes([a, b, c, d]) as usize
}

#[inline]
fn offset(at: u64) -> usize {
    usize::try_from(at).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_lies_where_the_kernel_reads_it() {
        assert_eq!(packed(64).to_ne_bytes()[..4], 64_u32.to_ne_bytes());
        assert_eq!(unpacked(packed(2062)), 2062);
        assert_eq!(unpacked(packed(2062) | 7 << 32), 2062);
    }

    #[test]
    fn what_no_socket_can_be_is_refused_by_name() {
        let spec = XdpSocketSpec {
            interface: "weir-none",
            queue: 0,
            slots: 64,
            mode: XdpMode::Default,
        };
        let refused = |spec| XdpSocket::open(&spec).unwrap_err().to_string();
        let absent = refused(spec);
        assert!(absent.contains("find interface weir-none"), "{absent}");
        assert!(absent.contains("`ip link`"), "{absent}");
        let odd = refused(XdpSocketSpec { slots: 100, ..spec });
        assert!(odd.contains("100 slots"), "{odd}");
        let far = refused(XdpSocketSpec { queue: 256, ..spec });
        assert!(far.contains("queues below 256"), "{far}");
    }
}
