//! The link over shared memory: client and server are processes of one machine.
//!
//! In: a path, the dispatchers of both sides. Out: a link for each dispatcher of this side. The server makes
//! memory and hands its descriptor to the client over a socket at the path; then the socket is removed. Each
//! dispatcher has, for each dispatcher of the other side, a ring (`weir_sys::ring`) of lengths of frames and
//! as many buffers for the frames. What the other side writes is looked at before it is believed. Not here:
//! when both begin and end (`peer`).

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::slice;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use weir_run::failure;
use weir_schema::{Failure, MOST_PATH_THREADS, PacketPathWorkload, PathSide};
use weir_sys::SysError;
use weir_sys::ring::{Consumer, MappedRing, Producer};
use weir_sys::shared_memory::SharedMemory;
use weir_sys::socket::{
    PathListener, is_passing, receive_with_descriptors, send_with_descriptors, wait_ready,
};

use crate::copy_link::{CopyLink, FrameQueue};
use crate::frame::target_port;
use crate::pool::BUFFER_BYTES;
use crate::wiring::SideLinks;

/// Time that the other side may take to come to the path.
const PATIENCE: Duration = Duration::from_secs(20);
/// Between looks for it.
const PAUSE: Duration = Duration::from_millis(5);
const PAGE: usize = 4096;
/// Numbers of dispatchers of a side.
const NUMBERS: usize = MOST_PATH_THREADS as usize;

/// The part of a packet path that the link cannot do.
pub(crate) fn check(work: &PacketPathWorkload) -> Option<String> {
    if work.side.is_none() {
        return Some(
            "the link `shm` is between two processes: client and server are runs of their own \
             (`ring` is the link of one process)"
                .to_owned(),
        );
    }
    (!work.queue_slots.is_power_of_two()).then(|| {
        format!(
            "`queue_slots` is {}: queues of the link shm have a power of two",
            work.queue_slots
        )
    })
}

/// A ring of frames within the memory: where lengths are, and bytes.
#[derive(Debug)]
struct FrameRingPlace {
    memory: Arc<SharedMemory>,
    bytes_at: usize,
    mask: u32,
}

impl FrameRingPlace {
    /// The ring from a dispatcher to one of the other side, and where its bytes are.
    fn open(
        file: &OwnedFd,
        slots: u32,
        (from_side, from, to): (PathSide, u8, u8),
    ) -> Result<(MappedRing<u32>, Self), SysError> {
        let bytes_at = MappedRing::<u32>::bytes(slots).next_multiple_of(PAGE);
        let side = usize::from(from_side == PathSide::Server);
        let number = (side * NUMBERS + usize::from(from)) * NUMBERS + usize::from(to);
        let length = ring_bytes(slots);
        let memory = SharedMemory::open(file, number as u64 * length as u64, length)?;
        let memory = Arc::new(memory);
        let ring = MappedRing::at(&memory, 0, slots)?;
        let place = Self {
            memory,
            bytes_at,
            mask: slots - 1,
        };
        Ok((ring, place))
    }

    fn slot(&self, index: u32) -> usize {
        self.bytes_at + (index & self.mask) as usize * BUFFER_BYTES
    }
}

/// Bytes of a ring with its places for frames, in whole pages.
fn ring_bytes(slots: u32) -> usize {
    let lengths = MappedRing::<u32>::bytes(slots).next_multiple_of(PAGE);
    lengths + (slots as usize * BUFFER_BYTES).next_multiple_of(PAGE)
}

#[derive(Debug)]
struct FrameOut {
    to: u8,
    ring: Producer<MappedRing<u32>>,
    place: FrameRingPlace,
}

#[derive(Debug)]
struct FrameIn {
    ring: Consumer<MappedRing<u32>>,
    place: FrameRingPlace,
    /// The index of the next frame.
    next: u32,
}

/// The rings of a dispatcher, both ways.
#[derive(Debug)]
pub(crate) struct ShmQueue {
    out: Vec<FrameOut>,
    from: Vec<FrameIn>,
    /// Which of those is looked at first next time.
    next: usize,
    first_port: u16,
    slots: u32,
}

