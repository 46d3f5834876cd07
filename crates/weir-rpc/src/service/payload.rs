//! Payloads: their limit, and their bytes when they are checked: a pattern that depends on the call,
//! or a sum.
//!
//! In: a call's name, bytes. Out: bytes that no other call has, and whether bytes are those; whether a
//! session stays within a server's limit.

use weir_run::generate::rng::mix64;
use weir_schema::RpcPayloadKind;

use crate::wire::{OpenRequest, RpcId};
use crate::{DerCode, RpcError};

/// The word at a place of a call's pattern.
#[inline]
fn word(rpc: RpcId, at: u64) -> [u8; 8] {
    let name = u64::from(rpc.generation) << 32 | u64::from(rpc.slot);
    mix64(name.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ at).to_le_bytes()
}

/// Writes a call's pattern.
pub(crate) fn fill(bytes: &mut [u8], rpc: RpcId) {
    for (at, piece) in (0..).zip(bytes.chunks_mut(8)) {
        piece.copy_from_slice(&word(rpc, at)[..piece.len()]);
    }
}

/// True if bytes are a call's pattern.
pub(crate) fn follows(bytes: &[u8], rpc: RpcId) -> bool {
    (0..)
        .zip(bytes.chunks(8))
        .all(|(at, piece)| *piece == word(rpc, at)[..piece.len()])
}

/// Checks that the in-line payloads of a session stay within a server's limit, in bytes.
///
/// # Errors
/// They do not: [`DerCode::Overflow`], with both numbers and what helps.
pub(crate) fn check_inline(asked: &OpenRequest, limit: u64) -> Result<(), RpcError> {
    let ways = [
        ("requests", asked.send_kind, asked.send_size),
        ("replies", asked.reply_kind, asked.reply_size),
    ];
    let too_long = |&(_, kind, size): &(_, RpcPayloadKind, u32)| {
        kind == RpcPayloadKind::Inline && u64::from(size) > limit
    };
    let Some((what, _, size)) = ways.into_iter().find(too_long) else {
        return Ok(());
    };
    let why = format!(
        "in-line {what} of {size} bytes are more than the {limit} bytes that the server takes \
         (`weir rpc serve --max-msg SIZE` says how many; bulk has no such limit)"
    );
    Err(RpcError::new(DerCode::Overflow, why))
}

/// The sum of a payload.
pub(crate) fn payload_sum(bytes: &[u8]) -> u32 {
    crate::wire::sum(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_in_line_payloads_have_a_limit() {
        let asked = |send_kind, reply_kind| OpenRequest {
            send_size: 65,
            reply_size: 70,
            send_kind,
            reply_kind,
            ..OpenRequest::default()
        };
        let bulk = asked(RpcPayloadKind::Bulk, RpcPayloadKind::Bulk);
        assert_eq!(check_inline(&bulk, 64), Ok(()));
        let both = asked(RpcPayloadKind::Inline, RpcPayloadKind::Inline);
        assert_eq!(check_inline(&both, 70), Ok(()));
        let reply = asked(RpcPayloadKind::Bulk, RpcPayloadKind::Inline);
        for (asked, limit, says) in [
            (&both, 64, "requests of 65 bytes are more than the 64"),
            (&both, 69, "replies of 70 bytes are more than the 69"),
            (&reply, 64, "replies of 70 bytes"),
        ] {
            let refused = check_inline(asked, limit).unwrap_err();
            assert_eq!(refused.code, DerCode::Overflow);
            assert!(refused.message.contains(says), "{refused}");
        }
    }

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
