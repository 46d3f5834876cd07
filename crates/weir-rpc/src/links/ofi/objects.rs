//! Objects of libfabric's that are closed when they are dropped: fabric, domain, registered memory.
//!
//! In: an offer, memory. Out: a [`FabricDomain`], a [`RegisteredMemory`]. Closing goes from what was
//! opened last to what was opened first. Not here: messages and moves (`endpoint`).

#![expect(unsafe_code, reason = "libfabric's calls, on objects given by address")]

use std::ffi::{c_int, c_void};
use std::fmt::{self, Debug, Formatter};
use std::mem::ManuallyDrop;
use std::ptr::{NonNull, null_mut};

use weir_sys::buffer::{AlignedBuf, Backing, BufferSpec};
use weir_units::Bytes;

use super::abi::{
    FI_ENABLE, FI_ENOSYS, FI_MR_ENDPOINT, FI_MR_PROV_KEY, FI_MR_VIRT_ADDR, FI_READ, FI_RECV,
    FI_REMOTE_READ, FI_REMOTE_WRITE, FI_SEND, FI_WRITE, FabricCode, FiOps, FiOpsDomain,
    FiOpsFabric, FiOpsMr, Fid, FidAv, FidCq, FidDomain, FidEp, FidFabric, FidMr, slot,
};
use super::error::FabricError;
use super::library::NO_CONTEXT;
use super::offer::FabricOffer;

/// A structure whose first field is a [`Fid`].
///
/// # Safety
/// It is `repr(C)`, and begins with one.
pub(super) unsafe trait FabricObject {}

/// Declares structures to begin with a [`Fid`], and checks it.
macro_rules! fabric_objects {
    ($($kind:ident),*) => {$(
        const _: () = assert!(std::mem::offset_of!($kind, fid) == 0);
        // SAFETY: all structures of `abi` are `repr(C)`, and the field is at the start, as asserted.
        unsafe impl FabricObject for $kind {}
    )*};
}

fabric_objects!(FidFabric, FidDomain, FidAv, FidCq, FidEp, FidMr);

/// An open object, which belongs to this value alone.
pub(super) struct Object<T: FabricObject> {
    at: NonNull<T>,
}

impl<T: FabricObject> Debug for Object<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "Object({:p})", self.at)
    }
}

impl<T: FabricObject> Object<T> {
    /// An object that libfabric opened just now; `None` for no address.
    ///
    /// # Safety
    /// The address is null, or that of an open object that nothing else closes.
    pub(super) unsafe fn new(at: *mut T) -> Option<Self> {
        NonNull::new(at).map(|at| Self { at })
    }

    pub(super) fn as_ptr(&self) -> *mut T {
        self.at.as_ptr()
    }

    pub(super) fn fid(&self) -> *mut Fid {
        self.at.as_ptr().cast()
    }

    fn ops(&self) -> *const FiOps {
        // SAFETY: `new` was given an open object, which stays so while this value lives; `FabricObject`
        // says that it begins with this structure.
        unsafe { (*self.fid()).ops }
    }

    /// Binds it to another object.
    pub(super) fn bind<U: FabricObject>(&self, to: &Object<U>, flags: u64) -> FabricCode {
        match slot!(self.ops(), FiOps, bind) {
            // SAFETY: both objects are open, as long as their values live.
            Some(bind) => unsafe { bind(self.fid(), to.fid(), flags) },
            None => -FI_ENOSYS,
        }
    }

    /// Sets or reads a property of it.
    ///
    /// # Safety
    /// `argument` is what the command asks for.
    pub(super) unsafe fn control(&self, command: c_int, argument: *mut c_void) -> FabricCode {
        match slot!(self.ops(), FiOps, control) {
            // SAFETY: the object is open while this value lives; the caller answers for the argument.
            Some(control) => unsafe { control(self.fid(), command, argument) },
            None => -FI_ENOSYS,
        }
    }

    /// Puts it to use.
    pub(super) fn enable(&self) -> FabricCode {
        // SAFETY: FI_ENABLE reads no argument.
        unsafe { self.control(FI_ENABLE, null_mut()) }
    }

