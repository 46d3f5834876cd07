//! One thread's end of a fabric: its address, messages to and from peers, moves of remote memory.
//!
//! In: an offer, sizes. Out: a [`FabricEndpoint`]. Every operation has a number: the receives first,
//! then the sends, then the moves; receives and sends have a part of one memory each by that number.
//! Nothing here waits, and nothing is sent or moved later than it is asked for: what the provider
//! takes not now is asked for again by the caller, after [`FabricEndpoint::poll`]. Not here: reading
//! completions (`completion`), who the peers are and what the bytes mean (`link`).

#![expect(unsafe_code, reason = "libfabric's calls, on memory given by address")]

use std::ffi::c_int;
use std::ptr::null_mut;

use weir_schema::RpcPoll;

use super::abi::{
    FI_ADDR_NOTAVAIL, FI_EAGAIN, FI_ETOOSMALL, FI_MR_LOCAL, FI_RECV, FI_TRANSMIT, FabricCode,
    FiOpsAv, FiOpsCm, Fid, FidAv, FidEp, PeerAddress, SizedCode, slot,
};
use super::completion::CompletionQueue;
use super::contexts::Contexts;
use super::endpoint_parts::{DataCalls, EndpointSizes, open_addresses, open_endpoint, open_queue};
use super::error::FabricError;
use super::library::NO_CONTEXT;
use super::objects::{FabricDomain, Object, RegisteredMemory, Uses};
use super::offer::{FabricFacts, FabricOffer};
use super::remote_memory::MoveCalls;

/// Answer of the provider to an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FabricPosted {
    /// It took it.
    Taken,
    /// It cannot now; poll, then ask again.
    Again,
}

/// A peer's number in an endpoint's address table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FabricPeer(pub(super) PeerAddress);

impl FabricPeer {
    /// No peer at all.
    pub(super) const NOBODY: Self = Self(FI_ADDR_NOTAVAIL);
}

/// A part of the memory for sends, which nobody else uses until its message is sent.
#[derive(Debug, PartialEq, Eq)]
pub struct SendSlot(pub(super) u32);

/// The memory that messages are received into. Where it is not taken back it stays for good: the
/// fabric writes there.
#[derive(Debug)]
pub struct ReceivedMessages {
    memory: Option<RegisteredMemory>,
    bytes: usize,
}

impl ReceivedMessages {
    /// Bytes of the receive of this number. They are read before it is posted again.
    #[inline]
    pub fn message(&self, slot: u32, bytes: usize) -> &[u8] {
        let memory = self.memory.as_ref();
        memory.map_or(&[], |memory| {
            memory.slot(slot as usize * self.bytes, bytes.min(self.bytes))
        })
    }
}

impl Drop for ReceivedMessages {
    fn drop(&mut self) {
        if let Some(memory) = self.memory.take() {
            memory.leak();
        }
    }
}

// SAFETY: the memory belongs to this value alone and to no particular thread.
unsafe impl Send for ReceivedMessages {}

/// One thread's end of a fabric.
#[derive(Debug)]
pub struct FabricEndpoint {
    pub(super) calls: DataCalls,
    pub(super) sizes: EndpointSizes,
    pub(super) contexts: Contexts,
    /// Whose a send is, by its number less that of the first send.
    pub(super) owners: Vec<u64>,
    pub(super) free_sends: Vec<u32>,
    pub(super) moves: MoveCalls,
    received: Option<ReceivedMessages>,
    sending: Option<RegisteredMemory>,
    inject_bytes: usize,
    endpoint: Option<Object<FidEp>>,
    pub(super) queue: CompletionQueue,
    addresses: Option<Object<FidAv>>,
    pub(super) domain: FabricDomain,
}

// SAFETY: the objects are of a domain of this value's own, which one thread at a time may use
// (`FI_THREAD_DOMAIN`); memory and records belong to it alone.
unsafe impl Send for FabricEndpoint {}

