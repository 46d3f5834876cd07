//! Proving that both sides know one token, without saying it.
//!
//! In: a token, both nonces, the side. Out: a proof, or whether one is right. Not here: the hash
//! (`weir_sys::token`), when it is asked for (`server::pending`, `client::dial`).

use std::path::Path;

pub use weir_sys::token::{Token, nonce, same};

use crate::links::LinkSide;
use crate::{DerCode, RpcError};

/// A file's token.
///
/// # Errors
/// As [`Token::read`].
pub fn read_token(path: &Path) -> Result<Token, RpcError> {
    Token::read(path).map_err(|why| RpcError::new(DerCode::NoPermission, why.to_string()))
}

/// The proof of a side: of both greetings as they were sent, with all that they say, and of the side.
pub fn proof(token: &Token, hello: &[u8], reply: &[u8], side: LinkSide) -> [u8; 32] {
    let side: &[u8] = match side {
        LinkSide::Client => b"client",
        LinkSide::Server => b"server",
    };
    let length = (hello.len() as u64).to_le_bytes();
    token.proof(&[b"weir-auth", &length, hello, reply, side])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_depends_on_token_greetings_and_side() {
        let token = Token::new(b"secret".to_vec());
        let other = Token::new(b"secreT".to_vec());
        let of = |token: &Token, hello: &[u8], reply: &[u8], side| proof(token, hello, reply, side);
        let expected = of(&token, b"ab", b"c", LinkSide::Client);
        let others = [
            of(&other, b"ab", b"c", LinkSide::Client),
            of(&token, b"aB", b"c", LinkSide::Client),
            of(&token, b"a", b"bc", LinkSide::Client),
            of(&token, b"ab", b"C", LinkSide::Client),
            of(&token, b"ab", b"c", LinkSide::Server),
        ];
        assert!(same(&expected, &of(&token, b"ab", b"c", LinkSide::Client)));
        assert!(others.iter().all(|other| !same(&expected, other)));
    }
}
