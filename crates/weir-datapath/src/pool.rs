//! Buffers of packets: who holds a buffer's token owns its bytes.
//!
//! In: how many each thread's pool has. Out: tokens, which move between threads through rings of one
//! producer and one consumer; bytes, for the holder of a token. Each buffer has a home pool: whoever
//! frees it elsewhere puts it into a ring that leads there. Not here: what the bytes mean.
#![expect(
    unsafe_code,
    reason = "bytes that many threads reach, one at a time; listed in unsafe.toml"
)]

use std::fmt;
use std::sync::Arc;
use std::vec::Drain;

use weir_schema::PoolPages;
use weir_sys::SysError;
use weir_sys::buffer::{AlignedBuf, Backing, BufferSpec, HugePage};
use weir_sys::ring::{Consumer, HeapRing, Producer, heap_ring};
use weir_units::Bytes;

/// Bytes of a buffer: the largest frame, and room to the next whole line.
pub(crate) const BUFFER_BYTES: usize = 2304;

/// The right to a buffer. There is one for each, and it cannot be copied. How much of the buffer is a frame
/// travels with it, so that nobody needs a cache line of the memory to know it.
#[derive(Debug)]
#[must_use = "a buffer that nobody frees is lost to its pool"]
pub(crate) struct PacketBuffer(u64);

/// A token is one word, as it stands in rings, so that it moves by whole loads and stores: its buffer, then
/// the pool that this comes from, then bytes of its frame.
#[expect(clippy::cast_possible_truncation, reason = "each takes its own bits")]
impl PacketBuffer {
    const HOME_AT: u32 = 32;
    const LENGTH_AT: u32 = 48;

    fn new(place: u32, home: u16) -> Self {
        Self(u64::from(place) | u64::from(home) << Self::HOME_AT)
    }

    #[inline]
    fn place(&self) -> usize {
        self.0 as u32 as usize
    }

    #[inline]
    fn home(&self) -> u16 {
        (self.0 >> Self::HOME_AT) as u16
    }

    #[inline]
    fn length(&self) -> usize {
        usize::from((self.0 >> Self::LENGTH_AT) as u16).min(BUFFER_BYTES)
    }

    #[inline]
    fn set_length(&mut self, length: usize) {
        let rest = self.0 & ((1 << Self::LENGTH_AT) - 1);
        self.0 = rest | (length as u64) << Self::LENGTH_AT;
    }
}

/// The bytes of a buffer.
#[repr(align(128))]
struct BufferSlot([u8; BUFFER_BYTES]);

/// The memory of all pools of a run.
pub(crate) struct PacketMemory {
    /// Slots, one behind the other.
    bytes: AlignedBuf,
    count: usize,
    per_pool: u32,
}

// SAFETY: a slot is reached with its token alone, of which there is one (`all_tokens` is called once, by
// the function that makes the memory), and which moves from thread to thread through rings, whose
// Release and Acquire order what was written before.
unsafe impl Sync for PacketMemory {}

impl fmt::Debug for PacketMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let buffers = self.count;
        f.debug_struct("PacketMemory")
            .field("buffers", &buffers)
            .finish_non_exhaustive()
    }
}

