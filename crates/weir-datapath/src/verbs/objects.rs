//! Objects of a device that the end of a dispatcher consists of: queue pairs, completions, registered memory.
//!
//! In: an opened device, what the other side's pairs are. Out: pairs that are joined to those. Any pair of UD reaches
//! each of the other side's; of RC there is a pair for each dispatcher of the other side, and where these are
//! several, they share what receives. Not here: messages (`queue`).
#![expect(
    unsafe_code,
    reason = "functions of a library opened at run time, on memory given by address"
)]

use std::ffi::c_int;
use std::io;
use std::mem::zeroed;
use std::ptr;
use std::sync::Arc;

use weir_sys::buffer::{AlignedBuf, BufferSpec};
use weir_units::Bytes;

use super::abi::{
    IBV_ACCESS_LOCAL_WRITE, IBV_QP_ACCESS_FLAGS, IBV_QP_AV, IBV_QP_DEST_QPN,
    IBV_QP_MAX_DEST_RD_ATOMIC, IBV_QP_MAX_QP_RD_ATOMIC, IBV_QP_MIN_RNR_TIMER, IBV_QP_PATH_MTU,
    IBV_QP_PKEY_INDEX, IBV_QP_PORT, IBV_QP_QKEY, IBV_QP_RETRY_CNT, IBV_QP_RNR_RETRY, IBV_QP_RQ_PSN,
    IBV_QP_SQ_PSN, IBV_QP_STATE, IBV_QP_TIMEOUT, IBV_QPS_ERR, IBV_QPS_INIT, IBV_QPS_RTR,
    IBV_QPS_RTS, IBV_QPT_RC, IBV_QPT_UD, IbvAh, IbvAhAttr, IbvCq, IbvMr, IbvQp, IbvQpAttr,
    IbvQpInitAttr, IbvSrq, IbvSrqInitAttr,
};
use super::library::{PORT, VerbsDevice, made};
use super::link::{FarPair, Transport};

/// The key that messages of UD bear.
pub(super) const UD_KEY: u32 = 0x0205;
/// Routers and the other side that a message may come to: of UD as in the older program.
const UD_HOPS: u8 = 2;
const RC_HOPS: u8 = 64;
/// Waits of 640 µs for who has no room for a message.
const WAIT_FOR_ROOM: u8 = 12;
/// An answer may take 67 ms.
const ANSWER_TIME: u8 = 14;
const RETRIES: u8 = 7;
/// Who has no room is waited for without end.
const RETRIES_FOR_ROOM: u8 = 7;

/// The objects; addresses are null until they are made.
#[derive(Debug)]
pub(super) struct VerbsObjects {
    pub(super) device: Arc<VerbsDevice>,
    pub(super) transport: Transport,
    gid_index: u8,
    slots: u32,
    pub(super) memory: AlignedBuf,
    pub(super) region: *mut IbvMr,
    pub(super) sent: *mut IbvCq,
    pub(super) received: *mut IbvCq,
    pub(super) shared: *mut IbvSrq,
    pub(super) route: *mut IbvAh,
    pub(super) pairs: Vec<*mut IbvQp>,
}

// SAFETY: the objects belong to this value alone and to no particular thread.
unsafe impl Send for VerbsObjects {}

impl VerbsObjects {
    /// Objects for so many messages each way with so much memory, and for so many dispatchers of the other side.
    ///
    /// # Errors
    /// The part that the device has not.
    pub(super) fn new(
        device: &Arc<VerbsDevice>,
        (transport, gid_index): (Transport, u8),
        (slots, bytes): (u32, Bytes),
        others: usize,
    ) -> Result<Self, String> {
        let memory = AlignedBuf::new(&BufferSpec::private(bytes)).map_err(|why| why.to_string())?;
        let mut objects = Self {
            device: Arc::clone(device),
            transport,
            gid_index,
            slots,
            memory,
            region: ptr::null_mut(),
            sent: ptr::null_mut(),
            received: ptr::null_mut(),
            shared: ptr::null_mut(),
            route: ptr::null_mut(),
            pairs: Vec::new(),
        };
        objects.make(match transport {
            Transport::Ud => 1,
            Transport::Rc => others,
        })?;
        Ok(objects)
    }

