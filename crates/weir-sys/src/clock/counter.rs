//! The CPU's own counter: one instruction, no order imposed on its neighbours.
//!
//! In: nothing. Out: raw ticks. Not here: whether the counter may be trusted
//! ([`super::detect`]) and what a tick is worth ([`super::scale`]).
//!
//! Neither a fence nor a serialising form is used: they cost more than they order, and a step
//! that is worth timing ends in a system call or in dependent loads.

#![expect(
    unsafe_code,
    reason = "the counter is read by an instruction that Rust has no safe name for"
)]

/// The kernel's name for the clock source that runs on this counter.
#[cfg(target_arch = "x86_64")]
pub(super) const KERNEL_NAME: Option<&str> = Some("tsc");
/// The kernel's name for the clock source that runs on this counter.
#[cfg(target_arch = "aarch64")]
pub(super) const KERNEL_NAME: Option<&str> = Some("arch_sys_counter");
/// This architecture has no counter that weir reads.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(super) const KERNEL_NAME: Option<&str> = None;

/// Reads the counter.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) fn read() -> u64 {
    // SAFETY: every x86-64 CPU has RDTSC, and Linux leaves it open to user space (prctl's
    // PR_TSC_SIGSEGV is set by nobody in this process).
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Reads the counter.
#[cfg(target_arch = "aarch64")]
#[inline(always)]
pub(super) fn read() -> u64 {
    let ticks: u64;
    // SAFETY: Linux opens CNTVCT_EL0 to user space; reading it changes nothing.
    unsafe {
        core::arch::asm!("mrs {ticks}, cntvct_el0", ticks = out(reg) ticks, options(nomem, nostack, preserves_flags));
    };
    ticks
}

/// Never called: detection chooses the kernel's clock where [`KERNEL_NAME`] is `None`.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[inline(always)]
pub(super) fn read() -> u64 {
    0
}