impl PacketMemory {
    /// Where a buffer is. Panics where there is no such buffer.
    #[inline]
    #[expect(
        clippy::cast_ptr_alignment,
        reason = "the mapping was asked for with the alignment of slots"
    )]
    fn address(&self, buffer: &PacketBuffer) -> *mut BufferSlot {
        let place = buffer.place();
        assert!(place < self.count, "tokens name buffers of their memory");
        self.bytes.as_ptr().cast::<BufferSlot>().wrapping_add(place)
    }

    #[inline]
    fn slot(&self, buffer: &PacketBuffer) -> &BufferSlot {
        let cell = self.address(buffer);
        // SAFETY: a slot of the mapping, aligned and always initialised; the borrowed token is its only one, so
        // nobody else writes meanwhile.
        unsafe { &*cell }
    }

    #[inline]
    fn slot_mut<'a>(&'a self, buffer: &'a mut PacketBuffer) -> &'a mut BufferSlot {
        let cell = self.address(buffer);
        // SAFETY: a slot of the mapping, aligned and always initialised; the token is its only one and is borrowed
        // exclusively, so nobody else reads or writes meanwhile.
        unsafe { &mut *cell }
    }

    /// The frame in a buffer.
    #[inline]
    pub(crate) fn frame<'a>(&'a self, buffer: &'a PacketBuffer) -> &'a [u8] {
        &self.slot(buffer).0[..buffer.length()]
    }

    /// The same, to write.
    #[inline]
    pub(crate) fn frame_mut<'a>(&'a self, buffer: &'a mut PacketBuffer) -> &'a mut [u8] {
        let length = buffer.length();
        &mut self.slot_mut(buffer).0[..length]
    }

    /// Makes the frame so long, and gives it to be written; what is in it stays.
    #[inline]
    pub(crate) fn resize<'a>(
        &'a self,
        buffer: &'a mut PacketBuffer,
        length: usize,
    ) -> &'a mut [u8] {
        let length = length.min(BUFFER_BYTES);
        buffer.set_length(length);
        &mut self.slot_mut(buffer).0[..length]
    }

    /// Asks for the first line of a buffer, to be written: its packet was written by another core and is soon
    /// changed by this one.
    #[inline]
    pub(crate) fn prefetch(&self, buffer: &PacketBuffer) {
        #[cfg(target_arch = "x86_64")]
        {
            let address = self.address(buffer);
            // SAFETY: a prefetch reads and writes nothing that the program can see and never faults; a
            // processor without it takes it for no instruction.
            unsafe {
                core::arch::asm!("prefetchw [{}]", in(reg) address, options(nostack, preserves_flags));
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = buffer;
    }
}

/// The end of a ring that buffers go into.
#[derive(Debug)]
pub(crate) struct BufferSender(Producer<Arc<HeapRing<u64>>>);

/// The end of a ring that buffers come out of.
#[derive(Debug)]
pub(crate) struct BufferReceiver(Consumer<Arc<HeapRing<u64>>>);

/// Both ends of a ring of buffers.
pub(crate) fn buffer_ring(slots: u32) -> (BufferSender, BufferReceiver) {
    let (producer, consumer) = heap_ring::<u64>(slots);
    (BufferSender(producer), BufferReceiver(consumer))
}

impl BufferSender {
    /// Puts a buffer in, to be seen when it is published; gives it back where the ring is full.
    #[inline]
    pub(crate) fn push(&mut self, buffer: PacketBuffer) -> Result<(), PacketBuffer> {
        // Both ends are in this process and neither writes nonsense.
        match self.0.push(buffer.0) {
            Ok(true) => Ok(()),
            Ok(false) | Err(_) => Err(buffer),
        }
    }

    /// Puts buffers in from the front of these, at most so many and as far as there is room, to be seen when
    /// they are published; how many. The others stay.
    #[inline]
    pub(crate) fn push_many(
        &mut self,
        buffers: &mut Drain<'_, PacketBuffer>,
        most: usize,
    ) -> usize {
        let all = buffers.as_slice();
        let pushed = self
            .0
            .push_many(&all[..most.min(all.len())], |buffer| buffer.0);
        let pushed = pushed.unwrap_or(0) as usize;
        // Their tokens are in the ring now.
        buffers.take(pushed).for_each(drop);
        pushed
    }

    /// Number of so many that have room now.
    #[inline]
    pub(crate) fn room(&mut self, wanted: usize) -> usize {
        let wanted = u32::try_from(wanted).unwrap_or(u32::MAX);
        self.0.room(wanted).unwrap_or(0) as usize
    }

    /// Shows the other end all that was put in.
    #[inline]
    pub(crate) fn publish(&mut self) {
        self.0.publish();
    }

    /// Number of buffers that it holds at most.
    pub(crate) fn capacity(&self) -> u32 {
        self.0.capacity()
    }
}

impl BufferReceiver {
    /// Takes the oldest buffer.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<PacketBuffer> {
        self.0.pop().ok().flatten().map(PacketBuffer)
    }

    /// Takes the oldest buffers, at most so many, and hands each on; how many.
    #[inline]
    pub(crate) fn pop_many(&mut self, most: usize, mut each: impl FnMut(PacketBuffer)) -> usize {
        let most = u32::try_from(most).unwrap_or(u32::MAX);
        let popped = self.0.pop_many(most, |word| each(PacketBuffer(word)));
        popped.unwrap_or(0) as usize
    }

    /// Takes the oldest buffers, at most so many, and appends them; how many.
    #[inline]
    pub(crate) fn pop_into(&mut self, most: usize, into: &mut Vec<PacketBuffer>) -> usize {
        let most = u32::try_from(most).unwrap_or(u32::MAX);
        let popped = self.0.pop_into(most, into, PacketBuffer);
        popped.unwrap_or(0) as usize
    }

    /// Number of buffers in it, with a look at the other end.
    #[inline]
    pub(crate) fn look(&mut self) -> u32 {
        self.0.look().unwrap_or(0)
    }

    /// Gives the slots of what was taken back to the other end.
    #[inline]
    pub(crate) fn release(&mut self) {
        self.0.release();
    }
}

/// A thread's pool: its own free buffers, and the ways back of those that it frees for others.
#[derive(Debug)]
pub(crate) struct Pool {
    pub(crate) memory: Arc<PacketMemory>,
    home: u16,
    free: Vec<PacketBuffer>,
    /// Own buffers that others freed.
    returns: Vec<BufferReceiver>,
    /// By home, where they go that are not own.
    others: Vec<Option<BufferSender>>,
    /// Others' buffers were freed since they were last shown.
    has_freed: bool,
}

