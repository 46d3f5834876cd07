//! The first lines: program and run, machine, targets.

use weir_schema::{ClockSource, DeviceFacts};

use super::Report;
use crate::color::{Text, Tone};
use crate::number_format::{program, start};

/// Below this width there is only the first line.
const ONE_LINE_BELOW: usize = 80;
/// Largest number of targets with a line each.
const TARGETS: usize = 4;
const INDENT: usize = 9;

impl Report<'_> {
    pub(super) fn header(&mut self) {
        self.first_line();
        if self.style.width >= ONE_LINE_BELOW {
            self.machine();
            self.targets();
        }
    }

    fn first_line(&mut self) {
        let result = self.result;
        let dim = |text: &str| Text::new(Tone::Dim, text);
        let program = dim(&program(result));
        let name = dim(&result.plan.name);
        let date = dim(&start(result).unwrap_or_default());
        let used = [&program, &name, &date]
            .map(|t| self.layout.columns(t))
            .iter()
            .sum::<usize>();
        // The date stands at the right edge if all fits into one line.
        let gap = self.style.width.saturating_sub(used + 2).max(2);
        let gap = if used + 4 > self.style.width { 2 } else { gap };
        self.layout.flow(program, 2, [(2, name), (gap, date)]);
    }

    fn machine(&mut self) {
        let host = &self.result.host;
        let cpus = host
            .cpus
            .map(|n| format!("{n} CPU{}", if n == 1 { "" } else { "s" }));
        let cpu = match (&host.cpu_model, cpus) {
            (Some(model), Some(cpus)) => Some(format!("{model} {cpus}")),
            (model, cpus) => model.clone().or(cpus),
        };
        let clock = match self.result.clock.source {
            ClockSource::Tsc => "clock tsc",
            ClockSource::Cntvct => "clock cntvct",
            ClockSource::Monotonic => "clock monotonic",
            ClockSource::Simulated => "clock simulated",
        };
        let clock = self.result.source.is_none().then(|| clock.to_owned());
        let facts = [
            host.hostname.clone(),
            cpu,
            host.kernel.clone(),
            clock,
            host.governor.clone(),
        ];
        let parts: Vec<Text> = facts
            .into_iter()
            .flatten()
            .map(|t| Text::new(Tone::Dim, t))
            .collect();
        if !parts.is_empty() {
            self.layout
                .list(Text::new(Tone::Dim, "machine  "), INDENT, &parts);
        }
    }

    fn targets(&mut self) {
        let devices = &self.result.host.devices;
        for (i, device) in devices.iter().take(TARGETS).enumerate() {
            let label = if i == 0 { "target   " } else { "         " };
            let parts: Vec<Text> = facts(device)
                .into_iter()
                .map(|t| Text::new(Tone::Dim, t))
                .collect();
            self.layout
                .list(Text::new(Tone::Dim, label), INDENT, &parts);
        }
        if devices.len() > TARGETS {
            let more = format!("         and {} more", devices.len() - TARGETS);
            self.layout.flow(Text::new(Tone::Dim, more), INDENT, []);
        }
    }
}

/// `/dev/nvme0n1`, `3.84 TB`, `NUMA 0`, `scheduler none`.
fn facts(device: &DeviceFacts) -> Vec<String> {
    let is_file = device.kind == "file";
    // Makers give the size of a device in decimal units, people that of a file in binary ones.
    let size = device.size_bytes.map(|size| {
        if is_file {
            size.to_string()
        } else {
            size.decimal().to_string()
        }
    });
    let below = match (&device.file_system, &device.device) {
        (Some(fs), Some(disk)) => Some(format!("{fs} on {disk}")),
        (Some(fs), None) => Some(fs.clone()),
        (None, disk) => disk
            .clone()
            .filter(|disk| !device.target.ends_with(disk.as_str())),
    };
    let parts = [
        Some(device.target.clone()),
        size,
        (device.kind == "character device").then(|| device.kind.clone()),
        below,
        device.model.clone(),
        device.numa_node.map(|node| format!("NUMA {node}")),
        device.scheduler.as_ref().map(|s| format!("scheduler {s}")),
    ];
    parts.into_iter().flatten().collect()
}
