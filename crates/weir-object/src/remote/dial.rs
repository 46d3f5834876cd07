//! Channels to targets: who makes them, and what a client chooses.
//!
//! In: an address, a tag. Out: a channel. Not here: what travels on it (`client`).

use std::io;
use std::path::Path;

use weir_run::ServiceChannel;

/// A channel that a store needs.
#[derive(Clone, Copy, Debug)]
pub struct TargetCall {
    /// The service.
    pub service: &'static str,
    /// The target's tag.
    pub tag: u32,
    /// Calls in flight.
    pub slots: u32,
    /// Bytes of a buffer of the session.
    pub buffer: u32,
}

/// Makes channels to targets.
pub trait Dial: Clone + Send + Sync + 'static {
    /// Their type.
    type Channel: ServiceChannel + Send + 'static;

    /// The same for servers that ask for the secret of this file.
    #[must_use]
    fn knowing(&self, token_file: Option<&Path>) -> Self {
        let _ = token_file;
        self.clone()
    }

    /// A channel to a target of the server at an address.
    ///
    /// # Errors
    /// Nobody is there, or the channel is refused.
    fn dial(&self, address: &str, call: &TargetCall) -> io::Result<Self::Channel>;
}

/// Choices of a client.
#[derive(Clone, Copy, Debug, Default)]
pub struct RemoteSetup {
    /// Updates and fetches in flight; 0: each is waited for by its call.
    pub in_flight: u32,
    /// Values are moved and not stored.
    pub is_echo: bool,
    /// Longest values of a call; longer ones go as well, with more steps.
    pub usual: u64,
}
