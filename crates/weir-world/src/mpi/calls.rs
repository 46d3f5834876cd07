//! The functions of an MPI library that weir calls, by their addresses.
//!
//! In: an opened library. Out: the table of its functions, typed by its family. A call through
//! the table costs an indirect jump, as a call into a shared library does anyway.

use std::ffi::{c_char, c_int, c_void};

use super::abi::Abi;

weir_sys::library_calls! {
    /// Functions of the library; every one answers with an error code.
    pub(super) struct Calls<A: Abi> {
        init_thread = c"MPI_Init_thread"(*mut c_int, *mut *mut *mut c_char, c_int, *mut c_int) -> c_int;
        finalize = c"MPI_Finalize"() -> c_int;
        abort = c"MPI_Abort"(A::Handle, c_int) -> c_int;
        comm_rank = c"MPI_Comm_rank"(A::Handle, *mut c_int) -> c_int;
        comm_size = c"MPI_Comm_size"(A::Handle, *mut c_int) -> c_int;
        comm_set_errhandler = c"MPI_Comm_set_errhandler"(A::Handle, A::Handle) -> c_int;
        error_string = c"MPI_Error_string"(c_int, *mut c_char, *mut c_int) -> c_int;
        barrier = c"MPI_Barrier"(A::Handle) -> c_int;
        send = c"MPI_Send"(*const c_void, c_int, A::Handle, c_int, c_int, A::Handle) -> c_int;
        recv = c"MPI_Recv"(
            *mut c_void, c_int, A::Handle, c_int, c_int, A::Handle, *mut A::Status
        ) -> c_int;
        sendrecv = c"MPI_Sendrecv"(
            *const c_void, c_int, A::Handle, c_int, c_int,
            *mut c_void, c_int, A::Handle, c_int, c_int,
            A::Handle, *mut A::Status
        ) -> c_int;
        isend = c"MPI_Isend"(
            *const c_void, c_int, A::Handle, c_int, c_int, A::Handle, *mut A::Handle
        ) -> c_int;
        irecv = c"MPI_Irecv"(
            *mut c_void, c_int, A::Handle, c_int, c_int, A::Handle, *mut A::Handle
        ) -> c_int;
        waitall = c"MPI_Waitall"(c_int, *mut A::Handle, *mut A::Status) -> c_int;
        testall = c"MPI_Testall"(c_int, *mut A::Handle, *mut c_int, *mut A::Status) -> c_int;
        iprobe = c"MPI_Iprobe"(c_int, c_int, A::Handle, *mut c_int, *mut A::Status) -> c_int;
        get_count = c"MPI_Get_count"(*const A::Status, A::Handle, *mut c_int) -> c_int;
        alltoallv = c"MPI_Alltoallv"(
            *const c_void, *const c_int, *const c_int, A::Handle,
            *mut c_void, *const c_int, *const c_int, A::Handle,
            A::Handle
        ) -> c_int;
    }
}
