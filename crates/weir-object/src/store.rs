//! The model: pools, containers, objects, keys, values and epochs, and the calls of every engine.
//!
//! In: calls of [`ObjectStore`] by one thread. Out: bytes that were found, or an [`ObjectError`].
//! A read at epoch `e` returns of every single value, and of every record of an array, the version
//! with the greatest epoch up to `e`; a punch hides everything below it whose epoch is not greater.
//! Epochs may arrive in any order. Not here: how an engine holds any of it.

use std::fmt;

use weir_schema::ObjectRank;

pub use crate::conditions::Conditions;
use crate::error::{ObjectCode, ObjectError};
pub use crate::listing::{ListAnchor, ListEntry, ListLevel};
pub use crate::pool::{
    ContainerMode, DamagedValue, DiskLibrary, Durability, FreedVersions, PoolMode, PoolSpec,
    Prefault, StoreStats, ValueSums,
};

/// Answer of a call of a store.
pub type Result<T, E = ObjectError> = std::result::Result<T, E>;

/// Longest key in bytes.
pub const MAX_KEY: usize = 64 << 10;
/// Longest key of a lexical level in bytes.
pub const MAX_LEXICAL_KEY: usize = 80;
/// Longest value of one call and attribute key in bytes.
pub const MAX_VALUE: u64 = 1 << 30;
/// Most records of an array: every extent ends at or before this index.
pub const MAX_RECORDS: u64 = 1 << 63;
/// Most attribute keys of one call.
pub const MAX_IODS: usize = 128;

/// Name of an object, 128 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectId {
    /// High word: type in bits 56–63, class in 48–55, class parameter in 32–47, free bits below.
    pub hi: u64,
    /// Low word.
    pub lo: u64,
}

/// Order and form of the keys of one level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyOrder {
    /// Any bytes, in no order.
    Hashed,
    /// Exactly eight bytes, little-endian, ordered as numbers.
    Integer,
    /// Up to [`MAX_LEXICAL_KEY`] bytes, ordered as bytes.
    Lexical,
}

impl ObjectId {
    /// Order of the distribution keys.
    pub const fn dkeys(self) -> KeyOrder {
        match self.hi >> 56 {
            2 | 4 | 9 | 11 | 12 | 13 => KeyOrder::Integer,
            5 | 7 | 10 => KeyOrder::Lexical,
            _ => KeyOrder::Hashed,
        }
    }

    /// Order of the attribute keys.
    pub const fn akeys(self) -> KeyOrder {
        match self.hi >> 56 {
            3 | 4 => KeyOrder::Integer,
            6 | 7 => KeyOrder::Lexical,
            _ => KeyOrder::Hashed,
        }
    }

    /// True for classes that keep all of an object on one target.
    pub const fn is_on_one_target(self) -> bool {
        (self.hi >> 32) & 0xffff == 1
    }

    /// True for types without a level of attribute keys, whose calls may give an empty one.
    pub const fn is_flat(self) -> bool {
        matches!(self.hi >> 56, 8..=13)
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.hi, self.lo)
    }
}

/// A point of the store's time. 0 and `u64::MAX` are invalid for updates and punches; a read at
/// `Epoch::LATEST` sees everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Epoch(pub u64);

impl Epoch {
    /// The greatest epoch that an update may have, at which a read sees every version.
    pub const LATEST: Self = Self(u64::MAX - 1);
}

/// Epochs above `after`, up to and with `upto`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpochRange {
    /// Greatest epoch below the range.
    pub after: Epoch,
    /// Last epoch of the range.
    pub upto: Epoch,
}

/// 128-bit name of a pool or a container.
pub type StoreUuid = [u8; 16];

/// Container of an open store, valid until the store is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ContainerId(pub u32);

/// Records `index` to `index + count - 1` of an array.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RecordExtent {
    /// First record.
    pub index: u64,
    /// Number of records, at least 1.
    pub count: u64,
}

