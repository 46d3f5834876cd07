//! A hint to the cache: the one `unsafe` island of the generators.
//!
//! In: a slice and an index. Out: nothing; the processor may start to load the
//! element's cache line. Elsewhere than on x86-64 it does nothing.

#![cfg_attr(
    target_arch = "x86_64",
    expect(unsafe_code, reason = "the island that this module is")
)]

/// Asks for the cache line of `words[index]` ahead of its use.
#[inline(always)]
pub(super) fn prefetch(words: &[u64], index: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let address = words.as_ptr().wrapping_add(index).cast::<i8>();
        // SAFETY: a prefetch reads nothing that the program can see and never
        // faults, whatever the address; the SSE that it needs is part of x86-64.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (words, index);
}
