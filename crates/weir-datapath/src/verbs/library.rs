//! libibverbs, opened at run time: its devices, and one of them in use.
//!
//! In: `WEIR_VERBS`, or the library's name; the name of a device. Out: an opened [`VerbsDevice`] with facts
//! about its port, or why there is none. Nothing of it is needed to build or start weir. Not here: messages
//! (`queue`).
#![expect(
    unsafe_code,
    reason = "functions of a library opened at run time, whose answers are addresses"
)]

use std::ffi::CStr;
use std::io;
use std::ptr::NonNull;
use std::sync::Arc;

use weir_sys::library::{Library, SymbolScope};

use super::abi::{
    IBV_LINK_LAYER_ETHERNET, IBV_PORT_ACTIVE, IbvContext, IbvDevice, IbvPd, IbvPortAttr, VerbsCalls,
};

/// The variable that names the library to open.
const LIBRARY_VARIABLE: &str = "WEIR_VERBS";
const LIBRARY: &str = "libibverbs.so.1";
const REMEDY: &str = "Debian: libibverbs1 and ibverbs-providers";
const NO_DEVICE: &str = "no RDMA device here; `rdma link add rxe0 type rxe netdev INTERFACE` makes one of a network \
                         interface, as root, where the kernel has rdma_rxe";
/// Ports of a device count from 1.
pub(super) const PORT: u8 = 1;

/// The opened library.
#[derive(Debug)]
pub(super) struct VerbsLibrary {
    pub(super) calls: VerbsCalls,
}

/// Devices as the library lists them, to the end of this value.
struct DeviceList<'a> {
    library: &'a VerbsLibrary,
    first: *mut *mut IbvDevice,
    count: usize,
}

impl Drop for DeviceList<'_> {
    fn drop(&mut self) {
        if !self.first.is_null() {
            // SAFETY: the list is the library's own and is freed once.
            unsafe { (self.library.calls.free_device_list)(self.first) };
        }
    }
}

impl VerbsLibrary {
    /// Opens the library.
    ///
    /// # Errors
    /// The part that is missing, and what helps.
    pub(super) fn open() -> Result<Arc<Self>, String> {
        let name = std::env::var(LIBRARY_VARIABLE).ok();
        let opened = Library::open_first(name.as_deref(), &[LIBRARY], SymbolScope::Everybody);
        let (library, name) = opened.map_err(|(wish, why)| {
            let name = wish.unwrap_or(LIBRARY);
            format!("cannot open {name}: {why} ({REMEDY})")
        })?;
        // SAFETY: the library's header gives each symbol the type of its field.
        let calls = unsafe { VerbsCalls::resolve(&library) }
            .map_err(|symbol| format!("{name} has no {symbol} ({REMEDY})"))?;
        Ok(Arc::new(Self { calls }))
    }

    fn list(&self) -> DeviceList<'_> {
        let mut count = 0;
        // SAFETY: the count is written; the answer is a list of so many devices, or null.
        let first = unsafe { (self.calls.get_device_list)(&raw mut count) };
        let count = if first.is_null() { 0 } else { count };
        DeviceList {
            library: self,
            first,
            count: usize::try_from(count).unwrap_or(0),
        }
    }

    /// The meaning of a completion's state.
    pub(super) fn status(&self, status: i32) -> String {
        // SAFETY: takes a number, and answers with text of its own, which stays, or null.
        let text = unsafe { (self.calls.status_text)(status) };
        text_of(text).unwrap_or_else(|| format!("state {status}"))
    }
}

fn text_of(text: *const std::ffi::c_char) -> Option<String> {
    if text.is_null() {
        return None;
    }
    // SAFETY: text of the library, which ends with NUL and stays as long as what it is of.
    let text = unsafe { CStr::from_ptr(text) };
    Some(text.to_string_lossy().into_owned())
}

impl DeviceList<'_> {
    fn devices(&self) -> impl Iterator<Item = (String, *mut IbvDevice)> + '_ {
        (0..self.count).filter_map(|at| {
            let place = self.first.wrapping_add(at);
            // SAFETY: the list has so many devices.
            let device = unsafe { *place };
            // SAFETY: the device is of the list, which is not freed yet.
            let name = unsafe { (self.library.calls.get_device_name)(device) };
            Some((text_of(name)?, device))
        })
    }

    fn find(&self, name: &str) -> Result<*mut IbvDevice, String> {
        let found = self.devices().find(|(known, _)| known == name);
        found.map(|(_, device)| device).ok_or_else(|| {
            let names: Vec<String> = self.devices().map(|(name, _)| name).collect();
            if names.is_empty() {
                return format!("there is no device {name}: {NO_DEVICE}");
            }
            format!("there is no device {name} (there is {})", names.join(", "))
        })
    }
}