/// Form of the value of an attribute key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IodKind {
    /// One blob, written and read whole.
    Single,
    /// An array of records of equal size.
    Array,
}

/// Descriptor of one attribute key's part of a call.
///
/// The parts of a call lie one behind the other in its data, extents in their order. A part has
/// `size` bytes for a single value, and `size` times the records of its extents for an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Iod<'a> {
    /// The attribute key.
    pub akey: &'a [u8],
    /// Form of the value.
    pub kind: IodKind,
    /// Bytes of the single value, or of one record. A fetch gives the room for a single value and gets
    /// the value's length, 0 for an absent one; of an array it gets the stored record size, or 0.
    pub size: u64,
    /// Extents of an array; ignored for a single value.
    pub extents: &'a [RecordExtent],
    /// Bytes that a fetch found; holes are not counted and leave the data as they are.
    pub found: u64,
}

impl<'a> Iod<'a> {
    /// A single value.
    pub const fn single(akey: &'a [u8], size: u64) -> Self {
        Self::new(akey, IodKind::Single, size, &[])
    }

    /// Extents of an array.
    pub const fn array(akey: &'a [u8], size: u64, extents: &'a [RecordExtent]) -> Self {
        Self::new(akey, IodKind::Array, size, extents)
    }

    pub(crate) const fn new(
        akey: &'a [u8],
        kind: IodKind,
        size: u64,
        extents: &'a [RecordExtent],
    ) -> Self {
        Self {
            akey,
            kind,
            size,
            extents,
            found: 0,
        }
    }

    /// Bytes of its part of the data.
    #[inline]
    pub(crate) fn room(&self) -> u64 {
        let counts = self.extents.iter().map(|extent| extent.count);
        let records = counts.fold(0, u64::saturating_add);
        match self.kind {
            IodKind::Single => self.size,
            IodKind::Array => self.size.saturating_mul(records),
        }
    }

    /// Its extents; of a single value one, with one record.
    pub(crate) fn extents(&self) -> &'a [RecordExtent] {
        match self.kind {
            IodKind::Single => &[RecordExtent { index: 0, count: 1 }],
            IodKind::Array => self.extents,
        }
    }
}

/// Distribution key that a call is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyAt<'a> {
    /// Its container.
    pub container: ContainerId,
    /// Its object.
    pub object: ObjectId,
    /// The key.
    pub dkey: &'a [u8],
}

/// Distribution key, time and conditions of a call on values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallAt<'a> {
    pub(crate) key: KeyAt<'a>,
    pub(crate) epoch: Epoch,
    pub(crate) conditions: Conditions,
}

impl<'a> CallAt<'a> {
    pub(crate) const fn new(key: KeyAt<'a>, epoch: Epoch, conditions: Conditions) -> Self {
        Self {
            key,
            epoch,
            conditions,
        }
    }
}

/// Outcome of an operation that the store took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Ticket {
    /// Complete, with the bytes that it wrote or found.
    Done(u64),
    /// In flight: [`ObjectStore::poll`] gives the completion of this number.
    Waits(u64),
}

/// End of an operation that was in flight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Number of its ticket.
    pub ticket: u64,
    /// Bytes that it wrote or found.
    pub result: Result<u64>,
}

/// Space for a value that its writer fills in place.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub struct Reserved {
    /// Place in the engine's memory.
    pub(crate) at: u64,
    /// Length in bytes.
    pub(crate) len: u64,
}

/// One fetch of a batch.
#[derive(Debug)]
pub struct FetchRequest<'a> {
    /// Distribution key.
    pub key: KeyAt<'a>,
    /// Attribute keys, as of [`ObjectStore::fetch`].
    pub iods: &'a mut [Iod<'a>],
    /// Epoch of the read.
    pub epoch: Epoch,
    /// Conditions.
    pub conditions: Conditions,
    /// Room for the bytes.
    pub data: &'a mut [u8],
    /// Outcome, filled by the store.
    pub result: Result<Ticket>,
}