impl FrameQueue for ShmQueue {
    #[inline]
    fn push(&mut self, frame: &[u8]) -> bool {
        let port = target_port(frame).unwrap_or(self.first_port);
        let to = port.wrapping_sub(self.first_port);
        // What names nobody arrives at the first.
        let at = self.out.iter().position(|one| u16::from(one.to) == to);
        let Some(out) = self.out.get_mut(at.unwrap_or(0)) else {
            return false;
        };
        // A ring whose other end writes nonsense takes nothing any more: the messages are lost.
        if !out.ring.has_room(1).unwrap_or(false) {
            return false;
        }
        let bytes = &frame[..frame.len().min(BUFFER_BYTES)];
        out.place
            .memory
            .copy_in(bytes, out.place.slot(out.ring.next_index()));
        let length = u32::try_from(bytes.len()).unwrap_or(0);
        out.ring.push(length).unwrap_or(false)
    }

    #[inline]
    fn flush(&mut self) {
        for out in &mut self.out {
            out.ring.publish();
        }
    }

    fn has_unsent(&mut self) -> bool {
        self.out.iter().any(|out| out.ring.unpublished() > 0)
    }

    #[inline]
    fn pop(&mut self, into: &mut [u8]) -> Option<usize> {
        for step in 0..self.from.len() {
            let at = (self.next + step) % self.from.len();
            let from = &mut self.from[at];
            let Some(length) = from.ring.pop().ok().flatten() else {
                continue;
            };
            let length = (length as usize).min(into.len()).min(BUFFER_BYTES);
            let slot = from.place.slot(from.next);
            from.next = from.next.wrapping_add(1);
            from.place.memory.copy_out(slot, &mut into[..length]);
            self.next = at;
            return Some(length);
        }
        self.next = self.next.wrapping_add(1);
        None
    }

    #[inline]
    fn release(&mut self) {
        for from in &mut self.from {
            from.ring.release();
        }
    }

    fn waiting(&mut self) -> Option<(u32, u32)> {
        let looks = self.from.iter_mut().map(|from| from.ring.look());
        let waiting = looks.map(|there| there.unwrap_or(0)).sum();
        Some((waiting, self.slots))
    }
}

/// The link of a dispatcher.
pub(crate) type ShmLink = CopyLink<ShmQueue>;

/// Memory that waits at a path for the client; the path is not needed any more once it is dropped.
#[derive(Debug)]
pub(crate) struct ShmOffer {
    file: OwnedFd,
    listener: PathListener,
    path: String,
}

impl ShmOffer {
    /// Makes memory for a run.
    ///
    /// # Errors
    /// The part that the machine lacks.
    pub(crate) fn at(path: &str, work: &PacketPathWorkload) -> Result<Self, Failure> {
        let whole = ring_bytes(work.queue_slots) * 2 * NUMBERS * NUMBERS;
        let file = SharedMemory::file("weir-packets", whole as u64);
        let file = file.map_err(|why| failure("missing", None, why.to_string()))?;
        Self::of(path, file)
    }

    fn of(path: &str, file: OwnedFd) -> Result<Self, Failure> {
        let listener = PathListener::bind(path.into()).map_err(|why| no_way(path, &why))?;
        Ok(Self {
            file,
            listener,
            path: path.to_owned(),
        })
    }

    /// Gives the descriptor to the client that comes to the path.
    fn hand_over(&self) -> Result<(), Failure> {
        give(&self.listener, &self.file).map_err(|why| no_way(&self.path, &why))
    }
}

