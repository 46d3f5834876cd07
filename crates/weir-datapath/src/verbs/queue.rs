//! The end of a dispatcher: messages that are posted to queue pairs of a device, and those that were.
//!
//! In: the objects of an end. Out: frames that are sent as messages, and those that came. A message of UD has 40
//! bytes of a header before what was sent. Not here: the objects (`objects`); which frame goes where (`link`).
#![expect(
    unsafe_code,
    reason = "functions of a library opened at run time, on memory given by address"
)]

use std::collections::VecDeque;
use std::io;
use std::mem::zeroed;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use weir_units::Bytes;

use super::abi::{
    IBV_SEND_SIGNALED, IBV_WC_SUCCESS, IBV_WC_WR_FLUSH_ERR, IBV_WR_SEND, IbvContextOps, IbvCq,
    IbvRecvWr, IbvSendWr, IbvSge, IbvWc,
};
use super::library::VerbsDevice;
use super::link::{FarPair, Transport};
use super::objects::{UD_KEY, VerbsObjects};
use crate::pool::BUFFER_BYTES;

/// Bytes before a message of UD.
const ROUTE_HEADER: usize = 40;
/// Bytes of the place of a message.
const SLOT: usize = (BUFFER_BYTES + ROUTE_HEADER).next_multiple_of(64);
/// Completions that are asked for at once.
const MOST_COMPLETIONS: usize = 32;

/// A message that lies in its place.
#[derive(Clone, Copy, Debug)]
struct PendingSend {
    slot: u32,
    length: u32,
    /// The pair of the other side that it goes to.
    number: u32,
}

/// All that a dispatcher has of a device.
#[derive(Debug)]
pub(super) struct VerbsEnd {
    /// Its memory has places of messages: those to be sent, then those to be filled.
    objects: VerbsObjects,
    slots: usize,
    /// Messages that are to be posted, of each pair.
    pending: Vec<Vec<PendingSend>>,
    /// Numbers of the pairs of the other side.
    far: Vec<u32>,
    /// Places that nothing is sent from.
    free: Vec<u32>,
    /// Completions of what came and was not taken yet.
    came: VecDeque<IbvWc>,
    /// Places that are to be filled again.
    empty: Vec<u32>,
    trouble: Option<String>,
    /// Kept for their room.
    places: Vec<IbvSge>,
    sends: Vec<IbvSendWr>,
    receives: Vec<IbvRecvWr>,
}

// SAFETY: addresses in what is kept for its room mean nothing between calls.
unsafe impl Send for VerbsEnd {}

impl VerbsEnd {
    /// An end with so many places each way, for so many dispatchers of the other side; it can receive.
    ///
    /// # Errors
    /// The part that the device has not.
    pub(super) fn new(
        device: &Arc<VerbsDevice>,
        kind: (Transport, u8),
        slots: u32,
        others: usize,
    ) -> Result<Self, String> {
        let bytes = Bytes(u64::from(slots) * 2 * SLOT as u64);
        let objects = VerbsObjects::new(device, kind, (slots, bytes), others)?;
        let mut end = Self {
            slots: slots as usize,
            pending: vec![Vec::new(); objects.pairs.len()],
            objects,
            far: Vec::new(),
            free: (0..slots).rev().collect(),
            came: VecDeque::with_capacity(slots as usize),
            empty: (slots..2 * slots).collect(),
            trouble: None,
            places: Vec::new(),
            sends: Vec::new(),
            receives: Vec::new(),
        };
        end.post_receives();
        end.trouble.take().map_or(Ok(end), Err)
    }

    /// Numbers of its pairs, one for each dispatcher of the other side.
    pub(super) fn numbers(&self, others: usize) -> Vec<u32> {
        self.objects.numbers(others)
    }

    /// Joins it to the pairs of the other side, as [`VerbsObjects::join`].
    ///
    /// # Errors
    /// The device does not do it.
    pub(super) fn join(
        &mut self,
        address: [u8; 16],
        far: &[FarPair],
        mtu: u32,
    ) -> Result<(), String> {
        self.far = far.iter().map(|one| one.number).collect();
        self.objects.join(address, far, mtu)
    }

    /// Functions of the device's driver.
    fn ops(&self) -> &IbvContextOps {
        // SAFETY: the context of the device is open.
        unsafe { &self.objects.device.context.as_ref().ops }
    }

