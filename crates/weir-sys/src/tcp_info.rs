//! Counters that the kernel keeps of a TCP connection.
//!
//! In: a socket. Out: segments that were sent again, bytes that arrived. Not here: what is sent.

#![expect(unsafe_code, reason = "an option of sockets that rustix does not wrap")]

use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd};

/// Counts of a connection since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpCounts {
    /// Segments that were sent again.
    pub retransmits: u64,
    /// Bytes that the other side has, and that came from it.
    pub bytes: u64,
}

/// The counts of a connection; `None` where the socket is none of TCP.
pub fn tcp_counts(socket: impl AsFd) -> Option<TcpCounts> {
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
    (result == 0).then(|| TcpCounts {
        retransmits: info.tcpi_total_retrans.into(),
        bytes: info
            .tcpi_bytes_acked
            .saturating_add(info.tcpi_bytes_received),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::net::UnixStream;

    #[test]
    fn tcp_counts_and_other_sockets_do_not() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut other, _) = listener.accept().unwrap();
        other.write_all(&[7; 1000]).unwrap();
        (&stream).read_exact(&mut [0; 1000]).unwrap();
        let counts = tcp_counts(&stream).unwrap();
        assert_eq!(counts.retransmits, 0);
        // The kernel may count the segment that opened the connection as a byte.
        assert!((1000..=1001).contains(&counts.bytes), "{counts:?}");
        assert_eq!(tcp_counts(UnixStream::pair().unwrap().0), None);
    }
}
