//! A shared library opened at run time.
//!
//! In: names or a path. Out: addresses of its symbols, and tables of its functions
//! ([`library_calls`](crate::library_calls)). It stays loaded: libraries keep threads and exit handlers
//! that outlive any use. Not here: what the symbols are (whoever opens it).

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

    /// Opens the library that `wish` names, else the first of `names` that there is; and its name.
    /// An empty wish is none.
    ///
    /// # Errors
    /// The name that was wished for, if one was, and the loader's own words about the first that was
    /// tried.
    pub fn open_first<'a>(
        wish: Option<&'a str>,
        names: &[&'a str],
        scope: SymbolScope,
    ) -> Result<(Self, &'a str), (Option<&'a str>, String)> {
        let wish = wish.filter(|name| !name.is_empty());
        let names = wish.as_ref().map_or(names, std::slice::from_ref);
        let mut reason = None;
        for &name in names {
            match Self::open(name, scope) {
                Ok(library) => return Ok((library, name)),
                Err(why) => drop(reason.get_or_insert(why)),
            }
        }
        Err((wish, reason.unwrap_or_default()))
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

/// Declares a table of functions of a library, and how it is filled: for each function a field, the
/// symbol's name, arguments and answer. A symbol that some versions call otherwise has that name behind `or`.
///
/// The table's `resolve` finds all of them, or names the first that is not there. It is `unsafe`:
/// whoever calls it answers for the types, which the library's own header gives.
///
/// ```
/// use weir_sys::library::{Library, SymbolScope};
///
/// weir_sys::library_calls! {
///     /// Functions of the C library.
///     struct NumberCalls {
///         absolute = c"abs"(i32) -> i32;
///         same = c"abs2" or c"abs"(i32) -> i32;
///     }
/// }
///
/// let library = Library::open("libc.so.6", SymbolScope::Own).unwrap();
/// // SAFETY: `stdlib.h` declares `int abs(int)`.
/// let calls = unsafe { NumberCalls::resolve(&library) }.unwrap();
/// // SAFETY: it takes any number but the least.
/// assert_eq!(unsafe { (calls.absolute)(-3) }, 3);
/// // SAFETY: the same function.
/// assert_eq!(unsafe { (calls.same)(-4) }, 4);
/// ```
#[macro_export]
macro_rules! library_calls {
    (
        $(#[$about:meta])*
        $vis:vis struct $Table:ident$(<$Types:ident: $bound:path>)? {
            $($field:ident = $symbol:literal $(or $older:literal)?
                ($($argument:ty),* $(,)?) $(-> $answer:ty)?;)*
        }
    ) => {
        $(#[$about])*
        #[derive(Debug)]
        $vis struct $Table$(<$Types: $bound>)? {
            $($vis $field: unsafe extern "C" fn($($argument),*) $(-> $answer)?,)*
        }

        impl$(<$Types: $bound>)? $Table$(<$Types>)? {
            /// Finds all of them, or names the first that is not there.
            ///
            /// # Safety
            /// Each symbol is a function of the type of its field.
            $vis unsafe fn resolve(library: &$crate::library::Library) -> Result<Self, String> {
                Ok(Self {
                    // SAFETY: the caller's word; the library is never unloaded.
                    $($field: unsafe { library.function($symbol) }
                        // SAFETY: the same.
                        $(.or_else(|| unsafe { library.function($older) }))?
                        .ok_or_else(|| $symbol.to_string_lossy().into_owned())?,)*
                })
            }
        }
    };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_that_is_wished_for_is_opened_or_the_first_that_there_is() {
        let names = ["/nowhere/first.so", "libc.so.6", "/nowhere/last.so"];
        let open = |wish, names: &[&'static str]| {
            let opened = Library::open_first(wish, names, SymbolScope::Own);
            opened.map(|(_, name)| name)
        };
        assert_eq!(open(None, &names), Ok("libc.so.6"));
        assert_eq!(open(Some(""), &names), Ok("libc.so.6"));
        assert_eq!(open(Some("libc.so.6"), &names[..1]), Ok("libc.so.6"));
        let (wish, why) = open(Some("/nowhere/wish.so"), &names).unwrap_err();
        assert_eq!(wish, Some("/nowhere/wish.so"));
        assert!(why.contains("wish.so"), "{why}");
        let (wish, why) = open(None, &[names[0], names[2]]).unwrap_err();
        assert!(wish.is_none() && why.contains("first.so"), "{why}");
    }
}