    /// Puts a frame into a free place, for the dispatcher of this place among the other side's; false where there is
    /// none.
    #[inline]
    pub(super) fn push(&mut self, to: usize, frame: &[u8]) -> bool {
        if self.free.is_empty() {
            self.reclaim();
        }
        let at = if self.pending.len() > 1 { to } else { 0 };
        let (Some(pending), Some(&number)) = (self.pending.get_mut(at), self.far.get(to)) else {
            return false;
        };
        let Some(slot) = self.free.pop() else {
            return false;
        };
        let length = frame.len().min(BUFFER_BYTES);
        let place = self.objects.memory.slot_mut(slot as usize * SLOT, length);
        place.copy_from_slice(&frame[..length]);
        pending.push(PendingSend {
            slot,
            length: u32::try_from(length).unwrap_or(0),
            number,
        });
        true
    }

    /// Posts what was put, and takes back places whose messages are sent.
    #[inline]
    pub(super) fn flush(&mut self) {
        for at in 0..self.pending.len() {
            if !self.pending[at].is_empty() {
                self.post_sends(at);
            }
        }
        self.reclaim();
    }

    /// True if a message was put and is not known to be sent.
    #[inline]
    pub(super) fn has_unsent(&self) -> bool {
        self.free.len() < self.slots
    }

    fn place(&self, slot: u32, length: u32) -> IbvSge {
        let at = self
            .objects
            .memory
            .as_ptr()
            .wrapping_add(slot as usize * SLOT);
        IbvSge {
            addr: at.addr() as u64,
            length,
            // SAFETY: the region is this value's own, and made before anything is posted.
            lkey: unsafe { (*self.objects.region).lkey },
        }
    }

    fn post_sends(&mut self, at: usize) {
        let pending = std::mem::take(&mut self.pending[at]);
        let (mut places, mut sends) = (
            std::mem::take(&mut self.places),
            std::mem::take(&mut self.sends),
        );
        places.extend(pending.iter().map(|one| self.place(one.slot, one.length)));
        for (one, place) in pending.iter().zip(&mut places) {
            // SAFETY: zeros are a sound value of numbers and addresses that may be null.
            let mut send: IbvSendWr = unsafe { zeroed() };
            send.wr_id = one.slot.into();
            send.sg_list = place;
            send.num_sge = 1;
            send.opcode = IBV_WR_SEND;
            send.send_flags = IBV_SEND_SIGNALED;
            if self.objects.transport == Transport::Ud {
                send.ud_ah = self.objects.route;
                send.ud_remote_qpn = one.number;
                send.ud_remote_qkey = UD_KEY;
            }
            sends.push(send);
        }
        for index in 1..sends.len() {
            sends[index - 1].next = &raw mut sends[index];
        }
        let mut refused = ptr::null_mut();
        let pair = self.objects.pairs[at];
        let answer = self.ops().post_send.map_or(libc::ENOSYS, |post| {
            // SAFETY: the pair is this value's own; the list ends with null, lies still during the call, and its
            // places stay until they are completed.
            unsafe { post(pair, sends.as_mut_ptr(), &raw mut refused) }
        });
        if answer != 0 {
            self.note(format!(
                "cannot send: {}",
                io::Error::from_raw_os_error(answer)
            ));
            let posted = sends.iter().position(|send| ptr::eq(send, refused));
            let left = pending.iter().skip(posted.unwrap_or(0));
            self.free.extend(left.map(|one| one.slot));
        }
        sends.clear();
        places.clear();
        (self.places, self.sends) = (places, sends);
        self.pending[at] = pending;
        self.pending[at].clear();
    }

    /// Takes back places whose messages are sent.
    fn reclaim(&mut self) {
        let mut done = [NO_COMPLETION; MOST_COMPLETIONS];
        loop {
            let count = self.poll(self.objects.sent, &mut done);
            for one in &done[..count] {
                self.note_status(one, "a message was not sent");
                self.free.push(u32::try_from(one.wr_id).unwrap_or(0));
            }
            if count < MOST_COMPLETIONS {
                return;
            }
        }
    }

    /// Looks for what came; how many messages have come and were not taken yet.
    #[inline]
    pub(super) fn look(&mut self) -> u32 {
        let mut done = [NO_COMPLETION; MOST_COMPLETIONS];
        loop {
            let count = self.poll(self.objects.received, &mut done);
            self.came.extend(&done[..count]);
            if count < MOST_COMPLETIONS {
                return u32::try_from(self.came.len()).unwrap_or(u32::MAX);
            }
        }
    }