impl FabricEndpoint {
    /// Opens an endpoint of its own domain, with all receives posted.
    ///
    /// # Errors
    /// The provider refuses; memory cannot be had.
    pub fn open(
        offer: FabricOffer,
        sizes: EndpointSizes,
        waiting: RpcPoll,
    ) -> Result<Self, FabricError> {
        let sizes = sizes.within(offer.facts());
        let domain = FabricDomain::open(offer)?;
        let addresses = open_addresses(&domain)?;
        let (queue, has_descriptor) = open_queue(&domain, sizes, waiting)?;
        let endpoint = open_endpoint(&domain)?;
        let library = &domain.offer.library;
        let bound = endpoint.bind(&addresses, 0);
        library.good("bind the addresses", bound)?;
        let bound = endpoint.bind(&queue, FI_TRANSMIT | FI_RECV);
        library.good("bind the completion queue", bound)?;
        library.good("enable the endpoint", endpoint.enable())?;
        let calls = DataCalls::of(&endpoint)?;
        let mut opened = Self {
            calls,
            sizes,
            contexts: Contexts::new(sizes.receives + sizes.sends + sizes.moves),
            owners: vec![0; sizes.sends as usize],
            free_sends: (sizes.receives..sizes.receives + sizes.sends)
                .rev()
                .collect(),
            moves: MoveCalls::new(sizes.receives + sizes.sends, sizes.moves),
            received: None,
            sending: None,
            inject_bytes: domain.offer.facts().inject_bytes.min(sizes.message_bytes),
            endpoint: Some(endpoint),
            queue: CompletionQueue::new(queue, has_descriptor, &domain)?,
            addresses: Some(addresses),
            domain,
        };
        opened.post_receives()?;
        Ok(opened)
    }

    fn post_receives(&mut self) -> Result<(), FabricError> {
        let facts = self.facts();
        let uses = if facts.has_mr_mode(FI_MR_LOCAL) {
            Uses::Messages
        } else {
            Uses::Unregistered
        };
        let bytes = |count: u32| self.sizes.message_bytes.saturating_mul(count as usize);
        let (received, sending) = (bytes(self.sizes.receives), bytes(self.sizes.sends));
        let received = self.register(received, 0, uses)?;
        self.received = Some(ReceivedMessages {
            memory: Some(received),
            bytes: self.sizes.message_bytes,
        });
        self.sending = Some(self.register(sending, 0, uses)?);
        for slot in 0..self.sizes.receives {
            if self.receive(slot)? == FabricPosted::Again {
                return Err(FabricError::Lacks("post all receives at once"));
            }
        }
        Ok(())
    }

    pub(super) fn register(
        &mut self,
        len: usize,
        low_byte: u8,
        uses: Uses,
    ) -> Result<RegisteredMemory, FabricError> {
        let endpoint = self.endpoint.as_ref().ok_or(FabricError::Lacks("go on"))?;
        self.domain.register(endpoint, len, low_byte, uses)
    }

    /// Facts that decide how its provider is used.
    pub fn facts(&self) -> &FabricFacts {
        self.domain.offer.facts()
    }

    /// Sizes that it was opened with.
    pub fn sizes(&self) -> EndpointSizes {
        self.sizes
    }

    pub(super) fn raw(&self) -> *mut FidEp {
        self.endpoint.as_ref().map_or(null_mut(), Object::as_ptr)
    }

    /// The address that peers reach it by.
    ///
    /// # Errors
    /// The provider has none.
    pub fn address(&self) -> Result<Vec<u8>, FabricError> {
        // SAFETY: an open endpoint.
        let table = unsafe { (*self.raw()).cm };
        let name = slot!(table, FiOpsCm, getname).ok_or(FabricError::Lacks("report an address"))?;
        let mut address = vec![0_u8; 256];
        loop {
            let mut len = address.len();
            // SAFETY: an open endpoint, and `len` writable bytes.
            let code = unsafe {
                name(
                    self.raw().cast::<Fid>(),
                    address.as_mut_ptr().cast(),
                    &raw mut len,
                )
            };
            let is_longer = len > address.len();
            address.resize(len, 0);
            if code != -FI_ETOOSMALL || !is_longer {
                self.good("report its address", code)?;
                return Ok(address);
            }
        }
    }