/// Items that a punch hides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PunchScope<'a> {
    /// The whole object.
    Object,
    /// A distribution key.
    Dkey(&'a [u8]),
    /// An attribute key of a distribution key.
    Akey(&'a [u8], &'a [u8]),
    /// Records of an array below a distribution key and an attribute key.
    Extent(&'a [u8], &'a [u8], RecordExtent),
}

impl<'a> PunchScope<'a> {
    /// Its distribution key and its attribute key.
    pub(crate) fn keys(self) -> (Option<&'a [u8]>, Option<&'a [u8]>) {
        match self {
            Self::Object => (None, None),
            Self::Dkey(dkey) => (Some(dkey), None),
            Self::Akey(dkey, akey) | Self::Extent(dkey, akey, _) => (Some(dkey), Some(akey)),
        }
    }
}

/// Wanted greatest or smallest items. [`KeyQuery::MAX`] or [`KeyQuery::MIN`] with the levels to search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct KeyQuery(pub u32);

impl KeyQuery {
    /// The greatest.
    pub const MAX: Self = Self(1);
    /// The smallest.
    pub const MIN: Self = Self(2);
    /// Search the distribution keys, which are integers or lexical.
    pub const DKEY: Self = Self(4);
    /// Search the attribute keys, which are integers or lexical.
    pub const AKEY: Self = Self(8);
    /// Search the visible extents.
    pub const EXTENT: Self = Self(16);

    /// This and `other`.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// True if `other` is asked for.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// Keys and extent of a query: those that are not searched are given by the caller.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueryAnswer {
    /// Distribution key.
    pub dkey: Vec<u8>,
    /// Attribute key.
    pub akey: Vec<u8>,
    /// Extent: the visible one that holds the last (or first) record.
    pub extent: RecordExtent,
}

/// A versioned store, used by one thread at a time. Each engine has its own way to open a pool.
///
/// # Errors
/// Input outside the limits is `INVAL`, `KEY2BIG` or `REC2BIG`; a failed call changes nothing.
#[expect(clippy::missing_errors_doc, reason = "said once for all calls")]
pub trait ObjectStore: Send {
    /// True where the store gives updates, punches and snapshots their epochs: they are at
    /// [`Epoch::LATEST`], and reads there or at a snapshot.
    fn has_own_epochs(&self) -> bool {
        false
    }

    /// Creates or opens a container.
    fn container(&mut self, uuid: StoreUuid, mode: ContainerMode) -> Result<ContainerId>;

    /// Destroys a container with all that is in it. Its number is not given again.
    fn drop_container(&mut self, container: ContainerId) -> Result<()>;

