//! Remote procedure calls: what carries them.

pub mod ofi;
