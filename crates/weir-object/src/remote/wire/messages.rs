//! Requests and replies: each a body of fields.
//!
//! In: values, or bytes of a peer. Out: the other. Not here: the fields (`wire`).

use super::{Body, Descriptors, Field, ListPlace, MOST_TEXT, Values, malformed, put_block};
use crate::prelude::*;

/// Requests by the number of their operation.
macro_rules! requests {
    ($($(#[$doc:meta])* $number:literal $name:ident { $($(#[$of:meta])* $field:ident: $kind:ty),* $(,)? })*) => {
        /// Request of a client to a target.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Request<'a> {
            $($(#[$doc])* $name { $($(#[$of])* $field: $kind),* }),*
        }

        impl<'a> Request<'a> {
            /// Adds its body; the number of its operation.
            pub fn encode(&self, out: &mut Vec<u8>) -> u16 {
                match self {
                    $(Self::$name { $($field),* } => {
                        $($field.put(out);)*
                        $number
                    })*
                }
            }

            /// Reads a body.
            ///
            /// # Errors
            /// There is no such operation, or the body is none of it.
            pub fn decode(operation: u16, bytes: &'a [u8]) -> Result<Self> {
                let mut body = Body(bytes);
                let request = match operation {
                    $($number => Self::$name { $($field: body.get()?),* },)*
                    _ => return Err(malformed()),
                };
                body.end()?;
                Ok(request)
            }
        }
    };
}

requests! {
    /// Asks what the server has.
    1 Info {}
    /// Opens or makes a container.
    2 Container {
        /// Its name.
        uuid: StoreUuid,
        /// Open or make.
        mode: ContainerMode,
    }
    /// Writes values, which are in the request or in the caller's memory.
    3 Update {
        /// Distribution key.
        key: KeyAt<'a>,
        /// 0: the server's own time.
        epoch: Epoch,
        /// Conditions.
        conditions: Conditions,
        /// Attribute keys.
        iods: Descriptors<'a>,
        /// Sum of the values, wherever they travel.
        sum: ValueSum,
        /// Values that travel within.
        values: Values<'a>,
    }
    /// Reads values into the reply or the caller's memory.
    4 Fetch {
        /// Distribution key.
        key: KeyAt<'a>,
        /// Epoch of the read.
        epoch: Epoch,
        /// Conditions.
        conditions: Conditions,
        /// Attribute keys.
        iods: Descriptors<'a>,
    }
    /// Hides items.
    5 Punch {
        /// Container.
        container: ContainerId,
        /// Object.
        object: ObjectId,
        /// Items.
        scope: PunchScope<'a>,
        /// 0: the server's own time.
        epoch: Epoch,
        /// Conditions.
        conditions: Conditions,
    }
    /// Lists entries from a place on.
    6 List {
        /// Container.
        container: ContainerId,
        /// Entries to list.
        level: ListLevel<'a>,
        /// Epoch of the read.
        epoch: Epoch,
        /// The engine's place.
        from: ListPlace,
        /// Entries from there that are known.
        skip: u32,
        /// Most entries of the reply.
        most: u32,
    }
    /// Asks for the greatest or smallest items.
    7 Query {
        /// Container.
        container: ContainerId,
        /// Object.
        object: ObjectId,
        /// Wanted items.
        what: KeyQuery,
        /// Epoch of the read.
        epoch: Epoch,
        /// Keys that are given.
        answer: QueryAnswer,
    }
    /// Makes or ends a snapshot.
    8 Snapshot {
        /// Container.
        container: ContainerId,
        /// Epoch.
        epoch: Epoch,
        /// End it.
        ends: bool,
    }
    /// Drops versions.
    9 Pass {
        /// Container.
        container: ContainerId,
        /// Epochs.
        range: EpochRange,
        /// All versions of the range, and not only those that nobody sees.
        discards: bool,
    }
    /// Makes the space of dropped versions usable.
    10 Collect {}
    /// Checks every value.
    11 Scrub {}
    /// Asks for counters.
    12 Stats {}
    /// Destroys a container.
    13 Destroy {
        /// Container.
        container: ContainerId,
    }
}

/// Facts about a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerInfo {
    /// Its targets: their tags are 0 to this.
    pub targets: u32,
    /// Its pool.
    pub pool: StoreUuid,
    /// Failures that acknowledged operations survive.
    pub durability: Durability,
    /// Sums of its values, which travel with them.
    pub sums: ValueSums,
}

/// Operations on values that a target has carried out, and the bytes that they wrote or found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Updates, failed ones too.
    pub updates: u64,
    /// Fetches, failed ones too.
    pub fetches: u64,
    /// Bytes written.
    pub update_bytes: u64,
    /// Bytes found.
    pub fetch_bytes: u64,
}

/// The head of a reply: whether it is a failure.
#[derive(Debug)]
pub struct Reply;

impl Reply {
    /// Adds the head.
    pub fn encode(result: std::result::Result<(), &ObjectError>, out: &mut Vec<u8>) {
        match result {
            Ok(()) => 0_u16.put(out),
            Err(error) => {
                error.code.number().put(out);
                let text = error.message.as_bytes();
                put_block(&text[..text.len().min(MOST_TEXT)], out);
            }
        }
    }

    /// Success or failure, and the body behind the head.
    ///
    /// # Errors
    /// It has no head.
    pub fn decode(bytes: &[u8]) -> Result<(Result<()>, &[u8])> {
        let mut body = Body(bytes);
        let number = u16::take(&mut body)?;
        if number == 0 {
            return Ok((Ok(()), body.0));
        }
        let text = String::from_utf8_lossy(body.block(MOST_TEXT)?).into_owned();
        let code = ObjectCode::of(number).ok_or_else(malformed)?;
        Ok((code.fail(text), body.0))
    }
}

/// Places of values that a fetch found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::remote) struct Found {
    /// Of each descriptor its size and the bytes found.
    pub(in crate::remote) iods: Vec<(u64, u64)>,
    /// Ranges of the data that were found: first byte and length.
    pub(in crate::remote) ranges: Vec<(u64, u64)>,
    /// Their sum.
    pub(in crate::remote) sum: ValueSum,
}

