//! Guests of the lab: the lab itself, the module kio, packets over RoCE, a store on persistent
//! memory.

mod kernel_lab;
mod kio_module;
mod object_store;
mod roce;
mod shared;