    /// Closes it; true if libfabric did. What was not closed stays open for good.
    pub(super) fn close(self) -> bool {
        ManuallyDrop::new(self).end() == 0
    }

    fn end(&mut self) -> FabricCode {
        match slot!(self.ops(), FiOps, close) {
            // SAFETY: the object is open, and both callers give this value up with it.
            Some(close) => unsafe { close(self.fid()) },
            None => -FI_ENOSYS,
        }
    }
}

impl<T: FabricObject> Drop for Object<T> {
    fn drop(&mut self) {
        self.end();
    }
}

/// A fabric and one domain of it. One thread at a time uses what is opened from it.
#[derive(Debug)]
pub(super) struct FabricDomain {
    // Dropped in this order.
    pub(super) domain: Object<FidDomain>,
    pub(super) fabric: Object<FidFabric>,
    pub(super) offer: FabricOffer,
    /// Source of keys of registered memory, where weir chooses them.
    keys: std::hash::RandomState,
    registered: u64,
}

impl FabricDomain {
    /// Opens a fabric and a domain of the offer.
    pub(super) fn open(offer: FabricOffer) -> Result<Self, FabricError> {
        let library = &offer.library;
        // SAFETY: an entry of a list that the offer keeps until it is dropped.
        let attributes = unsafe { (*offer.info()).fabric_attr };
        let mut fabric = null_mut();
        // SAFETY: attributes that libfabric made itself and that the offer keeps; it writes one address.
        let code = unsafe { (library.calls.fabric)(attributes, &raw mut fabric, NO_CONTEXT) };
        library.good("open the fabric", code)?;
        // SAFETY: libfabric opened it just now, for nobody else, or left the address null.
        let fabric = unsafe { Object::new(fabric) }.ok_or(FabricError::Lacks("open a fabric"))?;
        // SAFETY: the fabric is open, and libfabric fills its table before it hands it out.
        let table = unsafe { (*fabric.as_ptr()).ops };
        let open = slot!(table, FiOpsFabric, domain);
        let open = open.ok_or(FabricError::Lacks("open a domain"))?;
        let mut domain = null_mut();
        // SAFETY: the fabric is open, and the offer that it was opened from is kept; one address is written.
        let code = unsafe { open(fabric.as_ptr(), offer.info(), &raw mut domain, NO_CONTEXT) };
        library.good("open a domain", code)?;
        // SAFETY: libfabric opened it just now, for nobody else, or left the address null.
        let domain = unsafe { Object::new(domain) }.ok_or(FabricError::Lacks("open a domain"))?;
        Ok(Self {
            domain,
            fabric,
            offer,
            keys: std::hash::RandomState::new(),
            registered: 0,
        })
    }

    /// The domain's table of calls.
    pub(super) fn calls(&self) -> *const FiOpsDomain {
        // SAFETY: the domain is open while this value lives, its tables as long.
        unsafe { (*self.domain.as_ptr()).ops }
    }

    /// Memory of `len` bytes whose first address ends with `low_byte`, registered for messages, and
    /// for `endpoint`'s peers to read and write where they know the key.
    pub(super) fn register(
        &mut self,
        endpoint: &Object<FidEp>,
        len: usize,
        low_byte: u8,
        uses: Uses,
    ) -> Result<RegisteredMemory, FabricError> {
        let room = len.max(1).saturating_add(usize::from(low_byte));
        let spec = BufferSpec {
            backing: Backing::Transparent,
            ..BufferSpec::private(Bytes(room as u64))
        };
        let memory = AlignedBuf::new(&spec)?;
        let mut memory = RegisteredMemory {
            registration: None,
            memory,
            first: usize::from(low_byte),
            len,
            address: 0,
            key: 0,
            descriptor: null_mut(),
        };
        if uses == Uses::Unregistered {
            return Ok(memory);
        }
        let registration = self.registration(&memory, uses)?;
        let facts = self.offer.facts();
        if facts.has_mr_mode(FI_MR_ENDPOINT) {
            let library = &self.offer.library;
            library.good("bind memory", registration.bind(endpoint, 0))?;
            library.good("enable memory", registration.enable())?;
        }
        // SAFETY: the registration is open, and libfabric does not change its record any more.
        let record = unsafe { &*registration.as_ptr() };
        (memory.key, memory.descriptor) = (record.key, record.mem_desc);
        if facts.has_mr_mode(FI_MR_VIRT_ADDR) {
            memory.address = memory.start().addr() as u64;
        }
        memory.registration = Some(registration);
        Ok(memory)
    }

