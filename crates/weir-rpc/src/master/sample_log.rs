//! Every call, kept until the run has ended.
//!
//! In: calls of a source, and the times that the loop records of them. Out: samples of one thread in the order
//! of their ends, with the same times. It reads no clock, and takes 24 bytes for each call.

use weir_run::Source;
use weir_sys::clock::Tick;

use crate::master::spread::{RpcOp, RpcSource};

/// A call.
#[derive(Clone, Copy, Debug)]
pub struct SampledCall {
    /// When it was sent.
    pub began: Tick,
    /// Time that it took.
    pub took_ns: u64,
    /// The entry of the list.
    pub entry: u32,
    /// 0, or the negative number of what went wrong.
    pub code: i32,
}

/// Calls of a source, each of which is kept.
#[derive(Debug)]
pub struct SampledSource {
    calls: RpcSource<true>,
    kept: Vec<SampledCall>,
}

impl SampledSource {
    /// Of this source.
    pub fn new(calls: RpcSource<true>) -> Self {
        Self {
            calls,
            kept: Vec::new(),
        }
    }

    /// The calls that were kept.
    pub fn into_kept(self) -> Vec<SampledCall> {
        self.kept
    }
}

impl Source for SampledSource {
    type Op = RpcOp;
    const ONE_KIND: bool = true;
    const CHECKS: bool = true;

    #[inline]
    fn next(&mut self, slot: u32) -> Option<RpcOp> {
        self.calls.next(slot)
    }

    fn is_waiting(&self) -> bool {
        self.calls.is_waiting()
    }

    #[inline]
    fn timed(&mut self, op: &RpcOp, started: Tick, lat_ns: u64, result: i64) {
        self.kept.push(SampledCall {
            began: started,
            took_ns: lat_ns,
            entry: op.entry,
            code: i32::try_from(result.min(0)).unwrap_or(i32::MIN),
        });
    }
}
