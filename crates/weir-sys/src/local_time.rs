//! The local time zone, for reports that print local time as their peers do.
#![expect(unsafe_code, reason = "the C library knows the time zone")]

use std::mem::MaybeUninit;

/// Local time minus UTC in seconds, at a time since 1970; 0 where the library cannot tell.
pub fn utc_offset_s(unix_s: u64) -> i32 {
    let Ok(time) = libc::time_t::try_from(unix_s) else {
        return 0;
    };
    let mut broken_down = MaybeUninit::<libc::tm>::zeroed();
    // SAFETY: both pointers are valid for the call, the second writable for a whole `tm`.
    let filled = unsafe { libc::localtime_r(&raw const time, broken_down.as_mut_ptr()) };
    if filled.is_null() {
        return 0;
    }
    // SAFETY: zeroed above, which is a valid `tm`, and then filled in.
    let local = unsafe { broken_down.assume_init() };
    i32::try_from(local.tm_gmtoff).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_less_than_a_day() {
        assert!(utc_offset_s(1_700_000_000).abs() < 86_400);
    }
}
