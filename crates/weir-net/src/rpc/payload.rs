//! What payloads hold when they are checked: a pattern that depends on the call, or a sum.
//!
//! In: a call's name, bytes. Out: bytes that no other call has, and whether bytes are those.

use weir_run::generate::rng::mix64;

use super::wire::RpcId;

/// The word at a place of a call's pattern.
#[inline]
fn word(rpc: RpcId, at: u64) -> [u8; 8] {
    let name = u64::from(rpc.generation) << 32 | u64::from(rpc.slot);
    mix64(name.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ at).to_le_bytes()
}

/// Writes a call's pattern.
pub(super) fn fill(bytes: &mut [u8], rpc: RpcId) {
    for (at, piece) in (0..).zip(bytes.chunks_mut(8)) {
        piece.copy_from_slice(&word(rpc, at)[..piece.len()]);
    }
}

/// Whether bytes are a call's pattern.
pub(super) fn follows(bytes: &[u8], rpc: RpcId) -> bool {
    (0..)
        .zip(bytes.chunks(8))
        .all(|(at, piece)| *piece == word(rpc, at)[..piece.len()])
}

/// The sum of a payload.
pub(super) fn payload_sum(bytes: &[u8]) -> u32 {
    super::wire::sum(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_belongs_to_one_call_and_every_byte_counts() {
        let rpc = RpcId {
            slot: 3,
            generation: 7,
        };
        let mut bytes = vec![0; 1021];
        fill(&mut bytes, rpc);
        assert!(follows(&bytes, rpc));
        assert!(!follows(
            &bytes,
            RpcId {
                slot: 7,
                generation: 3
            }
        ));
        for at in [0, 500, 1020] {
            bytes[at] ^= 1;
            assert!(!follows(&bytes, rpc));
            bytes[at] ^= 1;
        }
    }
}