    fn poll(&self, queue: *mut IbvCq, done: &mut [IbvWc; MOST_COMPLETIONS]) -> usize {
        let poll = self.ops().poll_cq;
        let most = i32::try_from(MOST_COMPLETIONS).unwrap_or(0);
        // SAFETY: the queue is this value's own, and there is room for as many as are asked for.
        let count = poll.map_or(0, |poll| unsafe { poll(queue, most, done.as_mut_ptr()) });
        usize::try_from(count).unwrap_or(0).min(MOST_COMPLETIONS)
    }

    /// Copies the oldest frame that came: its length, 0 where it is of somebody else than the other side.
    #[inline]
    pub(super) fn pop(&mut self, into: &mut [u8]) -> Option<usize> {
        if self.came.is_empty() {
            self.look();
        }
        let one = self.came.pop_front()?;
        if one.status != IBV_WC_SUCCESS {
            self.note_status(&one, "a message was not received");
            return None;
        }
        let slot = u32::try_from(one.wr_id).unwrap_or(0);
        self.empty.push(slot);
        let header = match self.objects.transport {
            Transport::Ud if !self.far.contains(&one.src_qp) => return Some(0),
            Transport::Ud => ROUTE_HEADER,
            Transport::Rc => 0,
        };
        let length = (one.byte_len as usize).min(SLOT).saturating_sub(header);
        let length = length.min(into.len());
        let frame = self
            .objects
            .memory
            .slot(slot as usize * SLOT + header, length);
        into[..length].copy_from_slice(frame);
        Some(length)
    }

    /// Has the device fill the places of what was taken.
    #[inline]
    pub(super) fn release(&mut self) {
        if !self.empty.is_empty() {
            self.post_receives();
        }
    }

    fn post_receives(&mut self) {
        let (mut places, mut receives) = (
            std::mem::take(&mut self.places),
            std::mem::take(&mut self.receives),
        );
        let room = u32::try_from(SLOT).unwrap_or(0);
        places.extend(self.empty.iter().map(|slot| self.place(*slot, room)));
        let places_of = places.iter_mut().zip(&self.empty);
        receives.extend(places_of.map(|(place, slot)| IbvRecvWr {
            wr_id: (*slot).into(),
            next: ptr::null_mut(),
            sg_list: place,
            num_sge: 1,
        }));
        for index in 1..receives.len() {
            receives[index - 1].next = &raw mut receives[index];
        }
        let (first, mut refused) = (receives.as_mut_ptr(), ptr::null_mut());
        let ops = self.ops();
        let answer = match (
            self.objects.pairs.first(),
            NonNull::new(self.objects.shared),
        ) {
            (_, Some(shared)) => ops.post_srq_recv.map(|post| {
                // SAFETY: the queue is this value's own; the list ends with null, lies still during the call, and
                // its places stay until they are completed.
                unsafe { post(shared.as_ptr(), first, &raw mut refused) }
            }),
            // SAFETY: as above, of the only pair.
            (Some(only), None) => ops
                .post_recv
                .map(|post| unsafe { post(*only, first, &raw mut refused) }),
            _ => None,
        };
        let answer = answer.unwrap_or(libc::ENOSYS);
        if answer != 0 {
            self.note(format!(
                "cannot receive: {}",
                io::Error::from_raw_os_error(answer)
            ));
        }
        self.empty.clear();
        places.clear();
        receives.clear();
        (self.places, self.receives) = (places, receives);
    }

    fn note_status(&mut self, one: &IbvWc, what: &str) {
        // What is flushed is so because of an earlier one, which says more.
        if ![IBV_WC_SUCCESS, IBV_WC_WR_FLUSH_ERR].contains(&one.status) {
            self.note(format!(
                "{what}: {}",
                self.objects.device.library.status(one.status)
            ));
        }
    }

    fn note(&mut self, why: String) {
        self.trouble.get_or_insert(why);
    }

    /// Why it carries nothing any more, said once.
    pub(super) fn trouble(&mut self) -> Option<String> {
        self.trouble.take()
    }
}

/// No completion.
const NO_COMPLETION: IbvWc = IbvWc {
    wr_id: 0,
    status: 0,
    opcode: 0,
    vendor_err: 0,
    byte_len: 0,
    imm_data: 0,
    qp_num: 0,
    src_qp: 0,
    wc_flags: 0,
    pkey_index: 0,
    slid: 0,
    sl: 0,
    dlid_path_bits: 0,
};
