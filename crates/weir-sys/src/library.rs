//! A shared library opened at run time.
//!
//! In: a name or a path. Out: addresses of its symbols. It stays loaded: libraries keep threads
//! and exit handlers that outlive any use. Not here: what the symbols are (whoever opens it).

#![expect(
    unsafe_code,
    reason = "the dynamic loader is reached by C calls on raw strings and addresses"
)]

use std::ffi::{CStr, CString, c_int, c_void};
use std::ptr::NonNull;

/// Scope in which a library's symbols are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SymbolScope {
    /// Nobody.
    Own,
    /// Every library that is loaded later.
    Everybody,
}

/// An opened library.
#[derive(Debug)]
pub struct Library {
    handle: NonNull<c_void>,
}

impl Library {
    /// Opens a library by name (searched as the loader does) or by path.
    ///
    /// # Errors
    /// The loader's own words.
    pub fn open(name: &str, scope: SymbolScope) -> Result<Self, String> {
        let path = CString::new(name).map_err(|_| "its name holds a NUL byte".to_owned())?;
        let flags: c_int = libc::RTLD_NOW
            | match scope {
                SymbolScope::Own => libc::RTLD_LOCAL,
                SymbolScope::Everybody => libc::RTLD_GLOBAL,
            };
        // SAFETY: the string ends with NUL and outlives the call; the library's initialisers run
        // here, which is what opening it means.
        let handle = unsafe { libc::dlopen(path.as_ptr(), flags) };
        NonNull::new(handle)
            .map(|handle| Self { handle })
            .ok_or_else(last_error)
    }

    /// Address of a symbol.
    pub fn symbol(&self, name: &CStr) -> Option<NonNull<c_void>> {
        // SAFETY: the handle is of a library that is never closed, the name ends with NUL.
        NonNull::new(unsafe { libc::dlsym(self.handle.as_ptr(), name.as_ptr()) })
    }

    /// The function of this name.
    ///
    /// # Safety
    /// `F` is the type of a pointer to it.
    pub unsafe fn function<F: Copy>(&self, name: &CStr) -> Option<F> {
        const { assert!(size_of::<F>() == size_of::<NonNull<c_void>>()) };
        let address = self.symbol(name)?;
        // SAFETY: of the same size, and a pointer to a function of this type by the caller's word.
        Some(unsafe { std::mem::transmute_copy::<NonNull<c_void>, F>(&address) })
    }

    /// The file that holds the code or data at `address`, which is a symbol's.
    pub fn file(address: NonNull<c_void>) -> Option<String> {
        let mut info = libc::Dl_info {
            dli_fname: std::ptr::null(),
            dli_fbase: std::ptr::null_mut(),
            dli_sname: std::ptr::null(),
            dli_saddr: std::ptr::null_mut(),
        };
        // SAFETY: any address may be asked for, and the record is writable.
        let found = unsafe { libc::dladdr(address.as_ptr(), &raw mut info) };
        if found == 0 || info.dli_fname.is_null() {
            return None;
        }
        // SAFETY: the loader's string, which stays as long as the library is loaded: always.
        let name = unsafe { CStr::from_ptr(info.dli_fname) };
        Some(name.to_string_lossy().into_owned())
    }
}

fn last_error() -> String {
    // SAFETY: takes nothing; gives null or a string that stays until the next loader call of
    // this thread.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return "the loader gives no reason".to_owned();
    }
    // SAFETY: not null, so the string described above; copied before another call.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_string_lossy().into_owned()
}