    /// Takes a peer's address, as [`FabricEndpoint::address`] gave it there.
    ///
    /// # Errors
    /// The provider refuses it.
    pub fn insert(&mut self, address: &[u8]) -> Result<FabricPeer, FabricError> {
        let table = self.address_calls();
        let insert = slot!(table, FiOpsAv, insert).ok_or(FabricError::Lacks("take an address"))?;
        // Providers read as much as an address of theirs is long.
        let mut whole = [0_u8; 512];
        let fits = whole.get_mut(..address.len());
        let fits = fits.filter(|_| !address.is_empty() && address.len() < 512);
        let fits = fits.ok_or_else(|| {
            FabricError::Invalid(format!("an address of {} bytes is none", address.len()))
        })?;
        fits.copy_from_slice(address);
        let (addresses, mut peer) = (self.raw_addresses(), FI_ADDR_NOTAVAIL);
        // SAFETY: an open table, one address with zeroes behind it, and room for one number.
        let code = unsafe {
            insert(
                addresses,
                whole.as_ptr().cast(),
                1,
                &raw mut peer,
                0,
                NO_CONTEXT,
            )
        };
        self.good("take an address", code)?;
        if code != 1 || peer == FI_ADDR_NOTAVAIL {
            let text = "the fabric provider takes no such address";
            return Err(FabricError::Invalid(text.to_owned()));
        }
        Ok(FabricPeer(peer))
    }

    /// Forgets a peer.
    pub fn remove(&mut self, peer: FabricPeer) {
        let table = self.address_calls();
        let mut number = peer.0;
        if let Some(remove) = slot!(table, FiOpsAv, remove) {
            // SAFETY: an open table, and one number that it gave. An address that is not removed
            // only takes room.
            let _ = unsafe { remove(self.raw_addresses(), &raw mut number, 1, 0) };
        }
    }

    fn raw_addresses(&self) -> *mut FidAv {
        self.addresses.as_ref().map_or(null_mut(), Object::as_ptr)
    }

    fn address_calls(&self) -> *const FiOpsAv {
        // SAFETY: an open table of addresses.
        unsafe { (*self.raw_addresses()).ops }
    }

    /// Posts a receive: into the message of this number, which has been read.
    ///
    /// # Errors
    /// The provider fails for good.
    pub fn receive(&mut self, slot: u32) -> Result<FabricPosted, FabricError> {
        let bytes = self.sizes.message_bytes;
        let memory = self.received.as_ref().and_then(|all| all.memory.as_ref());
        let part = memory.and_then(|memory| {
            let part = memory.part(slot as usize * bytes, bytes)?;
            Some((part, memory.descriptor))
        });
        let (part, descriptor) = part.ok_or_else(|| no_such("receive", slot))?;
        let context = self.contexts.address(slot);
        // SAFETY: an open endpoint; the memory lives as long as it, and the slot's record too.
        let code = unsafe {
            (self.calls.recv)(
                self.raw(),
                part.cast(),
                bytes,
                descriptor,
                FI_ADDR_NOTAVAIL,
                context,
            )
        };
        self.posted("receive", code)
    }

    /// Hands out the memory of all messages, so that they can be read while the endpoint is used for
    /// everything but receives.
    pub fn lend_messages(&mut self) -> Option<ReceivedMessages> {
        self.received.take()
    }

    /// Takes it back.
    pub fn take_messages_back(&mut self, messages: ReceivedMessages) {
        self.received = Some(messages);
    }

    /// A place for a message; `None` while all are in flight.
    #[inline]
    pub fn take_send(&mut self) -> Option<SendSlot> {
        self.free_sends.pop().map(SendSlot)
    }

    /// Number of messages that can be sent before one is done.
    pub fn sends_left(&self) -> usize {
        self.free_sends.len()
    }

    /// Gives a place back whose message is not sent.
    pub fn give_send_back(&mut self, SendSlot(slot): SendSlot) {
        self.free_sends.push(slot);
    }

    /// The bytes of a message that is not sent yet.
    #[inline]
    pub fn send_bytes(&mut self, slot: &SendSlot) -> &mut [u8] {
        self.moves_and_send_bytes(slot).1
    }

    /// The same, beside the memory that may be copied there.
    #[inline]
    pub(super) fn moves_and_send_bytes(&mut self, slot: &SendSlot) -> (&MoveCalls, &mut [u8]) {
        let (bytes, at) = (self.sizes.message_bytes, slot.0 - self.sizes.receives);
        let bytes = match &mut self.sending {
            Some(memory) => memory.slot_mut(at as usize * bytes, bytes),
            None => &mut [],
        };
        (&self.moves, bytes)
    }