/// The links of this side's dispatchers to those of the other side; a server has made an offer before.
///
/// # Errors
/// The part that the machine lacks, and that the other side does not come to the path.
pub(crate) fn links(
    work: &PacketPathWorkload,
    (path, offer): (&str, Option<ShmOffer>),
    others: &[u8],
) -> Result<[SideLinks<ShmLink>; 2], Failure> {
    let missing = |why: SysError| failure("missing", None, why.to_string());
    let is_server = offer.is_some();
    let fetched;
    let file = if let Some(offer) = &offer {
        offer.hand_over()?;
        &offer.file
    } else {
        fetched = fetch(path)?;
        &fetched
    };
    let sides = if is_server {
        [PathSide::Server, PathSide::Client]
    } else {
        [PathSide::Client, PathSide::Server]
    };
    let mut all = SideLinks::new();
    for own in work.dispatchers() {
        let queue = queue(work, file, (sides, own, others)).map_err(missing)?;
        all.insert(own, CopyLink::new(queue, &work.batches, None));
    }
    Ok(if is_server {
        [SideLinks::new(), all]
    } else {
        [all, SideLinks::new()]
    })
}

fn queue(
    work: &PacketPathWorkload,
    file: &OwnedFd,
    (sides, own, others): ([PathSide; 2], u8, &[u8]),
) -> Result<ShmQueue, SysError> {
    let slots = work.queue_slots;
    let mut queue = ShmQueue {
        out: Vec::new(),
        from: Vec::new(),
        next: 0,
        first_port: work.first_port,
        slots: slots.saturating_mul(u32::try_from(others.len()).unwrap_or(1)),
    };
    for &other in others {
        let (ring, place) = FrameRingPlace::open(file, slots, (sides[0], own, other))?;
        queue.out.push(FrameOut {
            to: other,
            ring: Producer::new(ring),
            place,
        });
        let (ring, place) = FrameRingPlace::open(file, slots, (sides[1], other, own))?;
        queue.from.push(FrameIn {
            ring: Consumer::new(ring),
            place,
            next: 0,
        });
    }
    Ok(queue)
}

fn no_way(path: &str, why: &io::Error) -> Failure {
    let remedy = match why.kind() {
        ErrorKind::AddrInUse => {
            "; another server answers there: end it, or name another path, the same on both sides"
        }
        ErrorKind::PermissionDenied => {
            "; name a path in a folder that both sides may write to, as /tmp/weir"
        }
        ErrorKind::InvalidInput => "; a path of a socket has at most 107 bytes: name a shorter one",
        // Only a client gets here, after its patience.
        ErrorKind::NotFound | ErrorKind::ConnectionRefused => {
            "; no server answers there: start it with the same path, on this machine"
        }
        ErrorKind::WouldBlock => {
            "; the client does not come: it has to name the same path, on this machine"
        }
        ErrorKind::InvalidData => {
            "; what answers there is no server of weir axio: name another path"
        }
        _ => "",
    };
    failure(
        "missing",
        why.raw_os_error(),
        format!("cannot share memory at {path}: {why}{remedy}"),
    )
}

fn give(listener: &UnixListener, file: &OwnedFd) -> io::Result<()> {
    let start = Instant::now();
    loop {
        match listener.accept() {
            // One that only looked whether somebody answers here is gone.
            Ok((stream, _)) => match send_with_descriptors(&stream, &[1], slice::from_ref(file)) {
                Err(Errno::PIPE) => {}
                done => return Ok(done.map(drop)?),
            },
            Err(why) if is_passing(&why) && start.elapsed() < PATIENCE => {
                std::thread::sleep(PAUSE);
            }
            Err(why) => return Err(why),
        }
    }
}

/// Takes the descriptor from the server at the path.
fn fetch(path: &str) -> Result<OwnedFd, Failure> {
    let start = Instant::now();
    let stream = loop {
        match UnixStream::connect(path) {
            Ok(stream) => break stream,
            Err(_) if start.elapsed() < PATIENCE => std::thread::sleep(PAUSE),
            Err(why) => return Err(no_way(path, &why)),
        }
    };
    take(&stream).map_err(|why| no_way(path, &why))
}

fn take(stream: &UnixStream) -> io::Result<OwnedFd> {
    wait_ready(&mut [PollFd::new(stream, PollFlags::IN)], PATIENCE)?;
    let mut passed = Vec::new();
    receive_with_descriptors(stream, &mut [0], &mut passed)?;
    passed.pop().ok_or_else(|| ErrorKind::InvalidData.into())
}

