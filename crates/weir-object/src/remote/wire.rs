//! Bodies of requests and replies.
//!
//! In: values, or bytes that a peer sent. Out: the other. Every length is checked before it is used,
//! and no more is allocated than the body that is read is long. All numbers are little-endian. Not
//! here: what a request does (`server`), when it is sent (`client`).

mod messages;

use crate::prelude::*;
pub(in crate::remote) use messages::Found;
pub use messages::{Counters, Reply, Request, ServerInfo, ValueSum};

/// Most extents of one descriptor.
const MOST_EXTENTS: usize = 128;
/// Longest text of a failure.
const MOST_TEXT: usize = 512;

fn malformed() -> ObjectError {
    ObjectCode::Inval.error("a message between client and server is cut or makes no sense")
}

/// A body that is read field by field.
#[derive(Clone, Copy, Debug)]
pub(super) struct Body<'a>(pub(super) &'a [u8]);

impl<'a> Body<'a> {
    fn block(&mut self, most: usize) -> Result<&'a [u8]> {
        let length = u32::take(self)? as usize;
        refuse!(length > most => Err(malformed()));
        let (bytes, rest) = self.0.split_at_checked(length).ok_or_else(malformed)?;
        self.0 = rest;
        Ok(bytes)
    }

    /// So many fields, bounded by the most there may be.
    fn list<T: Field<'a>>(&mut self, count: usize, most: usize) -> Result<Vec<T>> {
        refuse!(count > most => Err(malformed()));
        (0..count).map(|_| self.get()).collect()
    }

    /// The next field.
    pub(super) fn get<T: Field<'a>>(&mut self) -> Result<T> {
        T::take(self)
    }

    fn end(self) -> Result<()> {
        self.0.is_empty().then_some(()).ok_or_else(malformed)
    }
}

fn put_block(bytes: &[u8], out: &mut Vec<u8>) {
    // Callers keep to the limits of keys and texts.
    u32::try_from(bytes.len()).unwrap_or(u32::MAX).put(out);
    out.extend_from_slice(bytes);
}

/// Part of a body.
pub(super) trait Field<'a>: Sized {
    /// Adds its bytes.
    fn put(&self, out: &mut Vec<u8>);

    /// Reads it.
    fn take(body: &mut Body<'a>) -> Result<Self>;
}

impl<const N: usize> Field<'_> for [u8; N] {
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
    }

    fn take(body: &mut Body<'_>) -> Result<Self> {
        let (bytes, rest) = body.0.split_first_chunk().ok_or_else(malformed)?;
        body.0 = rest;
        Ok(*bytes)
    }
}

macro_rules! numbers {
    ($($kind:ty),*) => {$(
        impl Field<'_> for $kind {
            fn put(&self, out: &mut Vec<u8>) {
                self.to_le_bytes().put(out);
            }

            fn take(body: &mut Body<'_>) -> Result<Self> {
                body.get().map(Self::from_le_bytes)
            }
        }
    )*};
}

numbers!(u8, u16, u32, u64);

/// Structures by their fields.
macro_rules! structures {
    ($life:lifetime: $($kind:ty { $($field:tt),* })*) => {$(
        impl<$life> Field<$life> for $kind {
            fn put(&self, out: &mut Vec<u8>) {
                $(self.$field.put(out);)*
            }

            fn take(body: &mut Body<$life>) -> Result<Self> {
                Ok(Self { $($field: body.get()?),* })
            }
        }
    )*};
}

structures! { 'a:
    ObjectId { hi, lo }
    Epoch { 0 }
    EpochRange { after, upto }
    ContainerId { 0 }
    Conditions { 0 }
    KeyQuery { 0 }
    RecordExtent { index, count }
    FreedVersions { visited, versions, bytes }
    KeyAt<'a> { container, object, dkey }
    QueryAnswer { dkey, akey, extent }
    DamagedValue { object, dkey, akey, extent, epoch }
    StoreStats {
        containers, objects, akeys, versions, value_bytes, log_bytes, deferred_bytes, free_bytes, index_bytes,
        prefault_ns, recovery_ns, recovered, log_damaged
    }
    Counters { updates, fetches, update_bytes, fetch_bytes }
    ClientPlace { target, from, skip }
    ServerInfo { targets, pool, durability, sums }
    ValueSum { kind, sum }
}

/// Values of few, each by its number.
macro_rules! choices {
    ($($kind:ty { $($number:literal $value:ident),* })*) => {$(
        impl Field<'_> for $kind {
            fn put(&self, out: &mut Vec<u8>) {
                out.push(match self { $(Self::$value => $number),* });
            }

            fn take(body: &mut Body<'_>) -> Result<Self> {
                match u8::take(body)? {
                    $($number => Ok(Self::$value),)*
                    _ => Err(malformed()),
                }
            }
        }
    )*};
}

choices! {
    ContainerMode { 0 Create, 1 Open, 2 OpenOrCreate }
    IodKind { 0 Single, 1 Array }
    Durability { 0 None, 1 Process, 2 Power }
    ValueSums { 0 None, 1 Crc32c, 2 Xxh3 }
}

impl Field<'_> for bool {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }

    fn take(body: &mut Body<'_>) -> Result<Self> {
        match u8::take(body)? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(malformed()),
        }
    }
}

impl<'a> Field<'a> for &'a [u8] {
    fn put(&self, out: &mut Vec<u8>) {
        put_block(self, out);
    }

    fn take(body: &mut Body<'a>) -> Result<Self> {
        body.block(MAX_KEY)
    }
}

