//! Proving that both sides of a connection for RPCs know one token, without saying it.
//!
//! In: a token, both greetings, the side. Out: a proof, or whether one is right. Not here: the hash
//! (`weir_sys::token`), when it is asked for (`server::pending`, `client::dial`).

use std::path::Path;

use weir_sys::token::{Protocol, ProvingSide};
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
    let side = match side {
        LinkSide::Client => ProvingSide::Client,
        LinkSide::Server => ProvingSide::Server,
    };
    token.proof(Protocol::Rpc, [hello, reply], side)
}
