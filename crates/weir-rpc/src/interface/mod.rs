//! Network interfaces: the one by which calls leave this machine, and the addresses that it has.
//!
//! In: what a job or a server asks for, the interfaces of the machine. Out: one of them, its
//! addresses, a fabric's domain. Not here: reading `/sys` (`weir-sys`).

pub mod choice;
pub mod local;
