//! The functions of an MPI library that weir calls, by their addresses.
//!
//! In: an opened library. Out: the table of its functions, typed by its family. A call through
//! the table costs an indirect jump, as a call into a shared library does anyway.

#![expect(
    unsafe_code,
    reason = "an address of a symbol becomes a function by its documented type"
)]

use std::ffi::{CStr, c_char, c_int, c_void};

use weir_sys::library::Library;

use super::abi::Abi;
use super::error::MpiError;

/// Declares the table and how it is filled: a field, the function's name, its arguments.
macro_rules! table {
    ($($field:ident = $symbol:literal($($argument:ty),*);)*) => {
        /// Functions of the library; every one answers with an error code.
        #[derive(Debug)]
        pub(super) struct Calls<A: Abi> {
            $(pub(super) $field: unsafe extern "C" fn($($argument),*) -> c_int,)*
        }

        impl<A: Abi> Calls<A> {
            /// Finds all of them.
            pub(super) fn resolve(library: &Library, file: &str) -> Result<Self, MpiError> {
                Ok(Self {
                    // SAFETY: the MPI standard gives each symbol the type of its field, with
                    // handles and status as `A` has them; the caller chose `A` by the library's
                    // family.
                    $($field: unsafe { function(library, file, $symbol) }?,)*
                })
            }
        }
    };
}

table! {
    init_thread = c"MPI_Init_thread"(*mut c_int, *mut *mut *mut c_char, c_int, *mut c_int);
    finalize = c"MPI_Finalize"();
    abort = c"MPI_Abort"(A::Handle, c_int);
    comm_rank = c"MPI_Comm_rank"(A::Handle, *mut c_int);
    comm_size = c"MPI_Comm_size"(A::Handle, *mut c_int);
    comm_set_errhandler = c"MPI_Comm_set_errhandler"(A::Handle, A::Handle);
    error_string = c"MPI_Error_string"(c_int, *mut c_char, *mut c_int);
    barrier = c"MPI_Barrier"(A::Handle);
    send = c"MPI_Send"(*const c_void, c_int, A::Handle, c_int, c_int, A::Handle);
    recv = c"MPI_Recv"(
        *mut c_void, c_int, A::Handle, c_int, c_int, A::Handle, *mut A::Status
    );
    sendrecv = c"MPI_Sendrecv"(
        *const c_void, c_int, A::Handle, c_int, c_int,
        *mut c_void, c_int, A::Handle, c_int, c_int,
        A::Handle, *mut A::Status
    );
    isend = c"MPI_Isend"(
        *const c_void, c_int, A::Handle, c_int, c_int, A::Handle, *mut A::Handle
    );
    irecv = c"MPI_Irecv"(
        *mut c_void, c_int, A::Handle, c_int, c_int, A::Handle, *mut A::Handle
    );
    waitall = c"MPI_Waitall"(c_int, *mut A::Handle, *mut A::Status);
    testall = c"MPI_Testall"(c_int, *mut A::Handle, *mut c_int, *mut A::Status);
    iprobe = c"MPI_Iprobe"(c_int, c_int, A::Handle, *mut c_int, *mut A::Status);
    get_count = c"MPI_Get_count"(*const A::Status, A::Handle, *mut c_int);
    alltoallv = c"MPI_Alltoallv"(
        *const c_void, *const c_int, *const c_int, A::Handle,
        *mut c_void, *const c_int, *const c_int, A::Handle,
        A::Handle
    );
}

/// The function of this name.
///
/// # Safety
/// `F` is the type of a pointer to it.
unsafe fn function<F: Copy>(library: &Library, file: &str, name: &CStr) -> Result<F, MpiError> {
    // SAFETY: the caller's word.
    unsafe { library.function(name) }.ok_or_else(|| MpiError::Incomplete {
        file: file.to_owned(),
        symbol: name.to_string_lossy().into_owned(),
    })
}
