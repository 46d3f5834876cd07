//! Facts that a library gives about itself before MPI is started.

#![expect(
    unsafe_code,
    reason = "two calls into the library, before its family is known"
)]

use std::ffi::{c_char, c_int};

use weir_sys::library::Library;

use super::abi::Family;
use super::error::MpiError;

/// The standard's largest buffer for the library's description (MPICH; Open MPI: 256).
const LIBRARY_TEXT: usize = 8192;

weir_sys::library_calls! {
    /// Functions of every family.
    struct FactCalls {
        describe = c"MPI_Get_library_version"(*mut c_char, *mut c_int) -> c_int;
        version = c"MPI_Get_version"(*mut c_int, *mut c_int) -> c_int;
    }
}

/// Facts about an MPI library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MpiLibraryFacts {
    /// Its binary interface.
    pub family: Family,
    /// The first line of its description of itself.
    pub library: String,
    /// Version of the standard it follows.
    pub version: u32,
    /// The same, behind the point.
    pub subversion: u32,
    /// The file it was loaded from.
    pub file: String,
}

impl MpiLibraryFacts {
    /// Its name and version, without what Open MPI tells of its build.
    pub fn name(&self) -> &str {
        self.library.split(',').next().unwrap_or_default()
    }

    /// Asks the library.
    ///
    /// # Errors
    /// It is of no family that weir knows.
    pub(super) fn of(library: &Library, name: &str) -> Result<Self, MpiError> {
        let unknown = |file: &str, says: &str| MpiError::Unknown {
            file: file.to_owned(),
            says: says.to_owned(),
        };
        // SAFETY: the MPI standard gives both symbols the types of their fields.
        let calls = unsafe { FactCalls::resolve(library) };
        let calls = calls.map_err(|_| unknown(name, "it is no MPI library"))?;
        let file = library.symbol(c"MPI_Get_version").and_then(Library::file);
        let file = file.unwrap_or_else(|| name.to_owned());
        let text = calls.description();
        let first = text.lines().next().unwrap_or_default().trim();
        let (version, subversion) = calls.standard();
        let is_ours = library.symbol(c"ompi_mpi_comm_world").is_some();
        let family = if is_ours {
            Family::OpenMpi
        } else if is_mpich(&text) && library.symbol(c"MPI_Abi_get_version").is_none() {
            Family::Mpich
        } else {
            return Err(unknown(&file, first));
        };
        Ok(Self {
            family,
            // MPICH puts a tab behind the colon.
            library: first.split_whitespace().collect::<Vec<_>>().join(" "),
            version,
            subversion,
            file,
        })
    }
}

/// Those who agreed on MPICH's binary interface.
fn is_mpich(description: &str) -> bool {
    ["MPICH", "MVAPICH", "Intel(R) MPI"]
        .iter()
        .any(|name| description.contains(name))
}

impl FactCalls {
    fn description(&self) -> String {
        let mut text = vec![0u8; LIBRARY_TEXT];
        let mut length: c_int = 0;
        // SAFETY: the buffer is as large as the standard's largest, both pointers are writable, and
        // the call is allowed before MPI is started.
        let code = unsafe { (self.describe)(text.as_mut_ptr().cast(), &raw mut length) };
        let length = usize::try_from(length).unwrap_or(0).min(text.len());
        if code != 0 {
            return String::new();
        }
        let end = text[..length].iter().position(|&byte| byte == 0);
        String::from_utf8_lossy(&text[..end.unwrap_or(length)]).into_owned()
    }

    fn standard(&self) -> (u32, u32) {
        let (mut version, mut subversion): (c_int, c_int) = (0, 0);
        // SAFETY: both pointers are writable, and the call is allowed before MPI is started.
        let code = unsafe { (self.version)(&raw mut version, &raw mut subversion) };
        let plain = |n: c_int| u32::try_from(n).unwrap_or(0);
        if code == 0 {
            (plain(version), plain(subversion))
        } else {
            (0, 0)
        }
    }
}
