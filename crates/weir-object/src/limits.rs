//! Limits of keys, extents and calls.
//!
//! In: what a caller gives. Out: the refusal, where it is outside of the model's limits.

#![expect(clippy::inline_always, reason = "checks of updates and fetches")]

use crate::array::Rect;
use crate::prelude::*;

/// Most extents of one attribute key and call.
const MAX_EXTENTS: usize = 128;

#[inline]
pub(super) fn check_epoch(epoch: Epoch) -> Result<()> {
    refuse!(epoch.0 == 0 || epoch.0 == u64::MAX => Inval, "epochs lie between 1 and 2^64 - 2");
    Ok(())
}

pub(super) fn check_range(range: EpochRange) -> Result<()> {
    refuse!(range.after >= range.upto => Inval, "the range of epochs is empty");
    check_epoch(range.upto)
}

#[inline]
pub(super) fn check_key(key: &[u8], order: KeyOrder) -> Result<()> {
    match order {
        _ if key.is_empty() => ObjectCode::Inval.fail("a key is empty"),
        _ if key.len() > MAX_KEY => ObjectCode::Inval.fail("a key is longer than 64 KiB"),
        KeyOrder::Integer if key.len() != 8 => {
            ObjectCode::Inval.fail("an integer key has not 8 bytes")
        }
        KeyOrder::Lexical if key.len() > MAX_LEXICAL_KEY => {
            ObjectCode::Inval.fail("a lexical key is longer than 80 bytes")
        }
        _ => Ok(()),
    }
}

#[inline]
pub(crate) fn check_akey(object: ObjectId, akey: &[u8]) -> Result<()> {
    if object.is_flat() && akey.is_empty() {
        return Ok(());
    }
    check_key(akey, object.akeys())
}

pub(crate) fn check_extent(extent: RecordExtent) -> Result<()> {
    let end = extent.index.checked_add(extent.count);
    refuse!(extent.count == 0 || end.is_none_or(|end| end > MAX_RECORDS) => Inval,
        "an extent is empty or ends behind 2^63 records");
    Ok(())
}

/// Checks a call's descriptors; the bytes of its data.
pub(crate) fn check_iods(object: ObjectId, iods: &[Iod<'_>]) -> Result<u64> {
    refuse!(iods.is_empty() || iods.len() > MAX_IODS => Inval, "a call has 1 to 128 attribute keys");
    let mut total = 0;
    for (number, iod) in iods.iter().enumerate() {
        check_akey(object, iod.akey)?;
        refuse!(iods[..number].iter().any(|other| other.akey == iod.akey) => Inval,
            "an attribute key occurs twice");
        if iod.kind == IodKind::Array {
            refuse!(iod.extents.is_empty() || iod.extents.len() > MAX_EXTENTS => Inval,
                "an array has 1 to 128 extents");
            for &extent in iod.extents {
                check_extent(extent)?;
            }
        }
        let bytes = iod.room();
        refuse!(bytes > MAX_VALUE => Inval, "a value is longer than 1 GiB");
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
    ObjectCode::Inval.fail("extents of one call overlap")
}

/// Checks what a call on values names; the bytes of its data.
#[inline(always)]
pub(crate) fn check_call(at: &CallAt<'_>, iods: &[Iod<'_>]) -> Result<u64> {
    check_epoch(at.epoch)?;
    check_key(at.key.dkey, at.key.object.dkeys())?;
    check_iods(at.key.object, iods)
}

/// Checks an update; the bytes of its data.
#[inline(always)]
pub(crate) fn check_update(at: &CallAt<'_>, iods: &[Iod<'_>], data: &[u8]) -> Result<u64> {
    let bytes = check_call(at, iods)?;
    refuse!(bytes != data.len() as u64 => Inval, "the data has not the length of the descriptors");
    for iod in iods {
        refuse!(iod.size == 0 => Inval, "a value is empty");
        if iod.kind == IodKind::Array {
            check_apart(iod.extents)?;
        }
    }
    Ok(bytes)
}

/// Checks a fetch.
#[inline(always)]
pub(crate) fn check_fetch(at: &CallAt<'_>, iods: &[Iod<'_>], data: &[u8]) -> Result<()> {
    refuse!(check_call(at, iods)? > data.len() as u64 => Inval,
        "the data has less room than the descriptors say");
    Ok(())
}

