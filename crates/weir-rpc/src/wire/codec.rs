//! Numbers, bytes and text in a frame's body.
//!
//! In: a body. Out: its fields in order, or what is wrong with it. Not here: which fields.

use crate::RpcError;

/// Why bytes are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// It ends too early.
    #[error("a message ends before its `{0}`")]
    Short(&'static str),
    /// There is more than belongs to it.
    #[error("a message is longer than its fields")]
    Long,
    /// A field holds what it may not.
    #[error("a message has a wrong `{0}`")]
    Field(&'static str),
    /// The header's sum is not that of the header.
    #[error("a frame's header has a wrong sum")]
    Checksum,
}

impl From<WireError> for RpcError {
    fn from(error: WireError) -> Self {
        Self::protocol(error.to_string())
    }
}

/// Message of numbers alone: its structure, its bytes, and how they are read.
macro_rules! message_of_numbers {
    ($(#[$what:meta])* pub struct $name:ident {
        $($(#[$which:meta])* pub $field:ident: $number:ident,)*
    }) => {
        $(#[$what])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name {
            $($(#[$which])* pub $field: $number,)*
        }

        impl $name {
            /// Its bytes.
            pub const LENGTH: usize = 0 $(+ size_of::<$number>())*;

            /// As bytes.
            pub fn encode(&self) -> [u8; Self::LENGTH] {
                let mut bytes = [0; Self::LENGTH];
                let mut places = &mut bytes[..];
                $(
                    let place = places.split_off_mut(..size_of::<$number>());
                    if let Some(place) = place {
                        place.copy_from_slice(&self.$field.to_le_bytes());
                    }
                )*
                debug_assert!(places.is_empty());
                bytes
            }

            /// Reads the bytes of the other side.
            ///
            /// # Errors
            /// There are more or fewer.
            pub fn decode(body: &[u8]) -> Result<Self, WireError> {
                let mut body = WireReader::new(body);
                let message = Self {
                    $($field: body.$number(stringify!($field))?,)*
                };
                body.end()?;
                Ok(message)
            }
        }
    };
}
pub(super) use message_of_numbers;

/// Reads a body's fields in order.
#[derive(Clone, Debug)]
pub struct WireReader<'a> {
    rest: &'a [u8],
}

impl<'a> WireReader<'a> {
    /// Over a whole body.
    pub fn new(body: &'a [u8]) -> Self {
        Self { rest: body }
    }

    /// The next bytes.
    ///
    /// # Errors
    /// There are not so many.
    pub fn bytes(&mut self, length: usize, what: &'static str) -> Result<&'a [u8], WireError> {
        let (bytes, rest) = self
            .rest
            .split_at_checked(length)
            .ok_or(WireError::Short(what))?;
        self.rest = rest;
        Ok(bytes)
    }

    /// The next bytes, as many as the array is long.
    ///
    /// # Errors
    /// There are not so many.
    pub fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], WireError> {
        let (bytes, rest) = self
            .rest
            .split_first_chunk()
            .ok_or(WireError::Short(what))?;
        self.rest = rest;
        Ok(*bytes)
    }

    /// The next number.
    ///
    /// # Errors
    /// The body ends before.
    pub fn u8(&mut self, what: &'static str) -> Result<u8, WireError> {
        self.array(what).map(u8::from_le_bytes)
    }

    /// The next number.
    ///
    /// # Errors
    /// The body ends before.
    pub fn u16(&mut self, what: &'static str) -> Result<u16, WireError> {
        self.array(what).map(u16::from_le_bytes)
    }

    /// The next number.
    ///
    /// # Errors
    /// The body ends before.
    pub fn u32(&mut self, what: &'static str) -> Result<u32, WireError> {
        self.array(what).map(u32::from_le_bytes)
    }

    /// The next number.
    ///
    /// # Errors
    /// The body ends before.
    pub fn u64(&mut self, what: &'static str) -> Result<u64, WireError> {
        self.array(what).map(u64::from_le_bytes)
    }

    /// Bytes behind their length (u16), at most so many.
    ///
    /// # Errors
    /// There are more, or the body ends before.
    pub fn block(&mut self, most: usize, what: &'static str) -> Result<&'a [u8], WireError> {
        let length = usize::from(self.u16(what)?);
        if length > most {
            return Err(WireError::Field(what));
        }
        self.bytes(length, what)
    }

    /// Text behind its length (u16), at most so many bytes.
    ///
    /// # Errors
    /// There are more, the body ends before, or it is no UTF-8.
    pub fn text(&mut self, most: usize, what: &'static str) -> Result<String, WireError> {
        let bytes = self.block(most, what)?;
        let text = std::str::from_utf8(bytes).map_err(|_| WireError::Field(what))?;
        Ok(text.to_owned())
    }

    /// Everything that is left.
    pub fn rest(self) -> &'a [u8] {
        self.rest
    }

    /// The message ends here.
    ///
    /// # Errors
    /// It does not.
    pub fn end(self) -> Result<(), WireError> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(WireError::Long)
        }
    }
}

/// Adds bytes behind their length. What is longer than a length can say is cut.
pub(super) fn put_block(out: &mut Vec<u8>, bytes: &[u8]) {
    let length = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(&bytes[..usize::from(length)]);
}
