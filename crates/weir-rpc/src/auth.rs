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

/// The proof of a side.
pub fn proof(token: &Token, client: &[u8; 16], server: &[u8; 16], side: LinkSide) -> [u8; 32] {
    let side: &[u8] = match side {
        LinkSide::Client => b"client",
        LinkSide::Server => b"server",
    };
    token.proof(&[b"weir-auth", client, server, side])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_depends_on_token_nonces_and_side() {
        let token = Token::new(b"secret".to_vec());
        let expected = proof(&token, &[1; 16], &[2; 16], LinkSide::Client);
        let others = [
            proof(
                &Token::new(b"secreT".to_vec()),
                &[1; 16],
                &[2; 16],
                LinkSide::Client,
            ),
            proof(&token, &[3; 16], &[2; 16], LinkSide::Client),
            proof(&token, &[1; 16], &[3; 16], LinkSide::Client),
            proof(&token, &[1; 16], &[2; 16], LinkSide::Server),
        ];
        assert!(same(
            &expected,
            &proof(&token, &[1; 16], &[2; 16], LinkSide::Client)
        ));
        assert!(others.iter().all(|other| !same(&expected, other)));
    }
}
