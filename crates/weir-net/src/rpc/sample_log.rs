//! Every call, kept until the run has ended.
//!
//! In: when calls begin and how they end, by slot. Out: samples of one thread in the order of their
//! ends. It reads the clock twice for each call and takes 32 bytes for it.

use std::time::Instant;

/// A call.
#[derive(Clone, Copy, Debug)]
pub struct SampledCall {
    /// When it was sent.
    pub began: Instant,
    /// How long it took.
    pub took_ns: u64,
    /// The entry of the list.
    pub entry: u32,
    /// 0, or the negative number of what went wrong.
    pub code: i32,
}

/// The calls of a thread.
#[derive(Debug)]
pub struct SampleLog {
    began: Box<[Instant]>,
    calls: Vec<SampledCall>,
}

impl SampleLog {
    /// Of calls in so many slots.
    pub fn new(slots: u32) -> Self {
        Self {
            began: vec![Instant::now(); slots as usize].into(),
            calls: Vec::new(),
        }
    }

    /// The call of a slot is sent.
    pub fn begin(&mut self, slot: u32) {
        if let Some(began) = self.began.get_mut(slot as usize) {
            *began = Instant::now();
        }
    }

    /// It has ended.
    pub fn end(&mut self, slot: u32, entry: u32, result: i64) {
        let Some(began) = self.began.get(slot as usize) else {
            return;
        };
        self.calls.push(SampledCall {
            began: *began,
            took_ns: u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX),
            entry,
            code: i32::try_from(result.min(0)).unwrap_or(i32::MIN),
        });
    }

    /// All of them.
    pub fn into_calls(self) -> Vec<SampledCall> {
        self.calls
    }
}