    /// Writes the values of one or more attribute keys, all or none of them. The same bytes at the
    /// same epoch again are a success; other bytes are `EXIST`.
    fn update(
        &mut self,
        key: KeyAt<'_>,
        iods: &[Iod<'_>],
        epoch: Epoch,
        conditions: Conditions,
        data: &[u8],
    ) -> Result<Ticket>;

    /// Reads values into `data`. A single value longer than its room is `REC2BIG`, with its length
    /// in the descriptor.
    fn fetch(
        &mut self,
        key: KeyAt<'_>,
        iods: &mut [Iod<'_>],
        epoch: Epoch,
        conditions: Conditions,
        data: &mut [u8],
    ) -> Result<Ticket>;

    /// Takes the bytes of a fetch whose completion [`ObjectStore::poll`] gave.
    fn receive(&mut self, ticket: u64, iods: &mut [Iod<'_>], data: &mut [u8]) -> Result<u64> {
        let _ = (ticket, iods, data);
        ObjectCode::NoHdl.fail("no fetch is in flight")
    }

    /// Carries several fetches out, each with its own result. Engines overlap what they wait for.
    fn fetch_batch(&mut self, batch: &mut [FetchRequest<'_>]) {
        for one in batch {
            one.result = self.fetch(one.key, one.iods, one.epoch, one.conditions, one.data);
        }
    }

    /// Space for one value (a single one, or one extent), to be filled and then published.
    fn reserve(&mut self, key: KeyAt<'_>, iod: &Iod<'_>) -> Result<Reserved> {
        let _ = (key, iod);
        ObjectCode::NoSys.fail("only mem has values that are filled in place (-z)")
    }

    /// Bytes of a reserved space.
    fn reserved(&mut self, reserved: &Reserved) -> &mut [u8] {
        let _ = reserved;
        &mut []
    }

    /// Makes a reserved value the version of its epoch. On failure the space is given back.
    fn publish(
        &mut self,
        key: KeyAt<'_>,
        iod: &Iod<'_>,
        epoch: Epoch,
        conditions: Conditions,
        reserved: Reserved,
    ) -> Result<Ticket> {
        let _ = (epoch, conditions, reserved);
        self.reserve(key, iod).map(|_| Ticket::Done(0))
    }

    /// Gives a reserved space back unused.
    fn cancel(&mut self, reserved: Reserved) {
        let _ = reserved;
    }

    /// Hides what has an epoch up to the given one.
    fn punch(
        &mut self,
        container: ContainerId,
        object: ObjectId,
        scope: PunchScope<'_>,
        epoch: Epoch,
        conditions: Conditions,
    ) -> Result<Ticket>;

    /// Visits items from the anchor on that exist at the epoch, until the visitor returns false.
    fn list(
        &mut self,
        container: ContainerId,
        level: ListLevel<'_>,
        epoch: Epoch,
        anchor: &mut ListAnchor,
        visit: &mut dyn FnMut(ListEntry<'_>) -> bool,
    ) -> Result<()>;

    /// Finds the greatest or smallest keys or extent that exist at the epoch; `NONEXIST` if none do.
    fn query(
        &mut self,
        container: ContainerId,
        object: ObjectId,
        what: KeyQuery,
        epoch: Epoch,
        answer: &mut QueryAnswer,
    ) -> Result<()>;

    /// Keeps what is visible at the epoch from aggregation; the epoch at which it is read, another one
    /// only where the store has its own or, asked at 0, a server chooses it.
    fn snapshot(&mut self, container: ContainerId, epoch: Epoch) -> Result<Epoch>;

    /// Ends the protection of a snapshot.
    fn drop_snapshot(&mut self, container: ContainerId, epoch: Epoch) -> Result<()>;

    /// Drops the versions of the range that are visible neither at its end nor at a snapshot.
    fn aggregate(&mut self, container: ContainerId, range: EpochRange) -> Result<FreedVersions> {
        self.pass(container, range, false)
    }

    /// Drops every version of the range; older ones become visible again.
    fn discard(&mut self, container: ContainerId, range: EpochRange) -> Result<FreedVersions> {
        self.pass(container, range, true)
    }

    /// Aggregates, or discards.
    fn pass(&mut self, id: ContainerId, range: EpochRange, discards: bool)
    -> Result<FreedVersions>;

    /// Makes the space of dropped versions usable; the bytes that it gained.
    fn collect(&mut self) -> Result<u64>;

    /// Reads every value and visits the damaged ones; the number of values that have a sum.
    fn scrub(&mut self, visit: &mut dyn FnMut(&DamagedValue)) -> Result<u64>;

    /// Counters.
    fn stats(&self) -> StoreStats;

    /// Memory node of the store and node of the CPU that asks, where there is such memory and the kernel says both.
    fn nodes(&self) -> Option<(u32, u32)> {
        None
    }

    /// Puts what the engine alone knows of its pool into a result.
    fn describe(&self, container: ContainerId, rank: &mut ObjectRank) {
        let _ = (container, rank);
    }

    /// Appends ends of operations in flight, after a moment's wait for `min` of them at most; their number.
    fn poll(&mut self, out: &mut Vec<Completion>, min: usize) -> usize {
        let _ = (out, min);
        0
    }

    /// Ends the use of the pool; the file stays.
    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}
