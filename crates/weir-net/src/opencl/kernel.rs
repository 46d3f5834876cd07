//! Kernels without arguments, whose launch is what is timed.
//!
//! In: a file, as source or as what a vendor's compiler made of it, or nothing: then a kernel of
//! weir's own. Out: a [`ClKernel`]. A launch is of one work item.

#![expect(unsafe_code, reason = "OpenCL's calls, on memory given by address")]

use std::ffi::c_char;
use std::rc::Rc;

use super::calls::{Calls, Handle};
use super::card::OpenDevice;
use super::error::{OpenClError, good};
use super::listing::{list, text};

/// Does nothing: what is left is the launch.
const EMPTY: &str = "__kernel void weir_empty(void) {}\n";

const BUILD_LOG: u32 = 0x1183;
const KERNEL_NAME: u32 = 0x1190;
const KERNEL_ARGUMENTS: u32 = 0x1191;

/// Source of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum KernelSource {
    /// OpenCL C.
    Text(String),
    /// Binary that a compiler made for this kind of device.
    Binary(Vec<u8>),
}

impl KernelSource {
    /// A file's content: text is source, all else is for the device as it is.
    pub(crate) fn of(content: Vec<u8>) -> Self {
        match String::from_utf8(content) {
            Ok(text) if !text.contains('\0') => Self::Text(text),
            Ok(text) => Self::Binary(text.into_bytes()),
            Err(error) => Self::Binary(error.into_bytes()),
        }
    }

    /// weir's own kernel.
    pub(crate) fn empty() -> Self {
        Self::Text(EMPTY.to_owned())
    }
}

/// A kernel, ready to be launched.
#[derive(Debug)]
pub(crate) struct ClKernel {
    calls: Rc<Calls>,
    handle: Handle,
    _program: Program,
}

#[derive(Debug)]
struct Program {
    calls: Rc<Calls>,
    handle: Handle,
}

impl ClKernel {
    /// Builds the source and takes the first kernel that has no arguments.
    ///
    /// # Errors
    /// The compiler's words, or the names of the kernels, which all have arguments.
    pub(crate) fn new(card: &OpenDevice, source: &KernelSource) -> Result<Self, OpenClError> {
        let program = Program::new(card, source)?;
        program.build(card)?;
        let calls = Rc::clone(&card.calls);
        let handles = list("list the kernels", None, |room, into, count| {
            // SAFETY: a program that was built; `into` has room for `room` handles, or is null.
            unsafe { (calls.kernels)(program.handle, room, into, count) }
        })?;
        let mut chosen = None;
        let mut names = Vec::new();
        for handle in handles {
            if chosen.is_none() && arguments(&calls, handle)? == 0 {
                chosen = Some(handle);
                continue;
            }
            names.push(name(&calls, handle)?);
            // SAFETY: of the list, and not used again.
            unsafe { (calls.release_kernel)(handle) };
        }
        let handle = chosen.ok_or_else(|| {
            let names = if names.is_empty() {
                "there is no kernel in it".to_owned()
            } else {
                format!("all of its kernels have some: {}", names.join(", "))
            };
            OpenClError::Build(format!("a kernel without arguments is needed, and {names}"))
        })?;
        Ok(Self {
            calls,
            handle,
            _program: program,
        })
    }
}

impl Program {
    fn new(card: &OpenDevice, source: &KernelSource) -> Result<Self, OpenClError> {
        let calls = Rc::clone(&card.calls);
        let (mut code, mut status) = (0, 0);
        let handle = match source {
            KernelSource::Text(text) => {
                let (start, len) = (text.as_ptr().cast::<c_char>(), text.len());
                // SAFETY: one text of `len` bytes, which OpenCL copies.
                unsafe {
                    (calls.program_of_source)(
                        card.context,
                        1,
                        &raw const start,
                        &raw const len,
                        &raw mut code,
                    )
                }
            }
            KernelSource::Binary(bytes) => {
                let (start, len) = (bytes.as_ptr(), bytes.len());
                // SAFETY: one device of the context, one binary of `len` bytes, which OpenCL
                // copies.
                unsafe {
                    (calls.program_of_binary)(
                        card.context,
                        1,
                        &raw const card.device,
                        &raw const len,
                        &raw const start,
                        &raw mut status,
                        &raw mut code,
                    )
                }
            }
        };
        good("load the kernel file", code)?;
        Ok(Self { calls, handle })
    }

    fn build(&self, card: &OpenDevice) -> Result<(), OpenClError> {
        // SAFETY: the program's own device, no options, no callback: it returns when it is done.
        let code = unsafe {
            (self.calls.build_program)(
                self.handle,
                1,
                &raw const card.device,
                c"".as_ptr(),
                None,
                std::ptr::null_mut(),
            )
        };
        if code == 0 {
            return Ok(());
        }
        let log = text("tell why", |room, into, len| {
            // SAFETY: `into` has room for `room` bytes, or is null.
            unsafe { (self.calls.build_info)(self.handle, card.device, BUILD_LOG, room, into, len) }
        });
        let log = log.unwrap_or_default();
        let mut lines = log.lines().map(str::trim).filter(|line| !line.is_empty());
        match lines.find(|line| line.contains("error")).map(str::to_owned) {
            Some(line) => Err(OpenClError::Build(line)),
            None => good("build the kernel", code),
        }
    }
}

fn arguments(calls: &Calls, kernel: Handle) -> Result<u32, OpenClError> {
    let mut count = 0u32;
    let into = (&raw mut count).cast();
    // SAFETY: the answer is 4 bytes long, and so is the place for it.
    let code = unsafe {
        (calls.kernel_info)(
            kernel,
            KERNEL_ARGUMENTS,
            size_of::<u32>(),
            into,
            std::ptr::null_mut(),
        )
    };
    good("count the arguments of a kernel", code)?;
    Ok(count)
}

fn name(calls: &Calls, kernel: Handle) -> Result<String, OpenClError> {
    text("name a kernel", |room, into, len| {
        // SAFETY: a kernel that lives; `into` has room for `room` bytes, or is null.
        unsafe { (calls.kernel_info)(kernel, KERNEL_NAME, room, into, len) }
    })
}

impl OpenDevice {
    /// Begins a launch of one work item.
    ///
    /// # Errors
    /// The device refused.
    #[inline]
    pub(crate) fn launch(&self, kernel: &ClKernel) -> Result<(), OpenClError> {
        let one = 1usize;
        let (none, event) = (std::ptr::null(), std::ptr::null_mut());
        // SAFETY: one dimension of one item; the kernel has no arguments that could be unset.
        let code = unsafe {
            (self.calls.launch)(
                self.queue,
                kernel.handle,
                1,
                none,
                &raw const one,
                &raw const one,
                0,
                std::ptr::null(),
                event,
            )
        };
        good("launch the kernel", code)
    }
}

impl Drop for ClKernel {
    fn drop(&mut self) {
        // SAFETY: made for this value alone; OpenCL keeps what is still in use.
        unsafe { (self.calls.release_kernel)(self.handle) };
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: made for this value alone; its kernels keep what they need.
        unsafe { (self.calls.release_program)(self.handle) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_source_and_all_else_is_for_the_device() {
        let text = KernelSource::of(b"__kernel void k(void) {}".to_vec());
        assert!(matches!(text, KernelSource::Text(_)));
        for bytes in [vec![0x7f, b'E', b'L', b'F', 0], vec![0xff, 0xfe]] {
            assert_eq!(KernelSource::of(bytes.clone()), KernelSource::Binary(bytes));
        }
    }
}
