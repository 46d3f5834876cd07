//! Packets of an interface by `AF_XDP`: a socket for each queue, and a program that hands packets to them.
//!
//! In: an interface, a queue, ports. Out: an [`XdpSocket`] that takes and gives whole frames, an
//! [`XdpProgram`] that brings it packets. No library is needed: rings and calls are the kernel's own. Not
//! here: what is in a frame.

mod program;
mod ring;
mod socket;
#[cfg(test)]
mod tests;

pub use program::XdpProgram;
pub use socket::{XdpSocket, XdpSocketSpec};

/// Mode of an XDP socket: the place where its program runs, and the way that packets are moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum XdpMode {
    /// In the driver where it can, else on socket buffers; the kernel copies.
    #[default]
    Default,
    /// On socket buffers, which any interface can; the kernel copies.
    Generic,
    /// In the driver; the kernel copies.
    Native,
    /// In the driver; the device reads and writes frames in place.
    ZeroCopy,
}