/// Sum of values as their sender had them, in the pool's kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueSum {
    /// Its kind.
    pub kind: ValueSums,
    /// The sum.
    pub sum: u32,
}

impl Default for ValueSum {
    fn default() -> Self {
        let (kind, sum) = (ValueSums::None, 0);
        Self { kind, sum }
    }
}

impl ValueSum {
    /// The sum of bytes.
    pub(in crate::remote) fn of(kind: ValueSums, bytes: &[u8]) -> Self {
        let sum = sum_of(kind, bytes);
        Self { kind, sum }
    }

    /// The sum of ranges of bytes, which lie within them.
    pub(in crate::remote) fn of_ranges(
        kind: ValueSums,
        ranges: &[(u64, u64)],
        bytes: &[u8],
    ) -> Self {
        let sums = ranges.iter().map(|(from, length)| {
            let range = local(*from)..local(from.saturating_add(*length));
            sum_of(kind, bytes.get(range).unwrap_or_default())
        });
        let sum = sums.fold(0_u32, |all, sum| all.rotate_left(1) ^ sum);
        Self { kind, sum }
    }

    /// Fails unless this is the sum of what has arrived.
    pub(in crate::remote) fn check(self, arrived: Self) -> Result<()> {
        let why = "values changed on their way between client and server";
        refuse!(self != arrived => Csum, why);
        Ok(())
    }
}

impl Found {
    pub(in crate::remote) fn put(&self, out: &mut Vec<u8>) {
        for list in [&self.iods, &self.ranges] {
            u16::try_from(list.len()).unwrap_or(u16::MAX).put(out);
            for (first, second) in list {
                first.put(out);
                second.put(out);
            }
        }
        self.sum.put(out);
    }

    /// Reads it; values within the reply follow it.
    pub(in crate::remote) fn take(body: &mut Body<'_>) -> Result<Self> {
        let mut list = |most: usize| {
            let count = usize::from(u16::take(body)?);
            refuse!(count > most => Err(malformed()));
            (0..count).map(|_| Ok((body.get()?, body.get()?))).collect()
        };
        Ok(Self {
            iods: list(MAX_IODS)?,
            ranges: list(super::super::MOST_RANGES)?,
            sum: body.get()?,
        })
    }
}
