//! Many datagrams by one system call, and sockets that take whole frames from an interface.
//!
//! In: an open socket, frames to send, room for what comes. Out: how many moved, and where each came from.
//! Not here: buffers and their owners (`socket_link`).
#![expect(
    unsafe_code,
    reason = "calls that rustix does not wrap; listed in unsafe.toml"
)]

use std::io;
use std::mem::{size_of, zeroed};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

/// Datagrams of one call at most.
pub(crate) const MOST_DATAGRAMS: usize = 64;

/// A datagram that was received.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Datagram {
    pub(crate) length: usize,
    /// Where it came from, where the socket says so.
    pub(crate) from: Option<SocketAddrV4>,
}

fn length_of<T>() -> libc::socklen_t {
    libc::socklen_t::try_from(size_of::<T>()).unwrap_or(0)
}

fn checked(result: libc::c_int) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

fn empty_headers() -> (
    [libc::mmsghdr; MOST_DATAGRAMS],
    [libc::iovec; MOST_DATAGRAMS],
) {
    // SAFETY: zero bytes are a header without anything.
    let headers = unsafe { zeroed() };
    let nothing = libc::iovec {
        iov_base: ptr::null_mut(),
        iov_len: 0,
    };
    (headers, [nothing; MOST_DATAGRAMS])
}

fn internet(to: SocketAddrV4) -> libc::sockaddr_in {
    libc::sockaddr_in {
        sin_family: libc::sa_family_t::try_from(libc::AF_INET).unwrap_or(0),
        sin_port: to.port().to_be(),
        sin_addr: libc::in_addr {
            s_addr: u32::from(*to.ip()).to_be(),
        },
        sin_zero: [0; 8],
    }
}

/// Sends datagrams without waiting, each to its address, or where the socket leads; how many were taken.
///
/// # Errors
/// That of the first, where not even that was taken.
pub(crate) fn send_many<'a>(
    socket: BorrowedFd<'_>,
    datagrams: impl Iterator<Item = (&'a [u8], Option<SocketAddrV4>)>,
) -> io::Result<usize> {
    let (mut headers, mut pieces) = empty_headers();
    let mut addresses = [internet(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0)); MOST_DATAGRAMS];
    let mut count: u32 = 0;
    let all = headers.iter_mut().zip(&mut pieces).zip(&mut addresses);
    for (((header, piece), address), (bytes, to)) in all.zip(datagrams) {
        piece.iov_base = bytes.as_ptr().cast_mut().cast();
        piece.iov_len = bytes.len();
        header.msg_hdr.msg_iov = piece;
        header.msg_hdr.msg_iovlen = 1;
        if let Some(to) = to {
            *address = internet(to);
            header.msg_hdr.msg_name = ptr::from_mut(address).cast();
            header.msg_hdr.msg_namelen = length_of::<libc::sockaddr_in>();
        }
        count += 1;
    }
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: the first `count` headers lead to pieces and addresses on this stack and to borrowed bytes,
    // all of which outlive the call, which only reads them.
    let sent = unsafe { libc::sendmmsg(socket.as_raw_fd(), headers.as_mut_ptr(), count, flags) };
    checked(sent)
}

/// Receives what is there, without waiting, each datagram into a room of its own; how many came.
///
/// # Errors
/// The kernel's, `WouldBlock` where nothing is there.
pub(crate) fn receive_many<'a>(
    socket: BorrowedFd<'_>,
    rooms: impl Iterator<Item = &'a mut [u8]>,
    got: &mut [Datagram; MOST_DATAGRAMS],
) -> io::Result<usize> {
    let (mut headers, mut pieces) = empty_headers();
    let mut addresses = [internet(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0)); MOST_DATAGRAMS];
    let mut count: u32 = 0;
    let all = headers.iter_mut().zip(&mut pieces).zip(&mut addresses);
    for (((header, piece), address), room) in all.zip(rooms) {
        piece.iov_base = room.as_mut_ptr().cast();
        piece.iov_len = room.len();
        header.msg_hdr.msg_iov = piece;
        header.msg_hdr.msg_iovlen = 1;
        header.msg_hdr.msg_name = ptr::from_mut(address).cast();
        header.msg_hdr.msg_namelen = length_of::<libc::sockaddr_in>();
        count += 1;
    }
    // SAFETY: the first `count` headers lead to pieces and addresses on this stack and to rooms that are
    // borrowed exclusively, all of which outlive the call; the kernel writes no more than their lengths.
    let came = unsafe {
        libc::recvmmsg(
            socket.as_raw_fd(),
            headers.as_mut_ptr(),
            count,
            libc::MSG_DONTWAIT,
            ptr::null_mut(),
        )
    };
    let came = checked(came)?;
    let family = libc::sa_family_t::try_from(libc::AF_INET).unwrap_or(0);
    for ((one, header), address) in got.iter_mut().zip(&headers).zip(&addresses).take(came) {
        let is_internet = header.msg_hdr.msg_namelen >= length_of::<libc::sockaddr_in>()
            && address.sin_family == family;
        *one = Datagram {
            length: usize::try_from(header.msg_len).unwrap_or(0),
            from: is_internet.then(|| {
                let from = Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr));
                SocketAddrV4::new(from, u16::from_be(address.sin_port))
            }),
        };
    }
    Ok(came)
}

