//! Differences between the two families of MPI libraries: the form of handles and the values of
//! constants.
//!
//! MPI is a standard of names, not of binaries. Open MPI's handles are addresses of objects
//! inside the library; MPICH's, and those of all who agreed on its binary interface (Intel MPI,
//! MVAPICH, Cray), are numbers. `int` counts, ranks and thread levels agree, and success is 0.
//! Every constant here is compared with both families' headers by `tests/worlds/slow/headers.rs`.

use std::ffi::{CStr, c_int, c_void};
use std::fmt::Debug;
use std::ptr::NonNull;

/// A family of libraries with one binary interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Open MPI.
    OpenMpi,
    /// MPICH and those compatible with it.
    Mpich,
}

impl std::fmt::Display for Family {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::OpenMpi => "Open MPI",
            Self::Mpich => "MPICH",
        })
    }
}

/// A predefined handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Constant {
    /// All processes.
    CommWorld,
    /// Bytes.
    Byte,
    /// No request.
    RequestNull,
    /// Calls answer with a code, instead of ending the process.
    ErrorsReturn,
}

/// A binary interface; everything above is compiled once for each.
pub trait Abi: Debug + 'static {
    /// Its family.
    const FAMILY: Family;
    /// A communicator, data type, request or error handler.
    type Handle: Copy + Debug + PartialEq;
    /// Status of a receive; read by the library alone.
    type Status: Copy + Debug + Default;
    /// Says that no status is wanted.
    const STATUS_IGNORE: *mut Self::Status;

    /// The value of a handle; `symbol` finds a symbol of the library.
    fn handle(
        which: Constant,
        symbol: impl Fn(&CStr) -> Option<NonNull<c_void>>,
    ) -> Option<Self::Handle>;
}

/// Open MPI.
#[derive(Clone, Copy, Debug)]
pub enum OmpiAbi {}

/// The size and the alignment of Open MPI's `MPI_Status`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct OmpiStatus([u64; 3]);

impl Abi for OmpiAbi {
    const FAMILY: Family = Family::OpenMpi;
    type Handle = *mut c_void;
    type Status = OmpiStatus;
    const STATUS_IGNORE: *mut OmpiStatus = std::ptr::null_mut();

    fn handle(
        which: Constant,
        symbol: impl Fn(&CStr) -> Option<NonNull<c_void>>,
    ) -> Option<Self::Handle> {
        let name = match which {
            Constant::CommWorld => c"ompi_mpi_comm_world",
            Constant::Byte => c"ompi_mpi_byte",
            Constant::RequestNull => c"ompi_request_null",
            Constant::ErrorsReturn => c"ompi_mpi_errors_return",
        };
        symbol(name).map(NonNull::as_ptr)
    }
}

/// MPICH and those compatible with it.
#[derive(Clone, Copy, Debug)]
pub enum MpichAbi {}

/// The size and the alignment of MPICH's `MPI_Status`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct MpichStatus([c_int; 5]);

impl Abi for MpichAbi {
    const FAMILY: Family = Family::Mpich;
    type Handle = c_int;
    type Status = MpichStatus;
    const STATUS_IGNORE: *mut MpichStatus = std::ptr::without_provenance_mut(1);

    fn handle(
        which: Constant,
        _symbol: impl Fn(&CStr) -> Option<NonNull<c_void>>,
    ) -> Option<Self::Handle> {
        Some(match which {
            Constant::CommWorld => 0x4400_0000,
            Constant::Byte => 0x4c00_010d,
            Constant::RequestNull => 0x2c00_0000,
            Constant::ErrorsReturn => 0x5400_0001,
        })
    }
}
