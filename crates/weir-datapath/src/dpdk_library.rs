//! DPDK by a library of our own (`native/dpdk`), opened at run time.
//!
//! In: `WEIR_DPDK`, or the library's name. Out: a [`DpdkLibrary`] whose DPDK has started, ports and queues
//! of it; or why there is none. Nothing of it is needed to build or start weir. Not here: packets
//! (`dpdk_link`).

#![expect(
    unsafe_code,
    reason = "functions of a library opened at run time, on memory given by address"
)]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::io;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};

use weir_sys::library::{Library, SymbolScope};
use weir_sys::pin;

use crate::copy_link::FrameQueue;

/// The variable that names the library to open.
const LIBRARY_VARIABLE: &str = "WEIR_DPDK";
const LIBRARY: &str = "libweir_dpdk.so";
const REMEDY: &str =
    "`make -C native/dpdk` builds it where DPDK is installed (Debian: libdpdk-dev)";
/// `WEIR_DPDK_INTERFACE` of the library's header.
const INTERFACE: c_int = 2;
/// Frames that the library takes at once.
const BURST: usize = 32;

type DpdkHandle = *mut c_void;

weir_sys::library_calls! {
    /// Functions of the library.
    struct DpdkCalls {
        interface = c"weir_dpdk_interface"() -> c_int;
        release = c"weir_dpdk_release"() -> *const c_char;
        start = c"weir_dpdk_start"(c_int, *mut *mut c_char) -> c_int;
        port = c"weir_dpdk_port"(*const c_char) -> c_int;
        cross = c"weir_dpdk_cross"(*const c_char, *const c_char, u16, u32) -> c_int;
        open = c"weir_dpdk_open"(u16, u16, u32, u32) -> c_int;
        queue = c"weir_dpdk_queue"(u16, u16) -> DpdkHandle;
        push = c"weir_dpdk_push"(DpdkHandle, *const c_void, u32) -> c_int;
        flush = c"weir_dpdk_flush"(DpdkHandle) -> u32;
        pop = c"weir_dpdk_pop"(DpdkHandle, *mut c_void, u32) -> c_int;
        take = c"weir_dpdk_take"(DpdkHandle, *mut FrameInPlace, u32) -> u32;
        give_back = c"weir_dpdk_return"(DpdkHandle) -> u32;
        waiting = c"weir_dpdk_waiting"(DpdkHandle) -> c_int;
        queue_free = c"weir_dpdk_queue_free"(DpdkHandle);
        close = c"weir_dpdk_close"(u16);
    }
}

/// An opened library, whose DPDK has started.
#[derive(Debug)]
pub(crate) struct DpdkLibrary {
    calls: DpdkCalls,
}

/// The library, once it has been opened: DPDK starts once in a process, with or without cards.
static OPENED: Mutex<Option<(Arc<DpdkLibrary>, Vec<String>)>> = Mutex::new(None);

impl DpdkLibrary {
    /// Opens the library and starts DPDK with memory of plain pages, and of all cards those of these
    /// addresses.
    ///
    /// # Errors
    /// The part that is missing, and what helps.
    pub(crate) fn open(cards: &[String]) -> Result<Arc<Self>, String> {
        let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((library, known)) = &*opened {
            return if known == cards {
                Ok(Arc::clone(library))
            } else {
                Err("DPDK starts once in a process, and has with other cards".to_owned())
            };
        }
        let calls = calls()?;
        let library = Arc::new(Self { calls });
        library.start(cards)?;
        *opened = Some((Arc::clone(&library), cards.to_vec()));
        Ok(library)
    }

    /// Starts DPDK, on a thread of its own: it binds the thread that starts it to a CPU.
    fn start(&self, cards: &[String]) -> Result<(), String> {
        let allowed = pin::affinity().map_err(|why| why.to_string())?;
        let cpu = allowed.as_slice().first().copied().unwrap_or(0);
        let mut words = vec![
            "weir".to_owned(),
            "--no-huge".to_owned(),
            "-m".to_owned(),
            "256".to_owned(),
            "--no-telemetry".to_owned(),
            "--no-shconf".to_owned(),
            "--log-level=error".to_owned(),
            "--lcores".to_owned(),
            format!("0@{cpu}"),
        ];
        if cards.is_empty() {
            words.push("--no-pci".to_owned());
        }
        for card in cards {
            words.extend(["-a".to_owned(), card.clone()]);
        }
        let words: Result<Vec<CString>, _> = words.into_iter().map(CString::new).collect();
        let words = words.map_err(|_| "a name has a NUL byte".to_owned())?;
        let call = self.calls.start;
        let started = std::thread::spawn(move || {
            // DPDK keeps some of the words for as long as it runs, which is to the end of the process.
            let mut words: Vec<*mut c_char> = words.into_iter().map(CString::into_raw).collect();
            let count = c_int::try_from(words.len()).unwrap_or(0);
            words.push(std::ptr::null_mut());
            // SAFETY: as many strings as is said, and a null, which stay: the array is leaked below.
            unsafe { call(count, Vec::leak(words).as_mut_ptr()) }
        });
        let answer = started.join().unwrap_or(-1);
        answered(answer).map(|_| ()).map_err(|why| {
            format!(
                "DPDK {} does not start: {why} (its own lines above say more)",
                self.release()
            )
        })
    }

