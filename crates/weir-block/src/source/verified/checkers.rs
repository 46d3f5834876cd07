//! Inspection by the worker itself, or by threads beside it that get copies of the read data.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

use weir_run::Findings;
use weir_schema::Verify;
use weir_sys::CpuList;
use weir_sys::pin::set_affinity;

use crate::op::BlockOp;
use crate::source::verified::inspector::{EarlierWrites, Inspector};
use crate::source::verified::stamps::{Stamp, Stamps};

/// Blocks that wait for each checker before the worker waits for the checkers.
const QUEUED: usize = 4;

/// More helpers than this are of no use.
const MOST: usize = 1024;

/// A block to inspect. The address in its operation is the worker's and means nothing here.
struct Block {
    place: (u64, u32, u32),
    bytes: Vec<u8>,
    stamps: Stamps,
}

/// The worker's own inspector, and its helpers.
#[derive(Debug)]
pub(super) struct Checkers {
    inspector: Arc<Inspector>,
    blocks: Option<SyncSender<Block>>,
    threads: Vec<JoinHandle<()>>,
}

impl Checkers {
    /// Starts as many helpers as are wanted; without any the worker inspects itself.
    pub(super) fn new(inspector: Inspector, verify: Option<&Verify>) -> Self {
        let inspector = Arc::new(inspector);
        let wanted = verify.map_or(0, |v| v.threads as usize).min(MOST);
        let mut checkers = Self {
            inspector,
            blocks: None,
            threads: Vec::new(),
        };
        if wanted > 0 {
            let (sender, receiver) = sync_channel(wanted * QUEUED);
            let receiver = Arc::new(Mutex::new(receiver));
            let cpus = verify.and_then(|v| v.cpus.as_deref());
            let cpus = cpus.map(|list| list.iter().copied().collect::<CpuList>());
            for _ in 0..wanted {
                let helper = (Arc::clone(&checkers.inspector), Arc::clone(&receiver));
                let cpus = cpus.clone();
                let named = Builder::new().name("weir-check".to_owned());
                let thread = named.spawn(move || help(&helper.0, &helper.1, cpus.as_ref()));
                checkers.threads.extend(thread);
            }
            checkers.blocks = (!checkers.threads.is_empty()).then_some(sender);
        }
        checkers
    }

    pub(super) fn findings(&self) -> &Findings {
        self.inspector.findings()
    }

    /// Leaves the record of written data for the check at the end.
    pub(super) fn leave_word(&self, written: EarlierWrites) {
        self.inspector.leave_word(written);
    }

    pub(super) fn marks(&self) -> bool {
        self.inspector.marks()
    }

    /// Fills and marks what will be written.
    pub(super) fn mark(&self, buffer: &mut [u8], offset: u64, stamp: Stamp) {
        self.inspector.mark(buffer, offset, stamp);
    }

    /// Inspects what was read, or has it inspected.
    pub(super) fn check(&self, op: &BlockOp, buffer: &[u8], stamps: Stamps) {
        let Some(blocks) = &self.blocks else {
            return self.inspector.inspect(op, buffer, &stamps);
        };
        let block = Block {
            place: (op.offset, op.length, op.target),
            bytes: buffer.to_vec(),
            stamps,
        };
        if let Err(refused) = blocks.send(block) {
            // Every helper is gone; the worker goes on alone.
            self.inspector.inspect(op, buffer, &refused.0.stamps);
        }
    }
}

impl Drop for Checkers {
    /// Waits until everything is inspected.
    fn drop(&mut self) {
        self.blocks = None;
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn help(inspector: &Inspector, blocks: &Mutex<Receiver<Block>>, cpus: Option<&CpuList>) {
    if let Some(cpus) = cpus {
        // The checks are right wherever they run.
        let _ = set_affinity(cpus);
    }
    loop {
        let Ok(block) = blocks.lock().unwrap_or_else(PoisonError::into_inner).recv() else {
            return;
        };
        let (offset, length, target) = block.place;
        let op = BlockOp {
            offset,
            length,
            target,
            ..BlockOp::default()
        };
        inspector.inspect(&op, &block.bytes, &block.stamps);
    }
}
