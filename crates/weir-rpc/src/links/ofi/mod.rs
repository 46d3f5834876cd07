//! libfabric as a data path: one interface over the fabrics of many vendors, opened at run time.
//!
//! In: a provider's name. Out: a [`FabricEndpoint`] for each thread, and whether libfabric is here at
//! all ([`availability`]). Nothing of libfabric is needed to build or start weir.

mod abi;
mod completion;
mod contexts;
mod endpoint;
mod endpoint_parts;
mod error;
mod library;
mod link;
mod objects;
mod offer;
mod remote_memory;
mod scheme;

pub use completion::{COMPLETIONS_AT_ONCE, FabricCompletion, FabricFailure, FabricWork};
pub use endpoint::{FabricEndpoint, FabricPeer, FabricPosted, ReceivedMessages, SendSlot};
pub use endpoint_parts::EndpointSizes;
pub use error::FabricError;
pub use library::{FabricLibrary, LIBRARY_VARIABLE};
pub use link::{OfiLink, OfiSettings};
pub use offer::{FabricChoice, FabricFacts, FabricOffer, providers};
pub use remote_memory::{FabricMove, RemoteMemory};
pub use scheme::SCHEME;
pub(crate) use scheme::listening;

use weir_sys::Availability;

/// Remedy where libfabric is missing.
const REMEDY: &str = "install libfabric1 (Debian), or name a library with WEIR_LIBFABRIC";

/// Version and providers of libfabric on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FabricSurvey {
    /// The library's file.
    pub file: String,
    /// The version of its interface.
    pub version: String,
    /// Its providers of reliable datagrams that can be used here.
    pub providers: Vec<String>,
}

impl FabricSurvey {
    /// Opens the library and asks it.
    ///
    /// # Errors
    /// There is none, or it fails.
    pub fn take() -> Result<Self, FabricError> {
        let library = FabricLibrary::open()?;
        Ok(Self {
            file: library.file().to_owned(),
            version: library.version(),
            providers: providers(&library)?,
        })
    }
}

/// Says if there is a libfabric with a provider that can be used.
pub fn availability() -> Availability {
    match FabricSurvey::take() {
        Ok(survey) if survey.providers.is_empty() => Availability::missing(
            format!(
                "a libfabric provider of reliable datagrams ({} has none)",
                survey.file
            ),
            REMEDY,
        ),
        Ok(_) => Availability::Ready,
        Err(error) => Availability::missing(error.to_string(), REMEDY),
    }
}

#[cfg(test)]
mod tests;
