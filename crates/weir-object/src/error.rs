//! Errors of object stores, with the names and numbers that their users know.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, ErrorKind};

use crate::store::{Epoch, ObjectId};

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $number:literal $name:literal),+ $(,)?) => {
        /// Cause of an error, by the reference's name and number.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u16)]
        pub enum ObjectCode { $($(#[$doc])* $variant = $number),+ }

        impl ObjectCode {
            /// Every code.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Name without its prefix `DER_`.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }
        }
    };
}

codes! {
    /// The caller may not do this.
    NoPerm = 1001 "NO_PERM",
    /// No such handle.
    NoHdl = 1002 "NO_HDL",
    /// An argument is invalid.
    Inval = 1003 "INVAL",
    /// The item exists.
    Exist = 1004 "EXIST",
    /// The item does not exist.
    NonExist = 1005 "NONEXIST",
    /// No space is left.
    NoSpace = 1007 "NOSPACE",
    /// No memory is left.
    NoMem = 1009 "NOMEM",
    /// The engine lacks this function.
    NoSys = 1010 "NOSYS",
    /// The time limit passed.
    TimedOut = 1011 "TIMEDOUT",
    /// Another user holds it.
    Busy = 1012 "BUSY",
    /// Two things that should agree differ.
    Mismatch = 1031 "MISMATCH",
    /// Input or output failed.
    Io = 2001 "IO",
    /// The epoch can only be read.
    EpRo = 2010 "EP_RO",
    /// The epoch is too old.
    EpOld = 2011 "EP_OLD",
    /// The key is too long.
    Key2Big = 2012 "KEY2BIG",
    /// The value is longer than the limit or the buffer.
    Rec2Big = 2013 "REC2BIG",
    /// The descriptor of the value does not fit what is stored.
    IoInval = 2014 "IO_INVAL",
    /// The stored bytes are not those that were written.
    Csum = 2021 "CSUM",
    /// The transaction has to start again.
    TxRestart = 2025 "TX_RESTART",
}

impl ObjectCode {
    /// Number of the code, positive.
    pub const fn number(self) -> u16 {
        self as u16
    }

    /// True where a place or another user of it is the cause, and not what is asked for.
    pub const fn is_of_place(self) -> bool {
        matches!(
            self,
            Self::NonExist | Self::Busy | Self::NoSys | Self::NoPerm
        )
    }

    /// The code of a number, as calls of other programs give it: positive or negative.
    pub(crate) fn of(number: impl Into<i64>) -> Option<Self> {
        let number = number.into().unsigned_abs();
        let mut all = Self::ALL.iter().copied();
        all.find(|code| u64::from(code.number()) == number)
    }

    /// An error of this code that names no item.
    pub(crate) fn error(self, why: impl Into<Cow<'static, str>>) -> ObjectError {
        ObjectError::new(self, why)
    }

    /// The same as the outcome of a call.
    pub(crate) fn fail<T>(self, why: impl Into<Cow<'static, str>>) -> Result<T, ObjectError> {
        Err(self.error(why))
    }
}

impl fmt::Display for ObjectCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DER_{}(-{})", self.name(), self.number())
    }
}

/// Item at which an operation failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorPlace {
    /// The object.
    pub object: ObjectId,
    /// Distribution key; empty where the whole object is meant.
    pub dkey: Vec<u8>,
    /// Attribute key; empty where the whole distribution key is meant.
    pub akey: Vec<u8>,
    /// Epoch of the operation.
    pub epoch: Epoch,
}

/// Failure of a call of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectError {
    /// Cause.
    pub code: ObjectCode,
    /// Cause in words, with the remedy where there is one.
    pub message: Cow<'static, str>,
    /// Item that the call was for, if it was for one.
    pub at: Option<Box<ErrorPlace>>,
}

impl ObjectError {
    /// An error that names no item.
    pub fn new(code: ObjectCode, message: impl Into<Cow<'static, str>>) -> Self {
        let message = message.into();
        Self {
            code,
            message,
            at: None,
        }
    }

    /// The same error with the item that the call was for; one that has an item keeps it.
    #[must_use]
    pub fn at(mut self, object: ObjectId, dkey: &[u8], akey: &[u8], epoch: Epoch) -> Self {
        self.at.get_or_insert_with(|| {
            let (dkey, akey) = (dkey.to_vec(), akey.to_vec());
            Box::new(ErrorPlace {
                object,
                dkey,
                akey,
                epoch,
            })
        });
        self
    }
}

/// Ends a call with an error of a code, or with a refusal, where something is so.
macro_rules! refuse {
    ($is:expr => $code:ident, $why:expr) => {
        if $is {
            return $crate::ObjectCode::$code.fail($why);
        }
    };
    ($is:expr => $refusal:expr) => {
        if $is {
            return $refusal;
        }
    };
}
pub(crate) use refuse;

/// Code of a failure of the system.
pub(crate) fn code_of_io(error: &io::Error) -> ObjectCode {
    match error.kind() {
        ErrorKind::NotFound => ObjectCode::NonExist,
        ErrorKind::AlreadyExists => ObjectCode::Exist,
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => ObjectCode::NoPerm,
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
            ObjectCode::NoSpace
        }
        ErrorKind::WouldBlock => ObjectCode::Busy,
        _ => ObjectCode::Io,
    }
}

impl fmt::Display for ObjectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)?;
        let Some(at) = &self.at else { return Ok(()) };
        write!(f, " (object {}", at.object)?;
        for (name, key) in [("dkey", &at.dkey), ("akey", &at.akey)] {
            if !key.is_empty() {
                write!(f, ", {name} '{}'", key.escape_ascii())?;
            }
        }
        write!(f, ", epoch {})", at.epoch.0)
    }
}

impl std::error::Error for ObjectError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_code_cause_and_item() {
        let object = ObjectId { hi: 1, lo: 2 };
        let error =
            ObjectError::new(ObjectCode::Csum, "value damaged").at(object, b"d\n", b"", Epoch(7));
        assert_eq!(
            error.to_string(),
            "DER_CSUM(-2021): value damaged (object 1.2, dkey 'd\\n', epoch 7)"
        );
        assert_eq!(error.clone().at(object, b"x", b"y", Epoch(8)), error);
        assert!(ObjectCode::ALL.is_sorted());
    }
}