    /// Its release.
    fn release(&self) -> String {
        // SAFETY: takes nothing and answers with an address.
        let text = unsafe { (self.calls.release)() };
        // SAFETY: text of the library, which ends with NUL and stays.
        let text = unsafe { CStr::from_ptr(text) };
        text.to_string_lossy().replace("DPDK ", "")
    }

    /// Two ports in memory, of which each receives what the other sends.
    ///
    /// # Errors
    /// DPDK has no memory for them.
    pub(crate) fn cross(&self, names: [&str; 2], queues: u16, slots: u32) -> Result<(), String> {
        let names = names.map(|name| CString::new(name).unwrap_or_default());
        // SAFETY: both strings end with NUL and outlive the call.
        let answer =
            unsafe { (self.calls.cross)(names[0].as_ptr(), names[1].as_ptr(), queues, slots) };
        let done = answered(answer).map(|_| ());
        done.map_err(|why| format!("DPDK cannot make rings: {why}"))
    }
}

/// Opens the library; DPDK does not start by that.
fn calls() -> Result<DpdkCalls, String> {
    let name = std::env::var(LIBRARY_VARIABLE).ok();
    let opened = Library::open_first(name.as_deref(), &[LIBRARY], SymbolScope::Everybody);
    let (library, name) = opened.map_err(|(wish, why)| {
        let name = wish.unwrap_or(LIBRARY);
        format!("cannot open {name}: {why} ({REMEDY})")
    })?;
    // SAFETY: the library's header gives each symbol the type of its field.
    let calls = unsafe { DpdkCalls::resolve(&library) }
        .map_err(|symbol| format!("{name} has no {symbol} ({REMEDY})"))?;
    // SAFETY: takes nothing and answers with a number.
    let interface = unsafe { (calls.interface)() };
    if interface != INTERFACE {
        return Err(format!(
            "{name} has interface {interface}, and {INTERFACE} is needed ({REMEDY})"
        ));
    }
    Ok(calls)
}

/// Why there is no DPDK here, as far as that is known before it starts.
pub(crate) fn lacks() -> Option<String> {
    calls().err()
}

/// The answer of a function, where it was no error.
fn answered(answer: c_int) -> io::Result<u32> {
    u32::try_from(answer).map_err(|_| io::Error::from_raw_os_error(-answer))
}

/// A port that has started; stopped when it is dropped.
#[derive(Debug)]
pub(crate) struct DpdkPort {
    library: Arc<DpdkLibrary>,
    number: u16,
}

impl DpdkPort {
    /// Makes or finds a device and starts its port: so many queues of so many slots each way, for packets
    /// up to so many bytes.
    ///
    /// # Errors
    /// There is no such device, or it cannot do that.
    pub(crate) fn open(
        library: &Arc<DpdkLibrary>,
        device: &str,
        (queues, slots): (u16, u32),
        longest: u32,
    ) -> Result<Self, String> {
        let name = CString::new(device).map_err(|_| "a name has a NUL byte".to_owned())?;
        // SAFETY: the string ends with NUL and outlives the call.
        let answer = unsafe { (library.calls.port)(name.as_ptr()) };
        let found = answered(answer);
        let found = found.map_err(|why| {
            format!("DPDK has no device {device}: {why} (its own lines above say more)")
        })?;
        let port = Self {
            library: Arc::clone(library),
            number: u16::try_from(found).unwrap_or(u16::MAX),
        };
        // SAFETY: takes numbers alone; the port is there.
        let answer = unsafe { (library.calls.open)(port.number, queues, slots, longest) };
        answered(answer).map_err(|why| {
            format!(
                "{device} does not start with {queues} queues for packets of {longest} bytes: {why}"
            )
        })?;
        Ok(port)
    }
}

impl Drop for DpdkPort {
    fn drop(&mut self) {
        // SAFETY: takes a number alone; queues keep their port, so none is left.
        unsafe { (self.library.calls.close)(self.number) };
    }
}