impl Field<'_> for Vec<u8> {
    fn put(&self, out: &mut Vec<u8>) {
        put_block(self, out);
    }

    fn take(body: &mut Body<'_>) -> Result<Self> {
        body.block(MAX_KEY).map(<[u8]>::to_vec)
    }
}

impl<'a, T: Field<'a>> Field<'a> for Option<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.is_some().put(out);
        if let Some(value) = self {
            value.put(out);
        }
    }

    fn take(body: &mut Body<'a>) -> Result<Self> {
        bool::take(body)?.then(|| body.get()).transpose()
    }
}

/// Variants with fields, each by its number.
macro_rules! variants {
    ($($kind:ident<'a> { $($number:literal $name:ident $(($($field:ident),*))? $({ $($named:ident),* })?)* })*) => {$(
        impl<'a> Field<'a> for $kind<'a> {
            fn put(&self, out: &mut Vec<u8>) {
                match self {
                    $(Self::$name $(($($field),*))? $({ $($named),* })? => {
                        out.push($number);
                        $($($field.put(out);)*)?
                        $($($named.put(out);)*)?
                    })*
                }
            }

            fn take(body: &mut Body<'a>) -> Result<Self> {
                match u8::take(body)? {
                    $($number => {
                        $($(let $field = body.get()?;)*)?
                        $($(let $named = body.get()?;)*)?
                        Ok(Self::$name $(($($field),*))? $({ $($named),* })?)
                    })*
                    _ => Err(malformed()),
                }
            }
        }
    )*};
}

variants! {
    PunchScope<'a> { 0 Object 1 Dkey(dkey) 2 Akey(dkey, akey) 3 Extent(dkey, akey, extent) }
    ListLevel<'a> {
        0 Objects 1 Dkeys(object) 2 Akeys(object, dkey) 3 Visible(object, dkey, akey) 4 Versions(object, dkey, akey)
    }
    ListEntry<'a> { 0 Object(object) 1 Key(key) 2 Version { extent, epoch, bytes, punch } }
}

/// Descriptors of a call: those of a caller, or those that were read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Descriptors<'a> {
    /// A caller's.
    Given(&'a [Iod<'a>]),
    /// From a body: without extents, and those.
    Read(Vec<(Iod<'a>, Vec<RecordExtent>)>),
}

impl Descriptors<'_> {
    fn len(&self) -> usize {
        match self {
            Self::Given(iods) => iods.len(),
            Self::Read(iods) => iods.len(),
        }
    }

    /// Each as a store takes it.
    pub(super) fn each(&self) -> impl Iterator<Item = Iod<'_>> {
        (0..self.len()).map(|number| match self {
            Self::Given(iods) => iods[number],
            Self::Read(iods) => {
                let (iod, extents) = &iods[number];
                Iod { extents, ..*iod }
            }
        })
    }

    /// Bytes of the values.
    ///
    /// # Errors
    /// They are more than travel to a server.
    pub(super) fn room(&self) -> Result<u64> {
        let all = self.each().map(|iod| iod.room());
        let all = all.fold(0, u64::saturating_add);
        refuse!(all > super::LONGEST => Rec2Big, "a call to a server moves 64 MiB at the most");
        Ok(all)
    }
}

impl<'a> Field<'a> for Descriptors<'a> {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(u8::try_from(self.len()).unwrap_or(u8::MAX));
        for iod in self.each() {
            iod.akey.put(out);
            iod.kind.put(out);
            iod.size.put(out);
            if iod.kind == IodKind::Array {
                out.push(u8::try_from(iod.extents.len()).unwrap_or(u8::MAX));
                for extent in iod.extents {
                    extent.put(out);
                }
            }
        }
    }

    fn take(body: &mut Body<'a>) -> Result<Self> {
        let count = usize::from(u8::take(body)?);
        refuse!(count > MAX_IODS => Err(malformed()));
        let mut iods = Vec::with_capacity(count);
        for _ in 0..count {
            let (akey, kind, size) = (body.get()?, body.get()?, body.get()?);
            let mut extents = Vec::new();
            if kind == IodKind::Array {
                let count = usize::from(u8::take(body)?);
                extents = body.list(count, MOST_EXTENTS)?;
            }
            iods.push((Iod::new(akey, kind, size, &[]), extents));
        }
        Ok(Self::Read(iods))
    }
}

/// Place in a listing in an engine's own terms: a number, and bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListPlace {
    /// The number.
    pub next: u64,
    /// The bytes.
    pub key: Vec<u8>,
}

impl Field<'_> for ListPlace {
    fn put(&self, out: &mut Vec<u8>) {
        self.next.put(out);
        put_block(&self.key, out);
    }

    fn take(body: &mut Body<'_>) -> Result<Self> {
        let next = body.get()?;
        // Both keys of a value, and what an engine adds to them.
        let key = body.block(4 * MAX_KEY)?.to_vec();
        Ok(Self { next, key })
    }
}

/// Place in the listings of all targets, as a client's anchor has it.
#[derive(Clone, Debug, Default)]
pub(super) struct ClientPlace {
    pub(super) target: u64,
    /// Place in the target's listing.
    pub(super) from: ListPlace,
    /// Entries from there that are known.
    pub(super) skip: u32,
}

/// Values within a request: everything behind the other fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Values<'a>(pub &'a [u8]);

impl<'a> Field<'a> for Values<'a> {
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.0);
    }

    fn take(body: &mut Body<'a>) -> Result<Self> {
        Ok(Self(std::mem::take(&mut body.0)))
    }
}