/// Why memory cannot be shared here; nothing where it can.
pub(crate) fn lacks() -> Option<String> {
    let made = SharedMemory::file("weir-packets", PAGE as u64);
    made.err().map(|why| why.to_string())
}

/// Why a path cannot be that of a socket; nothing where it can.
pub(crate) fn path_lacks(path: &str) -> Option<String> {
    let folder = Path::new(path)
        .parent()
        .filter(|one| !one.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    if let Err(why) = File::open(folder) {
        return Some(format!(
            "cannot share memory at {path}: {}: {why}; make the folder, or name another path, the same on both sides",
            folder.display()
        ));
    }
    let is_other = fs::symlink_metadata(path).is_ok_and(|facts| !facts.file_type().is_socket());
    is_other.then(|| {
        format!(
            "cannot share memory at {path}: there is a file that is no socket; name another path, the same on both sides"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::write_ports;
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, bind, socket};

    fn frame(port: u16, byte: u8) -> Vec<u8> {
        let mut frame = vec![byte; 80];
        write_ports(&mut frame, 1, port);
        frame
    }

    #[test]
    fn frames_go_to_the_dispatcher_of_their_port_in_order_and_find_room_again() {
        let work = PacketPathWorkload {
            side: Some(PathSide::Client),
            queue_slots: 64,
            ..PacketPathWorkload::default()
        };
        let whole = ring_bytes(64) * 2 * NUMBERS * NUMBERS;
        let file = SharedMemory::file("weir-test", whole as u64).unwrap();
        let sides = [PathSide::Client, PathSide::Server];
        let back = [PathSide::Server, PathSide::Client];
        let mut client = queue(&work, &file, (sides, 0, &[2, 5])).unwrap();
        let mut servers = [2, 5].map(|own| queue(&work, &file, (back, own, &[0])).unwrap());
        let mut into = [0; BUFFER_BYTES];
        // Three times round a ring of 64.
        for round in 0..200_u8 {
            assert!(client.push(&frame(10012, round)));
            assert!(client.push(&frame(10015, 255)));
            assert!(client.has_unsent());
            assert_eq!(servers[0].pop(&mut into), None, "it was not flushed");
            client.flush();
            assert_eq!(servers[0].waiting(), Some((1, 64)));
            assert_eq!(servers[0].pop(&mut into), Some(80));
            assert_eq!(into[79], round);
            assert_eq!(servers[1].pop(&mut into), Some(80));
            servers.iter_mut().for_each(FrameQueue::release);
        }
        // What names nobody goes to the first; a full ring takes no more.
        let taken = (0..100).take_while(|_| client.push(&frame(9, 1))).count();
        assert_eq!(taken, 64);
        client.flush();
        let came = std::iter::from_fn(|| servers[0].pop(&mut into)).count();
        assert_eq!(came, 64);
    }

    #[test]
    fn a_descriptor_goes_from_server_to_client_over_the_path() {
        let folder = std::env::temp_dir().join(format!("weir-shm-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("link").to_str().unwrap().to_owned();
        // One that is left over is no obstacle. It was never listened on: a process that another test starts
        // may have a listener a moment longer.
        let left = socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
        bind(&left, &SocketAddrUnix::new(path.as_str()).unwrap()).unwrap();
        assert_eq!(path_lacks(&path), None);
        let file = SharedMemory::file("weir-test", PAGE as u64).unwrap();
        let at = path.clone();
        let offer = ShmOffer::of(&at, file).unwrap();
        // Who only looks whether somebody is there takes nothing.
        drop(UnixStream::connect(&path).unwrap());
        let server = std::thread::spawn(move || offer.hand_over());
        let came = fetch(&path).unwrap();
        server.join().unwrap().unwrap();
        SharedMemory::open(came, 0, PAGE).unwrap();
        assert!(!Path::new(&path).exists());
        fs::write(&path, "").unwrap();
        assert!(path_lacks(&path).unwrap().contains("no socket"));
        assert!(path_lacks("/absent/x").unwrap().contains("/absent"));
        fs::remove_dir_all(folder).unwrap();
    }
}