/// A frame where it lies, as the library says: `struct weir_dpdk_frame`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct FrameInPlace {
    bytes: *mut u8,
    length: u64,
}

/// No frame.
const NOTHING: FrameInPlace = FrameInPlace {
    bytes: NonNull::dangling().as_ptr(),
    length: 0,
};

/// A queue of a port, both ways.
#[derive(Debug)]
pub(crate) struct DpdkQueue {
    port: Arc<DpdkPort>,
    handle: NonNull<c_void>,
    /// Frames that were taken last where they lie, and how many of them are still the queue's.
    frames: Box<[FrameInPlace; BURST]>,
    taken: usize,
    slots: u32,
    /// Frames that the device did not take at the last flush.
    unsent: u32,
}

// SAFETY: the library binds a queue to no thread; it is used by one at a time, through `&mut`.
unsafe impl Send for DpdkQueue {}

impl DpdkQueue {
    /// A queue of a port that has so many, with so many slots each way.
    ///
    /// # Errors
    /// There is no memory.
    pub(crate) fn new(port: &Arc<DpdkPort>, number: u16, slots: u32) -> Result<Self, String> {
        // SAFETY: takes numbers alone; the port is open.
        let handle = unsafe { (port.library.calls.queue)(port.number, number) };
        let handle = NonNull::new(handle).ok_or("no memory for a queue of DPDK")?;
        Ok(Self {
            port: Arc::clone(port),
            handle,
            frames: Box::new([NOTHING; BURST]),
            taken: 0,
            slots,
            unsent: 0,
        })
    }

    fn calls(&self) -> &DpdkCalls {
        &self.port.library.calls
    }
}

impl FrameQueue for DpdkQueue {
    #[inline]
    fn push(&mut self, frame: &[u8]) -> bool {
        let bytes = u32::try_from(frame.len()).unwrap_or(u32::MAX);
        // SAFETY: the queue is this value's own; the frame has so many bytes, which are copied.
        unsafe { (self.calls().push)(self.handle.as_ptr(), frame.as_ptr().cast(), bytes) == 1 }
    }

    #[inline]
    fn flush(&mut self) {
        // SAFETY: the queue is this value's own.
        self.unsent = unsafe { (self.calls().flush)(self.handle.as_ptr()) };
    }

    #[inline]
    fn has_unsent(&mut self) -> bool {
        self.unsent > 0
    }

    #[inline]
    fn take(&mut self, most: usize) -> usize {
        let most = u32::try_from(most.min(BURST)).unwrap_or(0);
        let frames = self.frames.as_mut_ptr();
        // SAFETY: the queue is this value's own; as many frames are described as there is room for.
        let taken = unsafe { (self.calls().take)(self.handle.as_ptr(), frames, most) };
        if taken > 0 {
            self.taken = taken as usize;
        }
        taken as usize
    }

    #[inline]
    fn change(&mut self, mut change: impl FnMut(&mut [u8])) {
        for frame in self.frames.iter().take(self.taken) {
            let length = usize::try_from(frame.length).unwrap_or(0);
            // SAFETY: the frames were taken and neither sent back nor popped (both forget them), so that the
            // memory is this queue's, so long, and borrowed with it.
            change(unsafe { std::slice::from_raw_parts_mut(frame.bytes, length) });
        }
    }

    #[inline]
    fn give_back(&mut self) -> usize {
        self.taken = 0;
        // SAFETY: the queue is this value's own.
        unsafe { (self.calls().give_back)(self.handle.as_ptr()) as usize }
    }

    #[inline]
    fn pop(&mut self, into: &mut [u8]) -> Option<usize> {
        self.taken = 0;
        let room = u32::try_from(into.len()).unwrap_or(u32::MAX);
        // SAFETY: the queue is this value's own; no more than there is room for is written.
        let length =
            unsafe { (self.calls().pop)(self.handle.as_ptr(), into.as_mut_ptr().cast(), room) };
        usize::try_from(length).ok()
    }

    /// The device takes buffers of its own.
    #[inline]
    fn release(&mut self) {}

    fn waiting(&mut self) -> Option<(u32, u32)> {
        // SAFETY: the queue is this value's own.
        let answer = unsafe { (self.calls().waiting)(self.handle.as_ptr()) };
        Some((u32::try_from(answer).ok()?, self.slots))
    }
}

impl Drop for DpdkQueue {
    fn drop(&mut self) {
        // SAFETY: made by the library, given back once.
        unsafe { (self.calls().queue_free)(self.handle.as_ptr()) };
    }
}
