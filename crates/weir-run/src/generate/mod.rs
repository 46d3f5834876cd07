//! Random numbers and arrivals: what every workload draws from.
//!
//! In: plain numbers from the plan (rates, a seed). Out: random streams ([`Streams`], [`rng`]) and
//! intended starts ([`arrivals`]). No I/O, no clock, no allocation after construction. Not here:
//! what a workload makes of them (offsets, sizes, payload).
//!
//! The sequences are part of the result contract: the same plan and seed give
//! the same sequence on every machine and in every later version. Therefore
//! the random numbers are our own, integers are used wherever a formula does
//! not prescribe real numbers, and `libm` replaces the platform's `ln`. Golden
//! tests pin each generator.
//!
//! Every consumer draws from its own stream, so that switching one on never
//! shifts another.
#![expect(
    clippy::inline_always,
    reason = "draws belong inside the worker's loop, whatever the inliner's estimate says"
)]

pub mod arrivals;
pub mod rng;
mod streams;

pub use streams::Streams;