/// Memory of such pages for so many bytes, and what it was made of.
fn mapped(bytes: usize, pages: PoolPages) -> Result<(AlignedBuf, PoolPages), SysError> {
    let of = |made| {
        let backing = match made {
            PoolPages::TwoMiB => Backing::Huge(HugePage::TwoMiB),
            PoolPages::OneGiB => Backing::Huge(HugePage::OneGiB),
            PoolPages::Auto | PoolPages::Transparent => Backing::Transparent,
            PoolPages::Off => Backing::Private,
        };
        let spec = BufferSpec {
            align: Bytes(align_of::<BufferSlot>() as u64),
            backing,
            ..BufferSpec::private(Bytes(bytes as u64))
        };
        Ok((AlignedBuf::new(&spec)?, made))
    };
    match pages {
        PoolPages::Auto => of(PoolPages::TwoMiB).or_else(|_: SysError| of(PoolPages::Transparent)),
        asked => of(asked),
    }
}

/// The pools of so many threads, and the memory behind them; what that is made of.
///
/// # Errors
/// There is no such memory.
pub(crate) fn pools(
    threads: u32,
    per_pool: u32,
    pages: PoolPages,
) -> Result<(Vec<Pool>, PoolPages), SysError> {
    let all = threads.saturating_mul(per_pool);
    let count = all as usize;
    let (bytes, made) = mapped(count.max(1).saturating_mul(size_of::<BufferSlot>()), pages)?;
    let memory = Arc::new(PacketMemory {
        bytes,
        count,
        per_pool,
    });
    let tokens = |home: u16| {
        let first = u32::from(home).saturating_mul(per_pool);
        let token = move |place| PacketBuffer::new(place, home);
        (first..first.saturating_add(per_pool).min(all))
            .map(token)
            .collect()
    };
    let of = |home| Pool {
        memory: Arc::clone(&memory),
        home,
        free: tokens(home),
        returns: Vec::new(),
        others: Vec::new(),
        has_freed: false,
    };
    let homes = 0..u16::try_from(threads).unwrap_or(u16::MAX);
    let mut pools: Vec<Pool> = homes.map(of).collect();
    for from in 0..pools.len() {
        for to in 0..pools.len() {
            if from == to {
                pools[from].others.push(None);
                continue;
            }
            // All of a pool fit into it: it never fills.
            let (sender, receiver) = buffer_ring(per_pool);
            pools[from].others.push(Some(sender));
            pools[to].returns.push(receiver);
        }
    }
    Ok((pools, made))
}

/// The same of plain pages, for tests.
#[cfg(test)]
pub(crate) fn plain_pools(threads: u32, per_pool: u32) -> Vec<Pool> {
    let made = pools(threads, per_pool, PoolPages::Off);
    made.map(|(pools, _)| pools).unwrap_or_default()
}

impl Pool {
    /// True if so many own buffers are free; takes back what others freed where it has to.
    #[inline]
    pub(crate) fn has(&mut self, buffers: usize) -> bool {
        if self.free.len() < buffers {
            self.collect();
        }
        self.free.len() >= buffers
    }

    /// A free buffer.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<PacketBuffer> {
        if self.free.is_empty() {
            self.collect();
        }
        self.free.pop()
    }

    /// Moves so many free buffers to the end of these: all that are left, where there are fewer.
    #[inline]
    pub(crate) fn take_many(&mut self, buffers: usize, into: &mut Vec<PacketBuffer>) {
        if self.has(buffers) {
            into.extend(self.free.drain(self.free.len() - buffers..));
        } else {
            into.append(&mut self.free);
        }
    }

    /// Frees a buffer of any pool.
    #[inline]
    pub(crate) fn free(&mut self, buffer: PacketBuffer) {
        let home = buffer.home();
        if home == self.home {
            self.free.push(buffer);
            return;
        }
        if let Some(Some(way)) = self.others.get_mut(usize::from(home))
            && way.push(buffer).is_ok()
        {
            self.has_freed = true;
        }
    }

    /// Frees buffers, mostly own ones.
    #[inline]
    pub(crate) fn free_many(&mut self, buffers: &mut Vec<PacketBuffer>) {
        if buffers.iter().all(|buffer| buffer.home() == self.home) {
            self.free.append(buffers);
        } else {
            buffers.drain(..).for_each(|buffer| self.free(buffer));
        }
    }

    /// Shows others what was freed of theirs: at the end of a pass.
    #[inline]
    pub(crate) fn publish(&mut self) {
        if self.has_freed {
            self.has_freed = false;
            self.others
                .iter_mut()
                .flatten()
                .for_each(BufferSender::publish);
        }
    }

    /// Takes back what others freed.
    pub(crate) fn collect(&mut self) {
        for way in &mut self.returns {
            way.pop_into(usize::MAX, &mut self.free);
            way.release();
        }
    }

    /// Own buffers that are not free, as far as is known.
    pub(crate) fn in_use(&self) -> u64 {
        u64::from(self.memory.per_pool).saturating_sub(self.free.len() as u64)
    }
}
