//! A device at work: its queue, its memory, and the copies between it and the host.
//!
//! In: a device. Out: a [`OpenDevice`], whose copies are done when their call returns, and [`StagedBuffer`]s,
//! whose copies may go on after it. The queue is in order. Not here: which device (`choice`).

#![expect(unsafe_code, reason = "OpenCL's calls, on memory given by address")]

use std::ffi::c_void;
use std::rc::Rc;

use weir_sys::buffer::{AlignedBuf, BufferSpec};
use weir_units::Bytes;

use super::calls::{Calls, Handle};
use super::error::{OpenClError, good};
use super::listing::{ClDevice, OpenCl};

/// Device memory that is read and written.
const READ_WRITE: u64 = 1;

/// Time at which a copy is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    /// Done when its call returns.
    Now,
    /// Done when somebody waits for it.
    Later,
}

/// A device with a queue of its own.
#[derive(Debug)]
pub(crate) struct OpenDevice {
    pub(super) calls: Rc<Calls>,
    pub(super) device: Handle,
    pub(super) context: Handle,
    pub(super) queue: Handle,
}

/// Memory on a device.
#[derive(Debug)]
pub(crate) struct DeviceMemory {
    calls: Rc<Calls>,
    handle: Handle,
    len: usize,
}

impl OpenDevice {
    pub(super) fn open(opencl: &OpenCl, device: &ClDevice) -> Result<Self, OpenClError> {
        let calls = Rc::clone(&opencl.calls);
        let (none, mut code) = (std::ptr::null(), 0);
        // SAFETY: one device of the library's own list, no properties, no callback.
        let context = unsafe {
            (calls.create_context)(
                none,
                1,
                &raw const device.handle,
                None,
                std::ptr::null_mut(),
                &raw mut code,
            )
        };
        good("open the device", code)?;
        // SAFETY: the context was made for this device just now.
        let queue = unsafe { (calls.create_queue)(context, device.handle, 0, &raw mut code) };
        if let Err(error) = good("make a queue", code) {
            // SAFETY: made above, and used by nothing else.
            unsafe { (calls.release_context)(context) };
            return Err(error);
        }
        Ok(Self {
            calls,
            device: device.handle,
            context,
            queue,
        })
    }

    /// Memory of the device, with nothing in it yet.
    ///
    /// # Errors
    /// The device has no room for it.
    pub(crate) fn memory(&self, len: usize) -> Result<DeviceMemory, OpenClError> {
        let mut code = 0;
        // SAFETY: a context that lives as long as the card; no host memory is given.
        let handle = unsafe {
            (self.calls.create_buffer)(
                self.context,
                READ_WRITE,
                len,
                std::ptr::null_mut(),
                &raw mut code,
            )
        };
        good("make a buffer of this size on the device", code)?;
        Ok(DeviceMemory {
            calls: Rc::clone(&self.calls),
            handle,
            len,
        })
    }

    /// Copies from the device to the host, and returns when that is done.
    ///
    /// # Errors
    /// The device refused, or is lost.
    #[inline]
    pub(crate) fn read(&self, from: &DeviceMemory, into: &mut [u8]) -> Result<(), OpenClError> {
        let len = into.len().min(from.len);
        // SAFETY: `into` is writable for `len` bytes, and nothing uses it after a call that waits.
        unsafe { self.enqueue_read(from, into.as_mut_ptr(), len, When::Now) }
    }

    /// Copies from the host to the device, and returns when that is done.
    ///
    /// # Errors
    /// The device refused, or is lost.
    #[inline]
    pub(crate) fn write(&self, from: &[u8], into: &DeviceMemory) -> Result<(), OpenClError> {
        let len = from.len().min(into.len);
        // SAFETY: `from` is readable for `len` bytes, and nothing uses it after a call that waits.
        unsafe { self.enqueue_write(from.as_ptr(), into, len, When::Now) }
    }

    /// Waits for everything that was begun.
    ///
    /// # Errors
    /// Something of it failed.
    pub(crate) fn finish(&self) -> Result<(), OpenClError> {
        // SAFETY: a queue that lives as long as the card.
        good("finish its queue", unsafe {
            (self.calls.finish)(self.queue)
        })
    }

