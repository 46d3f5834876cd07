//! Why a call or a connection failed: a code that travels in one number, and words.
//!
//! In: what went wrong. Out: a code of the DER family, as results and peers name it. Not here:
//! what a caller does about it.

use std::borrow::Cow;
use std::fmt;
use std::io;

use weir_run::failure;
use weir_schema::{Failure, UNKNOWN_RPC_ERROR, rpc_error_name};

/// Codes below this one are none of the operating system's.
const BASE: i32 = -1000;

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $number:literal;)*) => {
        /// A reason with a number that all sides know.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum DerCode {
            $($(#[$doc])* $name,)*
        }

        impl DerCode {
            /// The negative number, as results hold it.
            pub fn number(self) -> i32 {
                match self { $(Self::$name => $number,)* }
            }

            /// The code of a negative number; `None` where the number has no name here.
            pub fn from_number(number: i32) -> Option<Self> {
                match number { $($number => Some(Self::$name),)* _ => None }
            }

            /// Every code.
            pub const ALL: &[Self] = &[$(Self::$name),*];
        }
    };
}

codes! {
    /// Not allowed: no token, a wrong one, or a service that is switched off.
    NoPermission = -1001;
    /// The request makes no sense.
    Invalid = -1003;
    /// It is there already.
    Exists = -1004;
    /// No such group, rank, tag, session or key.
    NotThere = -1005;
    /// The connection is lost or cannot be made.
    Unreachable = -1006;
    /// No space for data that are to be kept.
    NoSpace = -1007;
    /// No memory, or more than the limits allow.
    NoMemory = -1009;
    /// No such service or operation.
    NoService = -1010;
    /// The answer did not come in time.
    TimedOut = -1011;
    /// Somebody else is at it.
    Busy = -1012;
    /// The other side broke the protocol.
    Protocol = -1014;
    /// More than fits.
    Overflow = -1017;
    /// Cancelled before it was answered.
    Canceled = -1018;
    /// Something else, which the words name.
    Other = -1025;
    /// Storage failed.
    Storage = -2001;
    /// A key that is longer than the limit.
    KeyTooBig = -2012;
    /// A value that is longer than the limit.
    RecordTooBig = -2013;
    /// Data that differ from the data that were sent.
    Mismatch = -2021;
}

impl DerCode {
    /// Its name, as `DER_UNREACH`.
    pub fn name(self) -> &'static str {
        rpc_error_name(self.number()).unwrap_or(UNKNOWN_RPC_ERROR)
    }

    /// As a frame carries it: the distance below -1000; never 0, which means success.
    pub fn to_status(self) -> u16 {
        u16::try_from(BASE - self.number()).unwrap_or(u16::MAX)
    }

    /// The code of a status that is not 0; numbers without a name become [`DerCode::Other`].
    pub fn from_status(status: u16) -> Self {
        Self::from_number(BASE - i32::from(status)).unwrap_or(Self::Other)
    }

    /// As the result of an operation.
    #[inline]
    pub fn result(self) -> i64 {
        i64::from(self.number())
    }
}

impl fmt::Display for DerCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "-{} ({})", self.name(), self.number())
    }
}

/// Error of a call or a connection, by code and in words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct RpcError {
    /// For counters and peers.
    pub code: DerCode,
    /// For people: what, why, and what to do where that is known.
    pub message: Cow<'static, str>,
}

impl RpcError {
    /// An error of this code.
    pub fn new(code: DerCode, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }

    /// The other side broke the protocol.
    pub fn protocol(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(DerCode::Protocol, message)
    }

    /// The error that a frame's status and words say.
    pub(crate) fn said(status: u16, words: &[u8]) -> Self {
        let words = String::from_utf8_lossy(words).into_owned();
        Self::new(DerCode::from_status(status), words)
    }

    /// The system refused what was tried, a verb phrase.
    pub fn io(what: impl fmt::Display) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::new(DerCode::Unreachable, format!("cannot {what}: {error}"))
    }
}

impl From<RpcError> for io::Error {
    fn from(error: RpcError) -> Self {
        Self::other(error)
    }
}

/// Failure of a job whose connection or session could not be had.
pub fn refused(why: &RpcError) -> Failure {
    let cause = match why.code {
        DerCode::NoPermission => "authentication",
        DerCode::Mismatch | DerCode::Other => "engine",
        _ => "missing",
    };
    failure(cause, None, format!("{why} [{}]", why.code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_comes_back_from_its_number_and_its_status() {
        for &code in DerCode::ALL {
            assert_eq!(DerCode::from_number(code.number()), Some(code));
            assert_eq!(DerCode::from_status(code.to_status()), code);
            assert_ne!(code.to_status(), 0);
            assert_ne!(code.name(), UNKNOWN_RPC_ERROR, "{code:?}");
        }
        assert_eq!(DerCode::from_status(999), DerCode::Other);
        assert_eq!(DerCode::TimedOut.to_string(), "-DER_TIMEDOUT (-1011)");
    }
}
