//! The memory of a client's slots.
//!
//! In: how many slots, what their calls carry. Out: a region for each, or why there is none. Not here: memory
//! that calls leave behind (`calls`).

use super::calls::ClientState;
use crate::links::Link;
use crate::links::socket::IsOver;
use crate::{DerCode, RpcError, machine_memory};

/// Goes on unless it is over.
pub(super) fn unless_over(is_over: IsOver<'_>) -> Result<(), RpcError> {
    if is_over() {
        return Err(RpcError::new(
            DerCode::Canceled,
            "given up, since the run ends",
        ));
    }
    Ok(())
}

impl ClientState {
    /// Takes the memory of all slots, one after another, unless `is_over`.
    pub(super) fn take_memory<L: Link>(
        &mut self,
        link: &mut L,
        is_over: IsOver<'_>,
    ) -> Result<(), RpcError> {
        let (slots, each) = (self.setup.slots, self.setup.payload.buffer());
        if each == 0 {
            return Ok(());
        }
        machine_memory::check(each.saturating_mul(u64::from(slots)), || {
            format!("{slots} RPCs at once, each with a buffer of {each} bytes,")
        })?;
        for slot in 0..slots {
            unless_over(is_over)?;
            let region = self.new_region(link)?;
            self.slots.get(slot).region = Some(region);
        }
        Ok(())
    }
}