/// Why this machine has no device of this name, or none at all; nothing where it has.
pub(crate) fn lacks(device: Option<&str>) -> Option<String> {
    let library = match VerbsLibrary::open() {
        Ok(library) => library,
        Err(why) => return Some(why),
    };
    let list = library.list();
    match device {
        Some(name) => list.find(name).err(),
        None if list.count == 0 => Some(NO_DEVICE.to_owned()),
        None => None,
    }
}

/// A device in use, with a domain of its own for what is made of it.
#[derive(Debug)]
pub(super) struct VerbsDevice {
    pub(super) library: Arc<VerbsLibrary>,
    pub(super) context: NonNull<IbvContext>,
    pub(super) domain: NonNull<IbvPd>,
    /// The most bytes of a packet of its port, as a power of two.
    pub(super) mtu: u32,
}

// SAFETY: the library may be called by any thread, as it says of itself; nothing is changed through the
// two addresses.
unsafe impl Send for VerbsDevice {}
// SAFETY: as above.
unsafe impl Sync for VerbsDevice {}

impl VerbsDevice {
    /// Opens the device of this name.
    ///
    /// # Errors
    /// There is none, it is not to be had, or its port carries nothing.
    pub(super) fn open(name: &str) -> Result<Arc<Self>, String> {
        let library = VerbsLibrary::open()?;
        let list = library.list();
        let found = list.find(name)?;
        // SAFETY: the device is of a list that is not freed yet.
        let context = unsafe { (library.calls.open_device)(found) };
        let context = NonNull::new(context).ok_or_else(|| {
            let why = io::Error::last_os_error();
            format!("cannot open {name}: {why} (its file is in /dev/infiniband)")
        })?;
        // SAFETY: the context is open.
        let domain = unsafe { (library.calls.alloc_pd)(context.as_ptr()) };
        let Some(domain) = NonNull::new(domain) else {
            let why = io::Error::last_os_error();
            // SAFETY: nothing was made of the context.
            unsafe { (library.calls.close_device)(context.as_ptr()) };
            return Err(format!("cannot use {name}: {why}"));
        };
        drop(list);
        let mut device = Self {
            library,
            context,
            domain,
            mtu: 0,
        };
        device.mtu = device.port_mtu(name)?;
        Ok(Arc::new(device))
    }

    fn port_mtu(&self, name: &str) -> Result<u32, String> {
        // SAFETY: zeros are a sound value of numbers.
        let mut port: IbvPortAttr = unsafe { std::mem::zeroed() };
        // SAFETY: the library writes no more than the beginning of the structure.
        let answer =
            unsafe { (self.library.calls.query_port)(self.context.as_ptr(), PORT, &raw mut port) };
        if answer != 0 {
            let why = io::Error::from_raw_os_error(answer);
            return Err(format!("{name} says nothing of its port: {why}"));
        }
        if port.link_layer != IBV_LINK_LAYER_ETHERNET {
            return Err(format!("{name} has no port of Ethernet, as RoCE needs"));
        }
        if port.state != IBV_PORT_ACTIVE {
            return Err(format!(
                "the port of {name} carries nothing: its network interface is down, or has no link"
            ));
        }
        Ok(128 << port.active_mtu.clamp(1, 5))
    }
}

impl Drop for VerbsDevice {
    fn drop(&mut self) {
        let calls = &self.library.calls;
        // SAFETY: whatever was made of the domain kept this value, and is gone.
        unsafe { (calls.dealloc_pd)(self.domain.as_ptr()) };
        // SAFETY: the domain was all that was made of the context.
        unsafe { (calls.close_device)(self.context.as_ptr()) };
    }
}

/// An object that a function of the library has made; or why it has not.
pub(super) fn made<T>(what: &str, object: *mut T) -> Result<*mut T, String> {
    if object.is_null() {
        return Err(format!("{what}: {}", io::Error::last_os_error()));
    }
    Ok(object)
}
