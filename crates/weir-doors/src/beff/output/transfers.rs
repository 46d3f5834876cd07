//! Transfers between a device and its host: a table for each kind, titled with its direction.

use weir_schema::{SizeFigures, Transfer};

use super::View;
use super::number::scientific;

/// The figures of one kind.
pub(super) struct TransferFigures {
    pub(super) transfer: Transfer,
    pub(super) figures: Vec<SizeFigures>,
}

impl TransferFigures {
    /// The key in JSON.
    pub(super) fn key(&self) -> &'static str {
        match self.transfer {
            Transfer::HostToDevice => "host_to_device",
            Transfer::KernelLaunch => "kernel_launch",
            Transfer::DeviceToHost => "device_to_host",
        }
    }

    /// The direction, and the flag that asks for it.
    fn title(&self) -> &'static str {
        match self.transfer {
            Transfer::HostToDevice => "host to device (--pcie-read: the device reads)",
            Transfer::KernelLaunch => "kernel launch (--kernel-latency)",
            Transfer::DeviceToHost => "device to host (--pcie-write: the device writes)",
        }
    }

    /// The mean over the sizes, with its unit: seconds per launch, or bytes per second.
    pub(super) fn mean(&self) -> Option<(f64, &'static str)> {
        match self.transfer {
            Transfer::KernelLaunch => self.figures.first().map(|f| (seconds_per_step(f), "s")),
            _ => weir_schema::effective_bytes_per_s(&self.figures).map(|mean| (mean, "B/s")),
        }
    }
}

/// Time of one step of one replication.
fn seconds_per_step(row: &SizeFigures) -> f64 {
    row.usec_per_message / 1e6
}

/// All tables.
pub(super) fn tables(view: &View<'_>) -> String {
    let mut out = String::new();
    for part in &view.parts {
        push!(out, "{}\n", part.title());
        out += &table(part);
        if let Some((mean, unit)) = part.mean() {
            let of = if unit == "s" { "per launch" } else { "mean" };
            push!(out, "\n{of} = {:>11} {unit}\n\n", scientific(mean));
        }
    }
    out
}

fn table(part: &TransferFigures) -> String {
    let launches = part.transfer == Transfer::KernelLaunch;
    let (first, last) = if launches {
        (None, "s/launch")
    } else {
        (Some("MSize"), "B/s")
    };
    let mut out = String::new();
    let mut line = |cells: [Option<String>; 4]| {
        let cells = cells.into_iter().flatten();
        let cells: Vec<String> = cells.map(|cell| format!("{cell:>20}")).collect();
        push!(out, "{}\n", cells.join("   "));
    };
    line([
        first.map(str::to_owned),
        Some("looplength".to_owned()),
        Some("time [s]".to_owned()),
        Some(last.to_owned()),
    ]);
    for row in &part.figures {
        let rate = if launches {
            seconds_per_step(row)
        } else {
            row.bytes_per_s
        };
        line([
            first.map(|_| row.message_bytes().to_string()),
            Some(row.loop_length.to_string()),
            Some(scientific(row.time_s)),
            Some(scientific(rate)),
        ]);
    }
    out
}
