//! The library, and what it lists: platforms and their devices.
//!
//! In: nothing but the machine. Out: names and handles, which live as long as the process.

#![expect(
    unsafe_code,
    reason = "OpenCL's calls, which fill memory given by address"
)]

use std::ffi::c_void;
use std::rc::Rc;

use weir_sys::KeptSignalActions;
use weir_sys::library::{Library, SymbolScope};

use super::calls::{Calls, Code, Handle};
use super::error::{DEVICE_NOT_FOUND, OpenClError, PLATFORM_NOT_FOUND, good};

/// Names a library in place of the system's.
pub(super) const LIBRARY_VARIABLE: &str = "WEIR_OPENCL_LIB";
/// The loader of drivers, as packages install it, then as a developer's link.
const LIBRARIES: [&str; 2] = ["libOpenCL.so.1", "libOpenCL.so"];

const PLATFORM_NAME: u32 = 0x0902;
const DEVICE_NAME: u32 = 0x102b;

/// Kinds of devices, in the order in which they are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Accelerator,
    Gpu,
    Cpu,
}

impl Class {
    pub(super) const ALL: [Self; 3] = [Self::Accelerator, Self::Gpu, Self::Cpu];

    /// The standard's bit.
    fn bit(self) -> u64 {
        match self {
            Self::Cpu => 1 << 1,
            Self::Gpu => 1 << 2,
            Self::Accelerator => 1 << 3,
        }
    }
}

/// An opened library.
#[derive(Debug)]
pub(super) struct OpenCl {
    pub(super) calls: Rc<Calls>,
}

/// A driver.
#[derive(Clone, Debug)]
pub(super) struct Platform {
    handle: Handle,
    pub(super) name: String,
}

/// A device of a platform.
#[derive(Clone, Debug)]
pub(super) struct ClDevice {
    pub(super) handle: Handle,
    pub(super) name: String,
}

impl OpenCl {
    /// Opens the library of this machine.
    pub(super) fn open() -> Result<Self, OpenClError> {
        let wish = std::env::var(LIBRARY_VARIABLE).ok();
        let opened = Library::open_first(wish.as_deref(), &LIBRARIES, SymbolScope::Own);
        let (library, name) = opened.map_err(|(_, reason)| OpenClError::Library(reason))?;
        // SAFETY: OpenCL's own header gives each symbol the type of its field.
        let calls = unsafe { Calls::resolve(&library) };
        let incomplete = |symbol| format!("{name} has no function {symbol}");
        let calls = calls.map_err(|symbol| OpenClError::Library(incomplete(symbol)))?;
        let calls = Rc::new(calls);
        Ok(Self { calls })
    }

    /// All platforms; none where no driver is installed.
    pub(super) fn platforms(&self) -> Result<Vec<Platform>, OpenClError> {
        let what = "list platforms";
        let handles = list(what, Some(PLATFORM_NOT_FOUND), |room, into, count| {
            // SAFETY: `into` has room for `room` handles, or is null with no room.
            unsafe { (self.calls.platforms)(room, into, count) }
        })?;
        let named = |handle: Handle| {
            let name = text("name a platform", |room, into, len| {
                // SAFETY: a handle of the list; `into` has room for `room` bytes, or is null.
                unsafe { (self.calls.platform_info)(handle, PLATFORM_NAME, room, into, len) }
            })?;
            Ok(Platform { handle, name })
        };
        handles.into_iter().map(named).collect()
    }

    /// The devices of a platform that are of this class.
    pub(super) fn devices(
        &self,
        platform: &Platform,
        class: Class,
    ) -> Result<Vec<ClDevice>, OpenClError> {
        // The first question has a driver load its compiler, which takes signals for one time each: a second
        // one would end the process in the middle of the first.
        let _kept = KeptSignalActions::now();
        let handles = list(
            "list devices",
            Some(DEVICE_NOT_FOUND),
            |room, into, count| {
                // SAFETY: a handle of the list of platforms; `into` has room for `room` handles, or is
                // null with no room.
                unsafe { (self.calls.devices)(platform.handle, class.bit(), room, into, count) }
            },
        )?;
        let named = |handle: Handle| {
            let name = text("name a device", |room, into, len| {
                // SAFETY: a handle of the list; `into` has room for `room` bytes, or is null.
                unsafe { (self.calls.device_info)(handle, DEVICE_NAME, room, into, len) }
            })?;
            Ok(ClDevice { handle, name })
        };
        handles.into_iter().map(named).collect()
    }
}

/// A list that is asked for twice: how long, then what. `none` is the code of an empty one, where
/// that has a code.
pub(super) fn list(
    what: &'static str,
    none: Option<Code>,
    ask: impl Fn(u32, *mut Handle, *mut u32) -> Code,
) -> Result<Vec<Handle>, OpenClError> {
    let mut count = 0;
    let code = ask(0, std::ptr::null_mut(), &raw mut count);
    if none == Some(code) || (code == 0 && count == 0) {
        return Ok(Vec::new());
    }
    good(what, code)?;
    let mut handles: Vec<Handle> = vec![std::ptr::null_mut(); count as usize];
    good(what, ask(count, handles.as_mut_ptr(), std::ptr::null_mut()))?;
    Ok(handles)
}

/// A text that is asked for twice: how long, then what.
pub(super) fn text(
    what: &'static str,
    ask: impl Fn(usize, *mut c_void, *mut usize) -> Code,
) -> Result<String, OpenClError> {
    let mut len = 0;
    good(what, ask(0, std::ptr::null_mut(), &raw mut len))?;
    let mut bytes = vec![0u8; len];
    let into = bytes.as_mut_ptr().cast();
    good(what, ask(len, into, std::ptr::null_mut()))?;
    let text = String::from_utf8_lossy(&bytes);
    Ok(text.trim_end_matches('\0').trim().to_owned())
}
