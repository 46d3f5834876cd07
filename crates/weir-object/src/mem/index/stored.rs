//! Parts of the index as words of an image.
//!
//! In: parts, or words of an image that is whole. Out: the other. Orders of keys and views of arrays are made
//! again. Not here: where the image lies (`image`).

use super::super::image::{Words, words};
use super::{DkeyOrder, Holds, Index, Item, ObjectEntry, Single, keys};
use crate::array::{ArrayVersions, Rect};
use crate::mem::medium::Medium;
use crate::prelude::*;

words!(Single {
    epoch,
    at,
    len,
    sum
});
words!(Rect {
    start,
    end,
    epoch,
    at,
    record
});
words!(Index {
    containers,
    objects,
    items,
    older,
    arrays,
    dkey_punches,
    objects_by_id,
    items_by_key,
    last_object,
    versions,
});

impl Words for Item {
    fn put_words(&self, out: &mut impl FnMut(u64)) {
        let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        out(self.newest.epoch);
        out(self.newest.at);
        out(pair(self.newest.len, self.newest.sum));
        out(self.record);
        out(pair(self.more, self.object));
        out(pair(self.head, self.next));
        out(pair(self.next_dkey, self.punches));
        out(self.holds as u64);
    }
    fn take(from: &mut impl ExactSizeIterator<Item = u64>) -> Option<Self> {
        let mut next_word = || from.next();
        let pair = |both: u64| (both as u32, (both >> 32) as u32);
        let (epoch, at, (len, sum)) = (next_word()?, next_word()?, pair(next_word()?));
        let (record, (more, object)) = (next_word()?, pair(next_word()?));
        let (head, next) = pair(next_word()?);
        let (next_dkey, punches) = pair(next_word()?);
        let holds = [Holds::Nothing, Holds::Singles, Holds::Array];
        Some(Self {
            newest: Single {
                epoch,
                at,
                len,
                sum,
            },
            record,
            more,
            object,
            head,
            next,
            next_dkey,
            punches,
            holds: *holds.get(next_word()? as usize)?,
        })
    }
}

/// Its order of distribution keys is made again.
impl Words for ObjectEntry {
    fn put_words(&self, out: &mut impl FnMut(u64)) {
        (self.container, self.id).put_words(out);
        self.punches.put_words(out);
        ((self.first, self.last), self.dkey_punched).put_words(out);
    }
    fn take(from: &mut impl ExactSizeIterator<Item = u64>) -> Option<Self> {
        let (container, id) = Words::take(from)?;
        let punches = Words::take(from)?;
        let ((first, last), dkey_punched) = Words::take(from)?;
        let order = DkeyOrder::of(id);
        Some(Self {
            container,
            id,
            punches,
            first,
            last,
            order,
            dkey_punched,
        })
    }
}

/// Its view is made again.
impl Words for ArrayVersions {
    fn put_words(&self, out: &mut impl FnMut(u64)) {
        self.size.put_words(out);
        self.rects.put_words(out);
    }
    fn take(from: &mut impl ExactSizeIterator<Item = u64>) -> Option<Self> {
        let mut array = Self {
            size: Words::take(from)?,
            ..Self::default()
        };
        let rects: Vec<Rect> = Words::take(from)?;
        for rect in rects {
            array.put(rect);
        }
        Some(array)
    }
}

impl Index {
    /// Makes the orders of distribution keys again.
    pub(in crate::mem) fn order_dkeys(&mut self, medium: &impl Medium) {
        for entry in &mut self.objects {
            let mut head = entry.first;
            let heads = std::iter::from_fn(|| {
                let this = head;
                head = self.items.get(this as usize)?.next_dkey;
                Some((this, self.items[this as usize].record))
            });
            let named = heads.filter(|(_, record)| *record != 0);
            let keyed = named.map(|(head, record)| (keys(medium, record).0, head));
            match &mut entry.order {
                DkeyOrder::None => {}
                DkeyOrder::Integer(order) => {
                    *order = keyed.map(|(dkey, head)| (word(dkey), head)).collect();
                }
                DkeyOrder::Lexical(order) => {
                    *order = keyed.map(|(dkey, head)| (dkey.into(), head)).collect();
                }
            }
        }
    }
}