/// A socket for frames of an interface, without any yet: only packets of UDP to this port will come.
///
/// # Errors
/// The kernel's: without the right, or an interface that is gone.
pub(crate) fn frame_socket(interface: u32, port: u16) -> io::Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // Without a protocol nothing comes before the filter is there.
    // SAFETY: the call takes no addresses.
    let socket = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
    checked(socket)?;
    // SAFETY: the descriptor is open and nobody else has it.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    let code = |code: u32, jump_true, jump_false, k| libc::sock_filter {
        code: u16::try_from(code).unwrap_or(0),
        jt: jump_true,
        jf: jump_false,
        k,
    };
    let (half, byte) = (
        libc::BPF_LD | libc::BPF_H | libc::BPF_ABS,
        libc::BPF_LD | libc::BPF_B | libc::BPF_ABS,
    );
    let (equal, end) = (
        libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
        libc::BPF_RET | libc::BPF_K,
    );
    // IPv4, whose header has 20 bytes; UDP; the port.
    let mut filter = [
        code(half, 0, 0, 12),
        code(equal, 0, 7, 0x0800),
        code(byte, 0, 0, 14),
        code(equal, 0, 5, 0x45),
        code(byte, 0, 0, 23),
        code(equal, 0, 3, 17),
        code(half, 0, 0, 36),
        code(equal, 0, 1, u32::from(port)),
        code(end, 0, 0, u32::MAX),
        code(end, 0, 0, 0),
    ];
    let program = libc::sock_fprog {
        len: u16::try_from(filter.len()).unwrap_or(0),
        filter: filter.as_mut_ptr(),
    };
    set_option(&socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)?;
    // Where there is no such way the queue of the interface is used.
    let _ = set_option(&socket, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, &1_i32);
    // SAFETY: zero bytes are an address without anything.
    let mut address: libc::sockaddr_ll = unsafe { zeroed() };
    address.sll_family = libc::sa_family_t::try_from(libc::AF_PACKET).unwrap_or(0);
    address.sll_protocol = 0x0800_u16.to_be();
    address.sll_ifindex = interface.cast_signed();
    // SAFETY: the address is on this stack and as long as it is said to be.
    let bound = unsafe {
        libc::bind(
            socket.as_raw_fd(),
            ptr::from_ref(&address).cast(),
            length_of::<libc::sockaddr_ll>(),
        )
    };
    checked(bound)?;
    Ok(socket)
}

/// Room for what comes, in bytes, as far as it is allowed.
pub(crate) fn make_room(socket: &OwnedFd, bytes: usize) {
    let bytes = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX);
    for (forced, plain) in [
        (libc::SO_RCVBUFFORCE, libc::SO_RCVBUF),
        (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF),
    ] {
        if set_option(socket, libc::SOL_SOCKET, forced, &bytes).is_err() {
            // What the kernel allows everybody; what then does not fit is counted.
            let _ = set_option(socket, libc::SOL_SOCKET, plain, &bytes);
        }
    }
}

/// Datagrams that found no room, since the socket was made.
pub(crate) fn dropped(socket: BorrowedFd<'_>) -> Option<u64> {
    let mut facts = [0_u32; 9];
    let mut length = length_of::<[u32; 9]>();
    // SAFETY: the kernel writes at most `length` bytes into the array.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            facts.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    (result == 0 && length == length_of::<[u32; 9]>()).then(|| facts[8].into())
}

fn set_option<T>(socket: &OwnedFd, level: i32, name: i32, value: &T) -> io::Result<()> {
    // SAFETY: the value is borrowed and as long as it is said to be; the kernel only reads it.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            ptr::from_ref(value).cast(),
            length_of::<T>(),
        )
    };
    checked(result).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use std::os::fd::AsFd;

    #[test]
    fn datagrams_come_as_they_were_sent_with_the_port_they_came_from() {
        let [from, to] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        let std::net::SocketAddr::V4(address) = to.local_addr().unwrap() else {
            panic!("not of IPv4");
        };
        let all: [&[u8]; 3] = [b"one", b"two and more", b""];
        let sent = send_many(
            from.as_fd(),
            all.into_iter().map(|one| (one, Some(address))),
        );
        assert_eq!(sent.unwrap(), 3);
        let mut rooms = [[0_u8; 8]; 5];
        let mut got = [Datagram::default(); MOST_DATAGRAMS];
        let each = rooms.iter_mut().map(|room| &mut room[..]);
        let came = receive_many(to.as_fd(), each, &mut got).unwrap();
        assert_eq!(came, 3);
        assert_eq!(
            got[..3].iter().map(|one| one.length).collect::<Vec<_>>(),
            [3, 8, 0]
        );
        let sender = got[0].from.map(std::net::SocketAddr::V4);
        assert_eq!(sender, from.local_addr().ok());
        assert_eq!((&rooms[0][..3], &rooms[1]), (&b"one"[..], b"two and "));
        let each = rooms.iter_mut().map(|room| &mut room[..]);
        let nothing = receive_many(to.as_fd(), each, &mut got).unwrap_err();
        assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock);
        assert_eq!(dropped(to.as_fd()), Some(0));
    }
}
