//! What the kernel has counted for a TCP connection.
//!
//! In: a socket. Out: segments that were sent again. Not here: what is sent.

#![expect(unsafe_code, reason = "an option of sockets that rustix does not wrap")]

use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd};

/// Segments that a connection has sent again; `None` where the socket is none of TCP.
pub fn retransmits(socket: impl AsFd) -> Option<u32> {
    // SAFETY: all fields are numbers, for which zero bytes are a value.
    let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
    let mut length = libc::socklen_t::try_from(size_of::<libc::tcp_info>()).ok()?;
    let fd = socket.as_fd().as_raw_fd();
    // SAFETY: the descriptor is open, and the kernel writes at most `length` bytes to `info`.
    let result = unsafe {
        libc::getsockopt(
            fd,
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut info).cast(),
            &raw mut length,
        )
    };
    (result == 0).then_some(info.tcpi_total_retrans)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::net::UnixStream;

    #[test]
    fn tcp_counts_and_other_sockets_do_not() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        assert_eq!(retransmits(&stream), Some(0));
        assert_eq!(retransmits(UnixStream::pair().unwrap().0), None);
    }
}