    /// Sends the first `len` bytes of a place by copying them: the place stays the caller's. `None`
    /// where they are too many for that.
    ///
    /// # Errors
    /// The provider fails for good.
    #[inline]
    pub fn inject_slot(
        &mut self,
        slot: &SendSlot,
        len: usize,
        to: FabricPeer,
    ) -> Result<Option<FabricPosted>, FabricError> {
        let (bytes, at) = (self.sizes.message_bytes, slot.0 - self.sizes.receives);
        if len > self.inject_bytes {
            return Ok(None);
        }
        let memory = self.sending.as_ref();
        let part = memory.and_then(|memory| memory.part(at as usize * bytes, len));
        let part = part.ok_or_else(|| no_such("send", slot.0))?;
        // SAFETY: an open endpoint; the bytes are copied before the call returns.
        let code = unsafe { (self.calls.inject)(self.raw(), part.cast_const().cast(), len, to.0) };
        self.posted("send", code).map(Some)
    }

    /// Sends the first `len` bytes of a place, which comes back with its completion; `owner` is reported
    /// then. Where the provider does not take it, the place is still the caller's.
    ///
    /// # Errors
    /// The provider fails for good; the place has been given back.
    #[inline]
    pub fn send(
        &mut self,
        slot: SendSlot,
        len: usize,
        to: FabricPeer,
        owner: u64,
    ) -> Result<Option<SendSlot>, FabricError> {
        let (bytes, at) = (self.sizes.message_bytes, slot.0 - self.sizes.receives);
        let part = self.sending.as_ref().and_then(|memory| {
            let part = memory.part(at as usize * bytes, len.min(bytes))?;
            Some((part, memory.descriptor))
        });
        let (part, descriptor) = part.ok_or_else(|| no_such("send", slot.0))?;
        self.owners[at as usize] = owner;
        let context = self.contexts.address(slot.0);
        // SAFETY: an open endpoint; the part is nobody else's until its completion, and lives as
        // long as the endpoint, as the record does.
        let code = unsafe {
            (self.calls.send)(
                self.raw(),
                part.cast_const().cast(),
                len.min(bytes),
                descriptor,
                to.0,
                context,
            )
        };
        match self.posted("send", code) {
            Ok(FabricPosted::Taken) => Ok(None),
            Ok(FabricPosted::Again) => Ok(Some(slot)),
            Err(error) => {
                self.give_send_back(slot);
                Err(error)
            }
        }
    }

    pub(super) fn posted(
        &self,
        what: &'static str,
        code: SizedCode,
    ) -> Result<FabricPosted, FabricError> {
        let code = c_int::try_from(code).unwrap_or(c_int::MAX);
        match code {
            0.. => Ok(FabricPosted::Taken),
            code if code == -FI_EAGAIN => Ok(FabricPosted::Again),
            code => Err(self.domain.offer.library.error(what, code)),
        }
    }

    pub(super) fn good(&self, what: &'static str, code: FabricCode) -> Result<(), FabricError> {
        self.domain.offer.library.good(what, code)
    }
}

fn no_such(what: &str, number: u32) -> FabricError {
    FabricError::Invalid(format!("there is no {what} {number} at this endpoint"))
}

impl Drop for FabricEndpoint {
    /// Closes memory, endpoint, queue and addresses, in this order. Memory that the fabric did not
    /// let go of is never given back.
    fn drop(&mut self) {
        let mut is_closed = self.moves.deregister();
        let mut received = self.received.take().and_then(|mut all| all.memory.take());
        for memory in [&mut received, &mut self.sending].into_iter().flatten() {
            is_closed &= memory.deregister();
        }
        is_closed &= self.endpoint.take().is_none_or(Object::close);
        is_closed &= self.queue.close();
        is_closed &= self.addresses.take().is_none_or(Object::close);
        if !is_closed {
            self.moves.leak();
            for memory in [received, self.sending.take()] {
                memory.into_iter().for_each(RegisteredMemory::leak);
            }
        }
    }
}