    fn registration(
        &mut self,
        memory: &RegisteredMemory,
        uses: Uses,
    ) -> Result<Object<FidMr>, FabricError> {
        let library = &self.offer.library;
        // SAFETY: the domain is open while this value lives, its tables as long.
        let table = unsafe { (*self.domain.as_ptr()).mr };
        let register = slot!(table, FiOpsMr, reg);
        let register = register.ok_or(FabricError::Lacks("register memory"))?;
        let access = match uses {
            Uses::Unregistered | Uses::Messages => FI_SEND | FI_RECV,
            Uses::Moves => FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE,
        };
        let facts = self.offer.facts();
        let key = if facts.has_mr_mode(FI_MR_PROV_KEY) {
            0
        } else {
            // A peer that was not given the key does not guess it.
            self.registered += 1;
            std::hash::BuildHasher::hash_one(&self.keys, self.registered) & facts.key_mask()
        };
        let mut registration = null_mut();
        // SAFETY: the domain is open; the memory stays mapped until the registration is closed, since
        // `RegisteredMemory` drops that first.
        let code = unsafe {
            register(
                self.domain.fid(),
                memory.start().cast(),
                memory.len,
                access,
                0,
                key,
                0,
                &raw mut registration,
                NO_CONTEXT,
            )
        };
        library.good("register memory", code)?;
        // SAFETY: libfabric opened it just now, for nobody else, or left the address null.
        unsafe { Object::new(registration) }.ok_or(FabricError::Lacks("register memory"))
    }
}

/// Use of registered memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Uses {
    /// Nothing: the provider takes plain memory for messages.
    Unregistered,
    /// Messages from and to it.
    Messages,
    /// Moves by this side and by peers.
    Moves,
}

/// Memory that the fabric reads and writes.
#[derive(Debug)]
pub(super) struct RegisteredMemory {
    // Dropped in this order.
    registration: Option<Object<FidMr>>,
    memory: AlignedBuf,
    first: usize,
    len: usize,
    /// The address that a peer gives for its first byte.
    pub(super) address: u64,
    /// The key that a peer gives.
    pub(super) key: u64,
    /// Descriptor that the provider wants with local addresses.
    pub(super) descriptor: *mut c_void,
}

impl RegisteredMemory {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    fn start(&self) -> *mut u8 {
        self.memory.as_ptr().wrapping_add(self.first)
    }

    /// The first of `len` bytes; `None` beyond the end.
    #[inline]
    pub(super) fn part(&self, offset: usize, len: usize) -> Option<*mut u8> {
        let fits = len <= self.len && offset <= self.len - len;
        fits.then(|| self.start().wrapping_add(offset))
    }

    /// Bytes of it, panics beyond the end. The fabric may be at work on the bytes around them.
    #[inline]
    pub(super) fn slot(&self, offset: usize, len: usize) -> &[u8] {
        self.memory.slot(self.first + offset, len)
    }

    /// The same, to write.
    #[inline]
    pub(super) fn slot_mut(&mut self, offset: usize, len: usize) -> &mut [u8] {
        self.memory.slot_mut(self.first + offset, len)
    }

    /// Ends the registration; whether the fabric let go of the memory.
    pub(super) fn deregister(&mut self) -> bool {
        self.registration.take().is_none_or(Object::close)
    }

    /// Gives the memory up without unmapping it: the fabric may still write there.
    pub(super) fn leak(mut self) {
        std::mem::forget(self.registration.take());
        self.memory.leak();
    }
}