    /// # Safety
    /// `into` is writable for `len` bytes, not more than `from` has, until the copy is done.
    unsafe fn enqueue_read(
        &self,
        from: &DeviceMemory,
        into: *mut u8,
        len: usize,
        when: When,
    ) -> Result<(), OpenClError> {
        let (waits_for, event) = (std::ptr::null(), std::ptr::null_mut());
        // SAFETY: queue and memory live; the caller keeps `into`.
        let code = unsafe {
            (self.calls.read)(
                self.queue,
                from.handle,
                u32::from(when == When::Now),
                0,
                len,
                into.cast::<c_void>(),
                0,
                waits_for,
                event,
            )
        };
        good("copy from the device", code)
    }

    /// # Safety
    /// `from` is readable for `len` bytes, not more than `into` has, and does not change until the
    /// copy is done.
    unsafe fn enqueue_write(
        &self,
        from: *const u8,
        into: &DeviceMemory,
        len: usize,
        when: When,
    ) -> Result<(), OpenClError> {
        let (waits_for, event) = (std::ptr::null(), std::ptr::null_mut());
        // SAFETY: queue and memory live; the caller keeps `from`.
        let code = unsafe {
            (self.calls.write)(
                self.queue,
                into.handle,
                u32::from(when == When::Now),
                0,
                len,
                from.cast::<c_void>(),
                0,
                waits_for,
                event,
            )
        };
        good("copy to the device", code)
    }
}

impl Drop for OpenDevice {
    fn drop(&mut self) {
        // SAFETY: made by this card; OpenCL keeps what is still in use.
        unsafe { (self.calls.release_queue)(self.queue) };
        // SAFETY: as above.
        unsafe { (self.calls.release_context)(self.context) };
    }
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        // SAFETY: made for this value alone; OpenCL keeps what is still in use.
        unsafe { (self.calls.release_memory)(self.handle) };
    }
}

/// Memory of the host and of the device, and copies between them that may be under way.
///
/// Nobody reaches the host's part while a copy is under way: [`StagedBuffer::host`] is empty then.
#[derive(Debug)]
pub(crate) struct StagedBuffer {
    card: Rc<OpenDevice>,
    /// Absent once it was given up.
    host: Option<AlignedBuf>,
    device: DeviceMemory,
    under_way: bool,
}

impl StagedBuffer {
    /// Of one length.
    ///
    /// # Errors
    /// Host or device have no room.
    pub(crate) fn new(card: &Rc<OpenDevice>, len: Bytes) -> Result<Self, OpenClError> {
        let host = AlignedBuf::new(&BufferSpec::private(len));
        let host = host.map_err(|error| OpenClError::Host(error.to_string()))?;
        Ok(Self {
            card: Rc::clone(card),
            device: card.memory(host.len())?,
            host: Some(host),
            under_way: false,
        })
    }

    /// The host's part; empty while a copy is under way.
    pub(crate) fn host(&mut self) -> &mut [u8] {
        match &mut self.host {
            Some(host) if !self.under_way => host.as_mut_slice(),
            _ => &mut [],
        }
    }

    /// The device's part.
    pub(crate) fn device(&self) -> &DeviceMemory {
        &self.device
    }

    /// Copies the host's part to the device.
    ///
    /// # Errors
    /// The device refused, or is lost.
    #[inline]
    pub(crate) fn push(&mut self, when: When) -> Result<(), OpenClError> {
        let Some(host) = &self.host else {
            return Ok(());
        };
        self.under_way |= when == When::Later;
        // SAFETY: this value owns the memory, hands it out to nobody while a copy is under way,
        // and frees it after `finish` alone.
        unsafe {
            self.card
                .enqueue_write(host.as_ptr(), &self.device, host.len(), when)
        }
    }

    /// Copies the device's part to the host.
    ///
    /// # Errors
    /// The device refused, or is lost.
    #[inline]
    pub(crate) fn pull(&mut self, when: When) -> Result<(), OpenClError> {
        let Some(host) = &self.host else {
            return Ok(());
        };
        self.under_way |= when == When::Later;
        // SAFETY: as in `push`.
        unsafe {
            self.card
                .enqueue_read(&self.device, host.as_ptr(), host.len(), when)
        }
    }

    /// Waits for the copies that were begun.
    ///
    /// # Errors
    /// One of them failed.
    pub(crate) fn wait(&mut self) -> Result<(), OpenClError> {
        if self.under_way {
            self.card.finish()?;
            self.under_way = false;
        }
        Ok(())
    }
}

impl Drop for StagedBuffer {
    /// Memory that a lost device may still write into is never given back.
    fn drop(&mut self) {
        if self.wait().is_err()
            && let Some(host) = self.host.take()
        {
            host.leak();
        }
    }
}
