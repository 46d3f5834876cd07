//! Guests of the lab: the lab itself, the module kio, NVMe drives, an IOMMU, packets over RoCE, a store on
//! persistent memory, an emulated DMA card.

mod iommu;
mod kernel_lab;
mod kio_module;
mod nvme;
mod object_store;
mod roce;
mod shared;
mod xdma;
