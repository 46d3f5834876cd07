//! Errors of libfabric, in words.

use std::ffi::c_int;

use weir_sys::SysError;

use crate::{DerCode, RpcError};

/// Why something with a fabric did not work.
#[derive(Debug, thiserror::Error)]
pub enum FabricError {
    /// There is no library.
    #[error(
        "libfabric not found (looked for {tried}); install libfabric1, or name a library with \
         {variable}",
        variable = super::library::LIBRARY_VARIABLE
    )]
    NotFound {
        /// Names, or a name and the loader's reason.
        tried: String,
    },
    /// A library without one of the functions.
    #[error("{file} is no libfabric that weir can use: it has no function {symbol}")]
    Incomplete {
        /// The library.
        file: String,
        /// The function.
        symbol: String,
    },
    /// A library from before the interface that is used.
    #[error("{file} is libfabric {found}; weir needs {needed} or a later one")]
    TooOld {
        /// The library.
        file: String,
        /// Its version.
        found: String,
        /// The oldest one that serves.
        needed: String,
    },
    /// No provider fits what was asked for.
    #[error("libfabric has no provider {wanted} here; those for reliable datagrams are: {there}")]
    NoProvider {
        /// Its name, and the address and domain if they were given.
        wanted: String,
        /// Names.
        there: String,
    },
    /// The provider lacks a call.
    #[error("the fabric provider has no call to {0}")]
    Lacks(&'static str),
    /// The provider refused.
    #[error("the fabric cannot {what}: {text} ({code})")]
    Call {
        /// The attempt, as a verb phrase.
        what: &'static str,
        /// The answer, a positive number of libfabric's.
        code: c_int,
        /// Text of libfabric about it.
        text: String,
    },
    /// Memory cannot be had.
    #[error(transparent)]
    Memory(#[from] SysError),
    /// A request that makes no sense.
    #[error("{0}")]
    Invalid(String),
}

impl From<FabricError> for RpcError {
    fn from(error: FabricError) -> Self {
        let no_memory = rustix::io::Errno::NOMEM.raw_os_error();
        let code = match &error {
            FabricError::Memory(_) => DerCode::NoMemory,
            FabricError::Call { code, .. } if *code == no_memory => DerCode::NoMemory,
            FabricError::Invalid(_) => DerCode::Invalid,
            _ => DerCode::Unreachable,
        };
        Self::new(code, error.to_string())
    }
}
