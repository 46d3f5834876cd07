//! The job files that ship inside the program: those of the folder `examples` that need nothing but
//! a name.

use crate::examples::Example;

macro_rules! examples {
    ($($name:literal: $file:literal,)+) => {
        &[$(($name, include_str!(concat!("../../../../examples/", $file)))),+]
    };
}

/// All of them.
pub(super) const EXAMPLES: &[Example] = examples! {
    "first": "first.fio",
    "groups": "fio/groups_stonewall.fio",
    "mixes": "fio/mixed_and_distributions.fio",
    "order": "fio/chain_wait_for.fio",
    "rates": "fio/rates_and_logs.fio",
    "tcp": "fio/tcp_pair.fio",
    "xdma": "xdma/xdma_4-ch_4-1M_read.fio",
    "xdma-write": "xdma/xdma_4-ch_4-1M_write.fio",
    "xdma-verify": "xdma/xdma_4-ch_4-1M_verify.fio",
    "xdma-sizes": "xdma/xdma_4-ch_4-X_read.fio",
    "xdma-sizes-write": "xdma/xdma_4-ch_4-X_write.fio",
    "edma": "xdma/edma_4-ch_4-1M_read.fio",
    "edma-write": "xdma/edma_4-ch_4-1M_write.fio",
    "edma-verify": "xdma/edma_4-ch_4-1M_verify.fio",
};