/// Checks a punch.
pub(crate) fn check_punch(object: ObjectId, scope: PunchScope<'_>, epoch: Epoch) -> Result<()> {
    check_epoch(epoch)?;
    let (dkey, akey) = scope.keys();
    dkey.map_or(Ok(()), |dkey| check_key(dkey, object.dkeys()))?;
    akey.map_or(Ok(()), |akey| check_akey(object, akey))?;
    match scope {
        PunchScope::Extent(.., extent) => check_extent(extent),
        _ => Ok(()),
    }
}

/// Checks a listing.
pub(crate) fn check_list(level: ListLevel<'_>, epoch: Epoch) -> Result<()> {
    check_epoch(epoch)?;
    match level {
        ListLevel::Objects | ListLevel::Dkeys(_) => Ok(()),
        ListLevel::Akeys(id, dkey) => check_key(dkey, id.dkeys()),
        ListLevel::Visible(id, dkey, akey) | ListLevel::Versions(id, dkey, akey) => {
            check_key(dkey, id.dkeys())?;
            check_akey(id, akey)
        }
    }
}

/// Checks a query, whose distribution key is given unless it is asked for.
pub(crate) fn check_query(id: ObjectId, what: KeyQuery, epoch: Epoch, dkey: &[u8]) -> Result<()> {
    check_epoch(epoch)?;
    let (dkeys, akeys) = (what.has(KeyQuery::DKEY), what.has(KeyQuery::AKEY));
    refuse!(what.has(KeyQuery::MAX) == what.has(KeyQuery::MIN) => Inval,
        "a query is for the greatest or the smallest");
    refuse!(dkeys && id.dkeys() == KeyOrder::Hashed || akeys && id.akeys() == KeyOrder::Hashed => Inval,
        "hashed keys have no order");
    if dkeys {
        return Ok(());
    }
    check_key(dkey, id.dkeys())
}

/// Form of what an attribute key has.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ValueForm {
    /// Nothing but punches.
    None,
    Single,
    /// An array of records of this size; of 0 while there are only punches.
    Array(u64),
}

/// Refuses a value of another form than its attribute key has.
pub(crate) fn check_form(iod: &Iod<'_>, there: ValueForm) -> Result<()> {
    match (there, iod.kind) {
        (ValueForm::None, _) | (ValueForm::Single, IodKind::Single) => Ok(()),
        (ValueForm::Array(size), IodKind::Array) if size == 0 || size == iod.size => Ok(()),
        _ => {
            ObjectCode::IoInval.fail("the attribute key has values of another kind or record size")
        }
    }
}

/// True if what is there at the epoch of an update has its records and its bytes; anything else is an error.
pub(crate) fn check_retry(
    there: Option<Rect>,
    extent: RecordExtent,
    is_same: impl FnOnce(u64) -> bool,
) -> Result<bool> {
    let Some(rect) = there else {
        return Ok(false);
    };
    refuse!(rect.is_punch() => Inval, "the item is punched at the same epoch");
    refuse!((rect.start, rect.end) != range(extent) => Exist, "the extent overlaps another of the same epoch");
    refuse!(!is_same(rect.at) => Exist, "the item has another value at the same epoch");
    Ok(true)
}

/// An array is asked of what has single values.
pub(crate) fn only_singles<T>() -> Result<T> {
    ObjectCode::IoInval.fail("the attribute key has single values")
}

/// Nothing is there that a punch is for.
pub(crate) fn nothing_to_punch<T>() -> Result<T> {
    ObjectCode::NonExist.fail("there is nothing to punch")
}

/// True if a punch is among what is there at an epoch; refuses one of what is written at it.
pub(crate) fn check_punched(there: &[Rect], epoch: u64, records: (u64, u64)) -> Result<bool> {
    let is_same = |rect: &&Rect| rect.epoch == epoch && rect.overlaps(records.0, records.1);
    let mut same = there.iter().filter(is_same);
    refuse!(same.clone().any(|rect| !rect.is_punch()) => Inval, "the item is written at the same epoch");
    Ok(same.any(|rect| rect.covers(records)))
}
