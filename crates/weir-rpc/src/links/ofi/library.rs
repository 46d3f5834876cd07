//! libfabric, opened at run time: its few exported functions, and which version it is.
//!
//! In: `WEIR_LIBFABRIC`, or the names under which packages install it. Out: a [`FabricLibrary`], or
//! why there is none. Nothing of it is needed to build or start weir. Not here: providers (`offer`),
//! objects (`fabric`, `endpoint`).

#![expect(
    unsafe_code,
    reason = "calls of libfabric, whose answers are addresses"
)]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::Arc;

use weir_sys::KeptSignalActions;
use weir_sys::library::{Library, SymbolScope};

use super::abi::{FabricCode, FabricContext, FiFabricAttr, FiInfo, FidFabric, INTERFACE, OLDEST};
use super::abi::{packed, unpacked};
use super::error::FabricError;

/// The variable that names the library to open.
pub const LIBRARY_VARIABLE: &str = "WEIR_LIBFABRIC";

/// As packages install it, then as a developer's link.
const LIBRARIES: [&str; 2] = ["libfabric.so.1", "libfabric.so"];

weir_sys::library_calls! {
    /// Functions of the library.
    pub(super) struct LibraryCalls {
        version = c"fi_version"() -> u32;
        strerror = c"fi_strerror"(c_int) -> *const c_char;
        getinfo = c"fi_getinfo"(
            u32, *const c_char, *const c_char, u64, *const FiInfo, *mut *mut FiInfo
        ) -> FabricCode;
        freeinfo = c"fi_freeinfo"(*mut FiInfo);
        dupinfo = c"fi_dupinfo"(*const FiInfo) -> *mut FiInfo;
        fabric = c"fi_fabric"(*mut FiFabricAttr, *mut *mut FidFabric, FabricContext) -> FabricCode;
    }
}

/// An opened libfabric.
#[derive(Debug)]
pub struct FabricLibrary {
    pub(super) calls: LibraryCalls,
    /// Its file.
    file: String,
    version: (u32, u32),
}

impl FabricLibrary {
    /// Opens the library that [`LIBRARY_VARIABLE`] names, else the system's.
    ///
    /// # Errors
    /// [`FabricError::NotFound`], [`FabricError::Incomplete`], [`FabricError::TooOld`].
    pub fn open() -> Result<Arc<Self>, FabricError> {
        Self::open_named(std::env::var(LIBRARY_VARIABLE).ok().as_deref())
    }

    /// Opens the library of this name or path, or the system's where there is none.
    ///
    /// # Errors
    /// As [`FabricLibrary::open`].
    pub fn open_named(name: Option<&str>) -> Result<Arc<Self>, FabricError> {
        // Providers end the process by themselves at signals, as they are loaded or first asked.
        let _kept = KeptSignalActions::now();
        let opened = Library::open_first(name, &LIBRARIES, SymbolScope::Own);
        let (library, name) = opened.map_err(|(wish, reason)| FabricError::NotFound {
            tried: wish.map_or_else(
                || LIBRARIES.join(", "),
                |name| format!("{name}, which {LIBRARY_VARIABLE} names: {reason}"),
            ),
        })?;
        Self::of(&library, name)
    }

    fn of(library: &Library, name: &str) -> Result<Arc<Self>, FabricError> {
        let file = library.symbol(c"fi_version").and_then(Library::file);
        let file = file.unwrap_or_else(|| name.to_owned());
        // SAFETY: libfabric's own header gives each symbol the type of its field.
        let calls = unsafe { LibraryCalls::resolve(library) };
        let calls = calls.map_err(|symbol| FabricError::Incomplete {
            file: file.clone(),
            symbol,
        })?;
        // SAFETY: resolved just now; it takes nothing, and answers with a number.
        let version = unpacked(unsafe { (calls.version)() });
        if version < OLDEST {
            return Err(FabricError::TooOld {
                file,
                found: dotted(version),
                needed: dotted(OLDEST),
            });
        }
        Ok(Arc::new(Self {
            calls,
            file,
            version,
        }))
    }

    /// The file that it was loaded from.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The version of its interface, as `1.17`.
    pub fn version(&self) -> String {
        dotted(self.version)
    }

    /// The version of the interface that this library is used by.
    pub(super) fn interface(&self) -> u32 {
        packed(self.version.min(INTERFACE))
    }

    /// Text of libfabric about an answer below 0, or its positive number.
    pub(super) fn text(&self, code: c_int) -> String {
        // SAFETY: resolved when it was opened, and never unloaded; it takes any number.
        let text = unsafe { (self.calls.strerror)(code.saturating_abs()) };
        // SAFETY: it answers with null or a string of its own that stays, which is copied at once.
        unsafe { text_of(text) }.unwrap_or_else(|| "unknown error".to_owned())
    }

    /// The error of an answer below 0.
    pub(super) fn error(&self, what: &'static str, code: c_int) -> FabricError {
        FabricError::Call {
            what,
            code: code.saturating_abs(),
            text: self.text(code),
        }
    }

    /// For an answer of which 0 and above are good.
    pub(super) fn good(&self, what: &'static str, code: c_int) -> Result<(), FabricError> {
        if code >= 0 {
            return Ok(());
        }
        Err(self.error(what, code))
    }
}

/// A string of libfabric's; `None` where there is none.
///
/// # Safety
/// The address is null, or that of a string that ends with NUL.
pub(super) unsafe fn text_of(text: *const c_char) -> Option<String> {
    if text.is_null() {
        return None;
    }
    // SAFETY: not null, so the caller answers for a string; it is copied at once.
    let text = unsafe { CStr::from_ptr(text) };
    Some(text.to_string_lossy().into_owned())
}

fn dotted((major, minor): (u32, u32)) -> String {
    format!("{major}.{minor}")
}

/// Nothing is reported to a call's context.
pub(super) const NO_CONTEXT: *mut c_void = std::ptr::null_mut();

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_that_is_not_there_is_reported_by_the_names_that_were_tried() {
        let error = FabricLibrary::open_named(Some("/nowhere/libfabric.so")).unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with("libfabric not found (looked for /nowhere/libfabric.so"));
        assert!(!text.contains('\n'));
    }

    #[test]
    fn a_library_that_is_not_libfabric_is_refused_by_the_function_it_lacks() {
        let error = FabricLibrary::open_named(Some("libc.so.6")).unwrap_err();
        assert!(matches!(
            error,
            FabricError::Incomplete { symbol, .. } if symbol == "fi_version"
        ));
    }
}
