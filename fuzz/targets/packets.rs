//! Packets that a link of a packet path may deliver: frames of any length and content.
//!
//! The input begins with three bytes for the side, its handlers, the sizes of messages and of batches. Frames follow,
//! each with its length (two bytes) and how much of it the input says. A thread of that side takes them, puts messages
//! together, handles and answers them; in the end every buffer is free again.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| weir_datapath::fuzzing::packets(data));
