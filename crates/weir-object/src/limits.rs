//! Limits of keys, extents and calls.
//!
//! In: what a caller gives. Out: the refusal, where it is outside of the model's limits.

use crate::ObjectCode;
use crate::array::range;
use crate::error::fail;
use crate::store::{
    Epoch, EpochRange, Iod, IodKind, KeyOrder, MAX_IODS, MAX_KEY, MAX_LEXICAL_KEY, MAX_RECORDS,
    MAX_VALUE, ObjectId, RecordExtent, Result,
};

/// Most extents of one attribute key and call.
const MAX_EXTENTS: usize = 128;

pub(super) fn check_epoch(epoch: Epoch) -> Result<()> {
    if epoch.0 == 0 || epoch.0 == u64::MAX {
        return fail(ObjectCode::Inval, "epochs lie between 1 and 2^64 - 2");
    }
    Ok(())
}

pub(super) fn check_range(range: EpochRange) -> Result<()> {
    if range.after >= range.upto {
        return fail(ObjectCode::Inval, "the range of epochs is empty");
    }
    check_epoch(range.upto)
}

pub(super) fn check_key(key: &[u8], order: KeyOrder) -> Result<()> {
    match order {
        _ if key.is_empty() => fail(ObjectCode::Inval, "a key is empty"),
        _ if key.len() > MAX_KEY => fail(ObjectCode::Inval, "a key is longer than 64 KiB"),
        KeyOrder::Integer if key.len() != 8 => {
            fail(ObjectCode::Inval, "an integer key has not 8 bytes")
        }
        KeyOrder::Lexical if key.len() > MAX_LEXICAL_KEY => {
            fail(ObjectCode::Inval, "a lexical key is longer than 80 bytes")
        }
        _ => Ok(()),
    }
}

pub(super) fn check_akey(object: ObjectId, akey: &[u8]) -> Result<()> {
    if object.is_flat() && akey.is_empty() {
        return Ok(());
    }
    check_key(akey, object.akeys())
}

pub(super) fn check_extent(extent: RecordExtent) -> Result<()> {
    let end = extent.index.checked_add(extent.count);
    if extent.count == 0 || end.is_none_or(|end| end > MAX_RECORDS) {
        return fail(
            ObjectCode::Inval,
            "an extent is empty or ends behind 2^63 records",
        );
    }
    Ok(())
}

/// Checks a call's descriptors; the bytes of its data.
pub(super) fn check_iods(object: ObjectId, iods: &[Iod<'_>]) -> Result<u64> {
    if iods.is_empty() || iods.len() > MAX_IODS {
        return fail(ObjectCode::Inval, "a call has 1 to 128 attribute keys");
    }
    let mut total = 0;
    for (number, iod) in iods.iter().enumerate() {
        check_akey(object, iod.akey)?;
        if iods[..number].iter().any(|other| other.akey == iod.akey) {
            return fail(ObjectCode::Inval, "an attribute key occurs twice");
        }
        let mut records = 1;
        if iod.kind == IodKind::Array {
            if iod.extents.is_empty() || iod.extents.len() > MAX_EXTENTS {
                return fail(ObjectCode::Inval, "an array has 1 to 128 extents");
            }
            records = 0_u64;
            for &extent in iod.extents {
                check_extent(extent)?;
                records = records.saturating_add(extent.count);
            }
        }
        let bytes = iod.size.saturating_mul(records);
        if bytes > MAX_VALUE {
            return fail(ObjectCode::Inval, "a value is longer than 1 GiB");
        }
        total += bytes;
    }
    Ok(total)
}

/// Refuses extents of one call that overlap.
pub(super) fn check_apart(extents: &[RecordExtent]) -> Result<()> {
    let ascending = |pair: &[RecordExtent]| range(pair[0]).1 <= pair[1].index;
    if extents.windows(2).all(ascending) {
        return Ok(());
    }
    let mut sorted = extents.to_vec();
    sorted.sort_by_key(|extent| extent.index);
    if sorted.windows(2).all(ascending) {
        return Ok(());
    }
    fail(ObjectCode::Inval, "extents of one call overlap")
}

/// Extents of a descriptor; of a single value one, with one record.
pub(super) fn extents_of<'a>(iod: &Iod<'a>) -> &'a [RecordExtent] {
    match iod.kind {
        IodKind::Single => &[RecordExtent { index: 0, count: 1 }],
        IodKind::Array => iod.extents,
    }
}
