//! Guests of the lab: the lab itself, the module kio, packets over RoCE.

mod kernel_lab;
mod kio_module;
mod roce;
