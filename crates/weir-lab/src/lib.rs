//! The lab: boots a kernel in QEMU, with devices and a module, runs a script there and brings back
//! what it said, in seconds and without any right on this machine.
//!
//! In: a kernel image, device specs, files, a script. Out: a [`LabRun`]: the script's status and
//! output, the files of the guest's `/out`, the kernel's log and its complaints.
//! Not here: what the tests check; installing what is missing (`cargo xtask test --all`). Nothing is
//! loaded, mounted or attached on this machine.

#![forbid(unsafe_code)]

mod accel;
mod archive;
mod batch;
mod cpu;
mod device;
mod doctor;
mod guest;
mod host;
mod initrd;
mod kernel;
mod lab;
mod matrix;
mod module_build;
mod module_file;
mod modules;
mod parts;
mod programs;
mod qemu;
mod run;
mod serial;
mod skip;
mod verdict;

pub use accel::Accel;
pub use batch::{CaseBatch, CaseRun};
pub use cpu::Pin;
pub use device::{DeviceKind, KINDS, Spec as DeviceSpec};
pub use doctor::{Prerequisite, examine};
pub use host::{Missing, Places};
pub use kernel::Kernel;
pub use lab::{Lab, Task};
pub use matrix::{MatrixRow, kernels_matching};
pub use module_build::Built;
pub use modules::ModuleTree;
pub use serial::{Complaint, ComplaintGravity, Transcript, complaints};
pub use skip::{or_skip, skip};
pub use verdict::{EmulatorEnd, Ending, LabRun, ending_of};
