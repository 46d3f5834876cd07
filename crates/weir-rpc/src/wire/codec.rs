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

/// A field of a message.
pub(super) trait WireField: Sized {
    /// Adds its bytes.
    fn put(&self, out: &mut Vec<u8>);

    /// Reads it; text and bytes have at most so many.
    fn take(body: &mut WireReader<'_>, what: &'static str, most: usize) -> Result<Self, WireError>;
}

/// Declares types to be fields: how they are written and read.
macro_rules! fields {
    ($($kind:ty: |$value:ident, $out:ident| $put:expr, |$body:ident, $what:ident, $most:ident| $take:expr;)*) => {$(
        impl WireField for $kind {
            fn put(&self, $out: &mut Vec<u8>) {
                let $value = self;
                $put;
            }

            fn take(
                $body: &mut WireReader<'_>,
                $what: &'static str,
                $most: usize,
            ) -> Result<Self, WireError> {
                $take
            }
        }
    )*};
}
pub(super) use fields;

fields! {
    u8: |number, out| out.push(*number), |body, what, _most| body.u8(what);
    u16: |number, out| out.extend_from_slice(&number.to_le_bytes()), |body, what, _most| body.u16(what);
    u32: |number, out| out.extend_from_slice(&number.to_le_bytes()), |body, what, _most| body.u32(what);
    u64: |number, out| out.extend_from_slice(&number.to_le_bytes()), |body, what, _most| body.u64(what);
    [u8; 16]: |bytes, out| out.extend_from_slice(bytes), |body, what, _most| body.array(what);
    [u8; 32]: |bytes, out| out.extend_from_slice(bytes), |body, what, _most| body.array(what);
    bool: |is_true, out| out.push(u8::from(*is_true)), |body, what, _most| match body.u8(what)? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(WireError::Field(what)),
    };
    String: |text, out| put_block(out, text.as_bytes()), |body, what, most| body.text(most, what);
    Vec<u8>: |bytes, out| put_block(out, bytes), |body, what, most| {
        body.block(most, what).map(<[u8]>::to_vec)
    };
}

/// Message with text or with rules: its structure, its bytes in the order of the fields, and how they are
/// read. A field may have a longest length; a rule says which field is wrong, and when.
macro_rules! message {
    ($(#[$what:meta])* pub struct $name:ident {
        $($(#[$which:meta])* pub $field:ident: $kind:ty $([$most:expr])?,)*
    } $($wrong:literal if |$message:ident| $rule:expr)?) => {
        $(#[$what])*
        pub struct $name {
            $($(#[$which])* pub $field: $kind,)*
        }

        impl $name {
            /// As bytes.
            pub fn encode(&self, out: &mut Vec<u8>) {
                $(WireField::put(&self.$field, out);)*
            }

            /// Reads the bytes of the other side.
            ///
            /// # Errors
            /// It is cut or longer, or a field is out of bounds.
            pub fn decode(body: &[u8]) -> Result<Self, WireError> {
                let mut body = WireReader::new(body);
                let message = Self {
                    $($field: WireField::take(&mut body, stringify!($field), 0 $(+ $most)?)?,)*
                };
                body.end()?;
                $(
                    let $message = &message;
                    if $rule {
                        return Err(WireError::Field($wrong));
                    }
                )?
                Ok(message)
            }
        }
    };
}
pub(super) use message;

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
        let split = self.rest.split_at_checked(length);
        let (bytes, rest) = split.ok_or(WireError::Short(what))?;
        self.rest = rest;
        Ok(bytes)
    }

    /// The next bytes, as many as the array is long.
    ///
    /// # Errors
    /// There are not so many.
    pub fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], WireError> {
        let split = self.rest.split_first_chunk();
        let (bytes, rest) = split.ok_or(WireError::Short(what))?;
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
fn put_block(out: &mut Vec<u8>, bytes: &[u8]) {
    let length = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(&bytes[..usize::from(length)]);
}