    /// Makes what it consists of.
    fn make(&mut self, pairs: usize) -> Result<(), String> {
        let calls = &self.device.library.calls;
        let (context, domain) = (self.device.context.as_ptr(), self.device.domain.as_ptr());
        let (start, bytes) = (self.memory.as_ptr(), self.memory.len());
        let what =
            "cannot register memory (more of it than `ulimit -l` may be locked by root alone)";
        // SAFETY: the memory is this value's own, and stays until the region is gone.
        self.region = made(what, unsafe {
            (calls.reg_mr)(domain, start.cast(), bytes, IBV_ACCESS_LOCAL_WRITE)
        })?;
        let most = i32::try_from(self.slots).unwrap_or(i32::MAX);
        let what = format!("no queue of {most} completions (`nic_ring`)");
        let completions = || {
            // SAFETY: the context is open; there is neither a value nor a channel with the queue.
            let queue =
                unsafe { (calls.create_cq)(context, most, ptr::null_mut(), ptr::null_mut(), 0) };
            made(&what, queue)
        };
        (self.sent, self.received) = (completions()?, completions()?);
        if pairs > 1 {
            // SAFETY: zeros are a sound value of numbers and addresses that may be null.
            let mut asked: IbvSrqInitAttr = unsafe { zeroed() };
            asked.attr.max_wr = self.slots;
            asked.attr.max_sge = 1;
            let what = format!("no shared queue of {most} receives (`nic_ring`)");
            // SAFETY: the structure is whole, and the domain open.
            self.shared = made(&what, unsafe { (calls.create_srq)(domain, &raw mut asked) })?;
        }
        for _ in 0..pairs {
            let pair = self.make_pair()?;
            self.pairs.push(pair);
            self.begin(pair)?;
        }
        Ok(())
    }

    fn make_pair(&self) -> Result<*mut IbvQp, String> {
        // SAFETY: zeros are a sound value of numbers and addresses that may be null.
        let mut asked: IbvQpInitAttr = unsafe { zeroed() };
        asked.send_cq = self.sent;
        asked.recv_cq = self.received;
        asked.srq = self.shared;
        asked.cap.max_send_wr = self.slots;
        asked.cap.max_recv_wr = if self.shared.is_null() { self.slots } else { 0 };
        asked.cap.max_send_sge = 1;
        asked.cap.max_recv_sge = 1;
        asked.qp_type = match self.transport {
            Transport::Ud => IBV_QPT_UD,
            Transport::Rc => IBV_QPT_RC,
        };
        asked.sq_sig_all = 1;
        let domain = self.device.domain.as_ptr();
        let what = format!(
            "no queue pair of {} messages each way (`nic_ring`)",
            self.slots
        );
        // SAFETY: the structure is whole and names objects of this value; the domain is open.
        made(&what, unsafe {
            (self.device.library.calls.create_qp)(domain, &raw mut asked)
        })
    }

    /// Brings a pair to where it can receive what is posted.
    fn begin(&self, pair: *mut IbvQp) -> Result<(), String> {
        let mut to = state(IBV_QPS_INIT);
        to.port_num = PORT;
        to.qkey = UD_KEY;
        let own = match self.transport {
            Transport::Ud => IBV_QP_QKEY,
            Transport::Rc => IBV_QP_ACCESS_FLAGS,
        };
        self.change(pair, to, IBV_QP_PKEY_INDEX | IBV_QP_PORT | own)
    }

    fn change(&self, pair: *mut IbvQp, mut to: IbvQpAttr, what: i32) -> Result<(), String> {
        let modify = self.device.library.calls.modify_qp;
        // SAFETY: the pair is this value's own and the structure whole.
        let answer = unsafe { modify(pair, &raw mut to, what | IBV_QP_STATE) };
        if answer == 0 {
            return Ok(());
        }
        let why = io::Error::from_raw_os_error(answer);
        Err(format!(
            "a queue pair does not come to state {}: {why}",
            to.qp_state
        ))
    }

