//! Disk statistics: the counters of the disks behind the targets.
//!
//! In: counters over the run. Out: fio's text lines, and the figures that its JSON shares with
//! them.

use weir_schema::DiskCounters;

use super::entry::share;

pub(super) fn push_disks(out: &mut String, disks: &[DiskCounters]) {
    if disks.is_empty() {
        return;
    }
    out.push_str("\nDisk stats (read/write):\n");
    for disk in disks {
        let stacked = !disk.members.is_empty();
        let indent = if stacked { "    " } else { "  " };
        push!(
            out,
            "{indent}{}: {}",
            disk.device,
            disk_line(disk, "", utilisation(disk))
        );
        if stacked {
            let (sum, most) = below(disk);
            push!(out, ", {}", disk_line(&sum, "aggr", most));
        }
        out.push('\n');
        for member in &disk.members {
            let line = disk_line(member, "", utilisation(member));
            push!(out, "  {}: {line}\n", member.device);
        }
    }
}

fn disk_line(disk: &DiskCounters, prefix: &str, util: f64) -> String {
    const MS: u64 = 1_000_000;
    format!(
        "{prefix}ios={}/{}, {prefix}merge={}/{}, {prefix}ticks={}/{}, {prefix}in_queue={}, \
         {prefix}util={util:3.2}%",
        disk.read_operations,
        disk.write_operations,
        disk.read_merges,
        disk.write_merges,
        disk.read_ns.0 / MS,
        disk.write_ns.0 / MS,
        disk.in_queue_ns.0 / MS,
    )
}

/// Busy time as a share of the time between the readings.
pub(super) fn utilisation(disk: &DiskCounters) -> f64 {
    share(disk.busy_ns.0, disk.elapsed_ns.0).min(100.0)
}

/// The mean of the devices below a stacked one, and the utilisation of the busiest.
pub(super) fn below(disk: &DiskCounters) -> (DiskCounters, f64) {
    let mut mean = DiskCounters::default();
    let count = disk.members.len().max(1) as u64;
    for m in &disk.members {
        mean.read_operations += m.read_operations;
        mean.write_operations += m.write_operations;
        mean.read_merges += m.read_merges;
        mean.write_merges += m.write_merges;
        mean.read_ns.0 += m.read_ns.0;
        mean.write_ns.0 += m.write_ns.0;
        mean.in_queue_ns.0 += m.in_queue_ns.0;
    }
    for figure in [
        &mut mean.read_operations,
        &mut mean.write_operations,
        &mut mean.read_merges,
        &mut mean.write_merges,
        &mut mean.read_ns.0,
        &mut mean.write_ns.0,
        &mut mean.in_queue_ns.0,
    ] {
        *figure /= count;
    }
    (
        mean,
        disk.members.iter().map(utilisation).fold(0.0, f64::max),
    )
}
