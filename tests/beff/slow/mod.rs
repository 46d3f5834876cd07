//! Slow tests: launchers of MPI, devices of OpenCL, two hosts over a wire.

mod lab;
pub(crate) mod launchers;
mod opencl;
