//! The functions of an OpenCL library that weir calls, by their addresses.
//!
//! In: an opened library. Out: the table of its functions; all are of OpenCL 1.2, which every
//! later version has. Not here: calling them (`card`, `listing`, `kernel`).

use std::ffi::{c_char, c_void};

/// Handle of a platform, device, context, queue, memory, program, kernel or event.
pub(super) type Handle = *mut c_void;

/// Code of a call's end: 0, or a negative number of the standard.
pub(super) type Code = i32;

/// A function that is never given.
pub(super) type NoCallback = Option<extern "C" fn()>;

weir_sys::library_calls! {
    /// Functions of the library.
    pub(super) struct Calls {
        platforms = c"clGetPlatformIDs"(u32, *mut Handle, *mut u32) -> Code;
        platform_info = c"clGetPlatformInfo"(Handle, u32, usize, *mut c_void, *mut usize) -> Code;
        devices = c"clGetDeviceIDs"(Handle, u64, u32, *mut Handle, *mut u32) -> Code;
        device_info = c"clGetDeviceInfo"(Handle, u32, usize, *mut c_void, *mut usize) -> Code;
        create_context = c"clCreateContext"(
            *const isize, u32, *const Handle, NoCallback, *mut c_void, *mut Code
        ) -> Handle;
        release_context = c"clReleaseContext"(Handle) -> Code;
        create_queue = c"clCreateCommandQueue"(Handle, Handle, u64, *mut Code) -> Handle;
        release_queue = c"clReleaseCommandQueue"(Handle) -> Code;
        create_buffer = c"clCreateBuffer"(Handle, u64, usize, *mut c_void, *mut Code) -> Handle;
        release_memory = c"clReleaseMemObject"(Handle) -> Code;
        read = c"clEnqueueReadBuffer"(
            Handle, Handle, u32, usize, usize, *mut c_void, u32, *const Handle, *mut Handle
        ) -> Code;
        write = c"clEnqueueWriteBuffer"(
            Handle, Handle, u32, usize, usize, *const c_void, u32, *const Handle, *mut Handle
        ) -> Code;
        finish = c"clFinish"(Handle) -> Code;
        program_of_source = c"clCreateProgramWithSource"(
            Handle, u32, *const *const c_char, *const usize, *mut Code
        ) -> Handle;
        program_of_binary = c"clCreateProgramWithBinary"(
            Handle, u32, *const Handle, *const usize, *const *const u8, *mut Code, *mut Code
        ) -> Handle;
        build_program = c"clBuildProgram"(
            Handle, u32, *const Handle, *const c_char, NoCallback, *mut c_void
        ) -> Code;
        build_info = c"clGetProgramBuildInfo"(
            Handle, Handle, u32, usize, *mut c_void, *mut usize
        ) -> Code;
        release_program = c"clReleaseProgram"(Handle) -> Code;
        kernels = c"clCreateKernelsInProgram"(Handle, u32, *mut Handle, *mut u32) -> Code;
        kernel_info = c"clGetKernelInfo"(Handle, u32, usize, *mut c_void, *mut usize) -> Code;
        release_kernel = c"clReleaseKernel"(Handle) -> Code;
        launch = c"clEnqueueNDRangeKernel"(
            Handle, Handle, u32, *const usize, *const usize, *const usize,
            u32, *const Handle, *mut Handle
        ) -> Code;
    }
}