    /// Numbers of its pairs, one for each dispatcher of the other side.
    pub(super) fn numbers(&self, others: usize) -> Vec<u32> {
        let of = |at: usize| {
            let pair = self.pairs.get(at).or(self.pairs.first())?;
            // SAFETY: the pair is this value's own; the library has written its number.
            Some(unsafe { (**pair).qp_num })
        };
        (0..others).filter_map(of).collect()
    }

    /// Joins it to the pairs of the other side, one for each dispatcher there, whose port has this address; packets
    /// have at most so many bytes.
    ///
    /// # Errors
    /// The device does not do it.
    pub(super) fn join(
        &mut self,
        address: [u8; 16],
        far: &[FarPair],
        mtu: u32,
    ) -> Result<(), String> {
        // SAFETY: zeros are a sound value of numbers.
        let mut to: IbvAhAttr = unsafe { zeroed() };
        let (high, low) = address.split_at(8);
        let word = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().unwrap_or_default());
        to.grh.dgid = [word(high), word(low)];
        to.grh.sgid_index = self.gid_index;
        to.grh.hop_limit = match self.transport {
            Transport::Ud => UD_HOPS,
            Transport::Rc => RC_HOPS,
        };
        to.is_global = 1;
        to.port_num = PORT;
        if self.transport == Transport::Ud {
            let domain = self.device.domain.as_ptr();
            let make = self.device.library.calls.create_ah;
            // SAFETY: the domain is open and the structure whole.
            self.route = made("no route to the other side", unsafe {
                make(domain, &raw mut to)
            })?;
        }
        for (&pair, far) in self.pairs.iter().zip(far) {
            let mut ready = state(IBV_QPS_RTR);
            let mut sends = state(IBV_QPS_RTS);
            let (mut what, mut then) = (0, IBV_QP_SQ_PSN);
            if self.transport == Transport::Rc {
                ready.ah_attr = to;
                ready.path_mtu = mtu.max(256).ilog2().cast_signed() - 7;
                ready.dest_qp_num = far.number;
                ready.min_rnr_timer = WAIT_FOR_ROOM;
                what = IBV_QP_AV
                    | IBV_QP_PATH_MTU
                    | IBV_QP_DEST_QPN
                    | IBV_QP_RQ_PSN
                    | IBV_QP_MAX_DEST_RD_ATOMIC
                    | IBV_QP_MIN_RNR_TIMER;
                sends.timeout = ANSWER_TIME;
                sends.retry_cnt = RETRIES;
                sends.rnr_retry = RETRIES_FOR_ROOM;
                then |=
                    IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
            }
            self.change(pair, ready, what)?;
            self.change(pair, sends, then)?;
        }
        Ok(())
    }
}

impl Drop for VerbsObjects {
    fn drop(&mut self) {
        // Each after those that use it; the memory stays until the end.
        let calls = &self.device.library.calls;
        for pair in &self.pairs {
            // What is under way is given up: `rdma_rxe` else waits for it, a minute where nobody answers.
            let _ = self.change(*pair, state(IBV_QPS_ERR), 0);
            free(*pair, calls.destroy_qp);
        }
        free(self.route, calls.destroy_ah);
        free(self.shared, calls.destroy_srq);
        free(self.sent, calls.destroy_cq);
        free(self.received, calls.destroy_cq);
        free(self.region, calls.dereg_mr);
    }
}

/// Has the library free an object that was made.
fn free<T>(object: *mut T, call: unsafe extern "C" fn(*mut T) -> c_int) {
    if !object.is_null() {
        // SAFETY: the object is of the value that frees it, once, by the call of its kind.
        unsafe { call(object) };
    }
}

/// A change of a pair to a state, and nothing else.
fn state(state: i32) -> IbvQpAttr {
    // SAFETY: zeros are a sound value of numbers.
    let mut to: IbvQpAttr = unsafe { zeroed() };
    to.qp_state = state;
    to
}
