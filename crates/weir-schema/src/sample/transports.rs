//! The transports that tests of doors know, as a build would offer them.
//!
//! In: nothing. Out: a catalogue of which this machine lacks nothing. A test of `weir-net` holds it
//! to what the transports say themselves. Not here: what settings take, which doors never ask.

use crate::catalogue::{SettingInfo, SettingKind, TransportCatalogue, TransportRecord};
use crate::exchange::{Method, Transfer};

/// Messages between neighbours, without settings.
const PLAIN: TransportRecord = TransportRecord {
    name: "",
    peer: None,
    summary: "",
    settings: &[],
    methods: &[Method::Sendrecv],
    transfers: &[],
    moves_data: true,
    connects_any_two: false,
    needs_launcher: false,
};

const fn setting(name: &'static str) -> SettingInfo {
    SettingInfo {
        name,
        value: SettingKind::Text,
        default: "",
        help: "",
    }
}

const TRANSPORTS: &[TransportRecord] = &[
    TransportRecord {
        name: "mpi",
        peer: Some("CPU"),
        methods: &[Method::Sendrecv, Method::Nonblocking, Method::Alltoallv],
        connects_any_two: true,
        needs_launcher: true,
        ..PLAIN
    },
    TransportRecord {
        name: "shm",
        peer: Some("CPU"),
        connects_any_two: true,
        ..PLAIN
    },
    TransportRecord {
        name: "tcp",
        settings: &[
            setting("interface"),
            setting("port"),
            setting("rate_bytes_per_s"),
        ],
        ..PLAIN
    },
    TransportRecord {
        name: "udp",
        peer: Some("UDP"),
        settings: &[
            setting("interface"),
            setting("port"),
            setting("payload_exponent"),
            setting("rate_bytes_per_s"),
            setting("loss_ms"),
            setting("drop_every"),
        ],
        ..PLAIN
    },
    TransportRecord {
        name: "file",
        peer: Some("IEC"),
        settings: &[
            setting("channel_width_bytes"),
            setting("channel_directory"),
            setting("keep_channels"),
        ],
        ..PLAIN
    },
    TransportRecord {
        name: "ocl-pcie",
        peer: Some("PCIE"),
        settings: &[
            setting("platform_name"),
            setting("platform"),
            setting("device_type"),
            setting("device"),
            setting("device_map"),
            setting("kernel_file"),
            setting("batch"),
        ],
        transfers: &[
            Transfer::HostToDevice,
            Transfer::KernelLaunch,
            Transfer::DeviceToHost,
        ],
        ..PLAIN
    },
    TransportRecord {
        name: "null",
        moves_data: false,
        ..PLAIN
    },
];

/// All of them, ready to use.
pub fn transports() -> TransportCatalogue {
    TransportCatalogue {
        records: TRANSPORTS.to_vec(),
        lacks: |_| None,
    }
}
