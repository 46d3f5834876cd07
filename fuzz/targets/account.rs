//! The account of what peers make a server of remote procedure calls hold.
//!
//! The input is the size of the account (a byte, in KiB), and steps of four bytes: what is done, by whom, how much.
//! The account is never overdrawn, says of each step whether there was enough, and has all back in the end.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_rpc::server::fuzzing::account;

fuzz_target!(|data: &[u8]| {
    if let Some((&size, steps)) = data.split_first() {
        account(u64::from(size) << 10, steps);
    }
});
