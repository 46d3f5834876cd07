//! Text of `--list`: a row for each NVMe namespace of the machine.
//!
//! In: namespaces. Out: text. Not here: finding them.

use weir_units::Bytes;

use super::targets::NvmeNamespace;
use crate::machine::Machine;

const HEAD: [&str; 10] = [
    "address",
    "device",
    "model",
    "firmware",
    "size",
    "sector",
    "memory node",
    "link",
    "health",
    "in use",
];

/// The table; a sentence where there is no namespace.
pub(super) fn text(machine: &dyn Machine) -> String {
    let all = machine.nvme_namespaces();
    if all.is_empty() {
        return "no NVMe drive is on the kernel's driver here\n".to_owned();
    }
    let mut rows = vec![HEAD.map(str::to_owned)];
    let rows_of = all
        .iter()
        .map(|one| row(one, machine.drive_health(&one.node)));
    rows.extend(rows_of);
    let widths: Vec<usize> = (0..HEAD.len())
        .map(|at| {
            rows.iter()
                .map(|row| row[at].chars().count())
                .max()
                .unwrap_or(0)
        })
        .collect();
    let mut out = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths);
        let line: Vec<String> = cells
            .map(|(cell, width)| format!("{cell:<width$}"))
            .collect();
        push!(out, "{}\n", line.join("  ").trim_end());
    }
    out
}

fn row(one: &NvmeNamespace, health: Option<String>) -> [String; 10] {
    let link = match (&one.link, &one.best_link) {
        (Some(link), Some(best)) => format!("{link} (below {best})"),
        (link, _) => link.clone().unwrap_or_else(|| "-".to_owned()),
    };
    // Text of a drive may be anything.
    let clean = |text: &str| text.escape_debug().to_string();
    [
        one.address.clone(),
        one.node.clone(),
        clean(&one.model),
        clean(&one.firmware),
        Bytes(one.bytes).to_string(),
        Bytes(one.sector).to_string(),
        one.memory_node
            .map_or_else(|| "-".to_owned(), |node| node.to_string()),
        link,
        health.unwrap_or_else(|| "-".to_owned()),
        one.in_use.as_deref().map_or_else(|| "no".to_owned(), clean),
    ]
}
