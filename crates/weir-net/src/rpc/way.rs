//! How the calls of a master travel.
//!
//! In: what a job asks for. Out: a transport per thread, of the kind that it asks for. Each kind has a
//! loop of its own, so that no call goes through a pointer. Not here: the transports.

use weir_run::failure;
use weir_schema::{Failure, RpcWorkload};

use super::null::NullTransport;
use super::transport::RpcTransport;

/// How calls travel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Way {
    /// Nowhere.
    Null,
}

/// What is done with a transport, whatever its kind.
pub trait TransportUser {
    /// What comes of it.
    type Output;

    /// Uses it.
    fn with(self, transport: impl RpcTransport) -> Self::Output;
}

impl Way {
    /// As a job asks for it.
    ///
    /// # Errors
    /// There is no such transport.
    pub fn of(work: &RpcWorkload) -> Result<Self, Failure> {
        let name = work.transport.as_deref().unwrap_or_default();
        match name.trim_end_matches("://") {
            "null" => Ok(Self::Null),
            other => {
                let why = format!("there is no transport `{other}`");
                Err(failure("plan", None, why))
            }
        }
    }

    /// As the beginning of an address.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Null => "null",
        }
    }

    /// Connects a thread with so many slots, and has the transport used.
    ///
    /// # Errors
    /// No server could be reached.
    pub fn connect<U: TransportUser>(
        &self,
        work: &RpcWorkload,
        slots: u32,
        user: U,
    ) -> Result<U::Output, Failure> {
        match self {
            Self::Null => Ok(user.with(NullTransport::new(slots, work.bytes().0))),
        }
    }
}
