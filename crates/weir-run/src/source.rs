//! The source of operations: what the loop asks for the next one.

use weir_sys::clock::Tick;

use crate::engine::Operation;

/// Gives operations until the work is over.
pub trait Source {
    /// Operations that it gives.
    type Op: Operation;

    /// All of its operations are of one kind, [`Source::only_kind`].
    const ONE_KIND: bool = false;

    /// The index of the only kind; without meaning where there are several.
    #[inline]
    fn only_kind(&self) -> usize {
        0
    }

    /// The next operation, to be carried out in `slot`; `None` when the work is over.
    fn next(&mut self, slot: u32) -> Option<Self::Op>;

    /// Makes the operation's buffer ready: generation of payload comes before `t_issue`.
    #[inline]
    fn prepare(&mut self, _slot: u32, _op: &Self::Op) {}

    /// Completions are looked at by [`Source::completed`], which takes long enough to be timed and
    /// accounted. Where it is false, nothing of it is compiled.
    const CHECKS: bool = false;

    /// An operation has come back, whole or as a failure; its buffer is still its own.
    #[inline]
    fn completed(&mut self, _slot: u32, _op: &Self::Op, _whole: bool) {}

    /// The same in loops of engines that queue, with the time that is recorded of it: when it began, how long
    /// it took, and its result. Nothing of it where operations are not looked at.
    #[inline]
    fn timed(&mut self, _op: &Self::Op, _started: Tick, _lat_ns: u64, _result: i64) {}

    /// After `next` gave nothing: there will be more once operations in flight are back.
    #[inline]
    fn is_waiting(&self) -> bool {
        false
    }

    /// The operation that `next` gave last goes as soon as it can, whatever the schedule says.
    #[inline]
    fn is_unscheduled(&self) -> bool {
        false
    }

    /// The operation that `next` gave last belongs to the one that follows it: no pause of its kind
    /// comes between them.
    #[inline]
    fn is_amid(&self) -> bool {
        false
    }

    /// Between the last two operations that `next` gave was something else that took its time, as
    /// dropping the page cache: it is accounted, and is no part of the operation. Once it was
    /// told it is over.
    #[inline]
    fn has_paused(&mut self) -> bool {
        false
    }

    /// `prepare` takes long enough to be timed and accounted.
    #[inline]
    fn prepare_is_timed(&self) -> bool {
        false
    }
}
