//! OpenCL, opened at run time: its platforms and devices, memory of a device, kernels.
//!
//! In: settings of a transport, a rank's number on its machine. Out: a [`OpenDevice`], the device that
//! the rank works with. What OpenCL lacks here is told with the packages that bring it. Not here:
//! messages (`transport::ocl`).

mod calls;
mod card;
mod choice;
mod error;
mod kernel;
mod listing;

pub(crate) use card::{DeviceMemory, OpenDevice, StagedBuffer, When};
pub(crate) use choice::{
    CardRequest, ChosenDevice, DEVICE_MAPS, DEVICE_TYPES, NoDevice, availability,
};
pub(crate) use error::OpenClError;
pub(crate) use kernel::{ClKernel, KernelSource};
