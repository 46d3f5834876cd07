//! The greeting of ranks' streams, for a fuzz target.
//!
//! In: a stream whose other end says what it likes. Out: whether that end is taken for a rank of the run.

use std::net::TcpStream;

use weir_sys::token::Token;

use crate::transport::tcp::greeting::{self, Greeting};

/// Bytes of a greeting.
pub const HELLO: usize = greeting::HELLO;
/// Looks so often at a stream: more than it can have parts.
const LOOKS: usize = 8;

/// True if the other end of a stream has proved itself: one that called, or, with the greeting that was sent to it,
/// one that was called.
pub fn is_rank(stream: TcpStream, token: &Token, hello: Option<&[u8]>) -> bool {
    let Ok(mut greeting) = Greeting::new(stream, hello.unwrap_or_default().to_vec()) else {
        return false;
    };
    for _ in 0..LOOKS {
        let met = if hello.is_some() {
            greeting.answered(token)
        } else {
            greeting.called(token)
        };
        match met {
            Ok(false) => {}
            Ok(true) => return true,
            Err(_) => return false,
        }
    }
    false
}
