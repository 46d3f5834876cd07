//! One more descriptor that ends a link's wait.
//!
//! In: a descriptor of the link that has this one as its control plane. Out: nothing; that link
//! looks itself what there is.

use std::os::fd::BorrowedFd;

use rustix::event::epoll;

use super::{StreamLink, WAKER};
use crate::RpcError;

impl StreamLink {
    /// Waits end too when this can be read. It is not read here, and it is watched until it is
    /// closed.
    ///
    /// # Errors
    /// It cannot be watched.
    pub(crate) fn watch(&self, descriptor: BorrowedFd<'_>) -> Result<(), RpcError> {
        // Neither a place nor the waker.
        let data = epoll::EventData::new_u64(WAKER - 1);
        epoll::add(&self.epoll, descriptor, data, epoll::EventFlags::IN)
            .map_err(|errno| RpcError::io("watch a fabric")(errno.into()))
    }
}
