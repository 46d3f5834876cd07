//! The fifth screen: the CPUs, the busiest first, and the disks behind the targets.

#![expect(clippy::cast_precision_loss, reason = "figures for the eye")]

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::Line;
use ratatui::widgets::{Block, Row, Table};
use weir_report::clean;
use weir_units::{BytesPerSec, Iops};

use super::super::machine::{CpuSecond, MachinePerSecond};
use super::{DIM, WARNING};

/// Percent of time taken by the hypervisor from which on it is marked.
const STEAL: f64 = 1.0;
/// Columns from which on operations are shown beside bytes.
const ROOM_FOR_OPERATIONS: u16 = 76;
const OPERATIONS_WIDTH: u16 = 12;

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, machine: &MachinePerSecond) {
    let disks = u16::try_from(machine.disks.len().clamp(1, 8)).unwrap_or(1);
    let [sum, cpus, below] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Fill(1),
        Constraint::Length(disks + 3),
    ])
    .areas(area);
    frame.render_widget(Line::raw(in_words(&machine.cpus)), sum);
    frame.render_widget(cpu_table(&machine.cpus), cpus);
    frame.render_widget(disk_table(machine, below.width), below);
}

fn in_words(cpus: &[CpuSecond]) -> String {
    if cpus.is_empty() {
        return "counters are read for a second".to_owned();
    }
    let mean = |of: fn(&CpuSecond) -> f64| cpus.iter().map(of).sum::<f64>() / cpus.len() as f64;
    let hertz = || cpus.iter().filter_map(|cpu| cpu.hertz);
    let ends = hertz().min().zip(hertz().max());
    let ends = ends.map(|(low, high)| format!("; {}-{} GHz", gigahertz(low), gigahertz(high)));
    format!(
        "{:.0} % of {} CPUs: user {:.0}, system {:.0}, steal {:.0}{}",
        mean(CpuSecond::busy),
        cpus.len(),
        mean(|cpu| cpu.user),
        mean(|cpu| cpu.system),
        mean(|cpu| cpu.steal),
        ends.unwrap_or_default()
    )
}

fn gigahertz(hertz: u64) -> String {
    format!("{:.2}", hertz as f64 / 1e9)
}

fn cpu_table(cpus: &[CpuSecond]) -> Table<'static> {
    let mut sorted: Vec<&CpuSecond> = cpus.iter().collect();
    sorted.sort_by(|a, b| b.busy().total_cmp(&a.busy()));
    let rows: Vec<Row<'static>> = sorted.into_iter().map(cpu_row).collect();
    let header = ["CPU", "busy", "user", "system", "irq", "steal", "GHz"];
    Table::new(rows, [Constraint::Fill(1); 7])
        .header(Row::new(header).style(DIM))
        .block(Block::bordered().title(" CPUs, the busiest first "))
}

fn cpu_row(cpu: &CpuSecond) -> Row<'static> {
    let percent = |share: f64| format!("{share:.0} %");
    let row = Row::new([
        cpu.number.to_string(),
        percent(cpu.busy()),
        percent(cpu.user),
        percent(cpu.system),
        percent(cpu.interrupts),
        format!("{:.1} %", cpu.steal),
        cpu.hertz.map_or(String::new(), gigahertz),
    ]);
    if cpu.steal >= STEAL {
        row.style(WARNING)
    } else {
        row
    }
}

/// Table of disks. Operations have columns of their own where there is room.
fn disk_table(machine: &MachinePerSecond, width: u16) -> Table<'static> {
    let is_wide = width >= ROOM_FOR_OPERATIONS;
    let operations = if is_wide { OPERATIONS_WIDTH } else { 0 };
    let count = |rate: f64| {
        if is_wide {
            Iops(rate).to_string()
        } else {
            String::new()
        }
    };
    let rows = machine.disks.iter().map(|disk| {
        Row::new([
            clean(&disk.name, false),
            BytesPerSec(disk.read_bytes).to_string(),
            count(disk.reads),
            BytesPerSec(disk.written_bytes).to_string(),
            count(disk.writes),
            disk.in_flight.to_string(),
            format!("{:.0} %", disk.busy),
        ])
    });
    let header = ["disk", "reads", "", "writes", "", "in fl.", "busy"];
    let widths = [
        Constraint::Fill(1),
        Constraint::Length(10),
        Constraint::Length(operations),
        Constraint::Length(10),
        Constraint::Length(operations),
        Constraint::Length(6),
        Constraint::Length(5),
    ];
    Table::new(rows.collect::<Vec<_>>(), widths)
        .header(Row::new(header).style(DIM))
        .block(Block::bordered().title(" disks behind the targets "))
}
