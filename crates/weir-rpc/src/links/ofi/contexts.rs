//! Records by which libfabric remembers an operation: 64 bytes each, at a fixed address.
//!
//! In: an operation's number. Out: an address, and the number again from an address that libfabric
//! hands back. A provider in mode `FI_CONTEXT` or `FI_CONTEXT2` keeps what it likes in the record
//! until the operation is done; nothing here reads it.

use std::cell::UnsafeCell;
use std::ffi::c_void;

/// A record that belongs to the provider while its operation is in flight.
#[derive(Debug, Default)]
#[repr(C, align(64))]
struct ContextRecord(UnsafeCell<[u64; 8]>);

/// Records of a fixed number of operations.
#[derive(Debug)]
pub(super) struct Contexts {
    records: Box<[ContextRecord]>,
}

impl Contexts {
    pub(super) fn new(operations: u32) -> Self {
        Self {
            records: (0..operations).map(|_| ContextRecord::default()).collect(),
        }
    }

    /// The record's address; null for an operation that there is not.
    #[inline]
    pub(super) fn address(&self, operation: u32) -> *mut c_void {
        let record = self.records.get(operation as usize);
        record.map_or(std::ptr::null_mut(), |record| record.0.get().cast())
    }

    /// The operation whose record this is; `None` for any other address.
    #[inline]
    pub(super) fn operation(&self, address: *mut c_void) -> Option<u32> {
        let first = self.records.as_ptr().addr();
        let offset = address.addr().checked_sub(first)?;
        let index = offset / size_of::<ContextRecord>();
        let is_record = offset.is_multiple_of(size_of::<ContextRecord>());
        (is_record && index < self.records.len())
            .then(|| u32::try_from(index).ok())
            .flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_is_found_by_the_address_of_its_record_and_by_no_other() {
        let contexts = Contexts::new(3);
        for operation in 0..3 {
            let address = contexts.address(operation);
            assert_eq!(address.addr() % 64, 0);
            assert_eq!(contexts.operation(address), Some(operation));
            assert_eq!(contexts.operation(address.wrapping_byte_add(8)), None);
        }
        let (first, none) = (contexts.address(0), std::ptr::null_mut());
        assert_eq!(contexts.operation(first.wrapping_byte_add(3 * 64)), None);
        assert_eq!(contexts.operation(first.wrapping_byte_sub(64)), None);
        assert_eq!(contexts.operation(none), None);
        assert!(contexts.address(3).is_null());
    }
}
