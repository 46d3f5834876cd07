//! Guests of the lab: the lab itself, and the module kio.

mod kernel_lab;
mod kio_module;
