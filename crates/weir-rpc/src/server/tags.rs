//! The tags of a server and the services that each of them offers.
//!
//! In: ranks, how many tags each has, and who makes their services. Out: a tag by number. Not here:
//! sessions and calls.

use weir_schema::RpcEndpoint;

use crate::service::RpcService;
use crate::wire::OpenRequest;
use crate::{DerCode, RpcError};

/// A tag that a poller serves.
pub(super) struct ServedTag {
    pub(super) endpoint: RpcEndpoint,
    /// The first answers requests without a session.
    pub(super) services: Vec<Box<dyn RpcService>>,
}

impl ServedTag {
    /// The place of the service that a client asks for.
    pub(super) fn find(&self, asked: &OpenRequest) -> Result<usize, RpcError> {
        let mut services = self.services.iter();
        let found = services.position(|service| service.name() == asked.service);
        let Some(place) = found else {
            let there: Vec<_> = self.services.iter().map(|service| service.name()).collect();
            return Err(RpcError::new(
                DerCode::NoService,
                format!(
                    "no service `{}` here; there is: {}",
                    asked.service,
                    there.join(", ")
                ),
            ));
        };
        let version = self.services[place].version();
        if version != asked.version {
            return Err(RpcError::new(
                DerCode::NoService,
                format!(
                    "service `{}` has version {version} here, not {}",
                    asked.service, asked.version
                ),
            ));
        }
        Ok(place)
    }
}
