//! Tables of a document.

use crate::plot::PlotTable;
use crate::plot::escaped;

/// A table with these cells; all but the first column are right-aligned by the style sheet.
pub(super) fn table(head: &[String], rows: &[Vec<String>]) -> String {
    let mut out = String::from("<div class=\"wide\"><table><thead><tr>");
    for cell in head {
        push!(out, "<th>{}</th>", escaped(cell));
    }
    out += "</tr></thead><tbody>";
    for row in rows {
        out += "<tr>";
        for cell in row {
            push!(out, "<td>{}</td>", escaped(cell));
        }
        out += "</tr>";
    }
    out + "</tbody></table></div>"
}

/// A table that opens on demand.
pub(super) fn folded(title: &str, table: &PlotTable) -> String {
    if table.rows.is_empty() {
        return String::new();
    }
    format!(
        "<details><summary>{}</summary>{}</details>",
        escaped(title),
        self::table(&table.head, &table.rows)
    )
}

/// Names and values, a line each; without those that are not known.
pub(super) fn list(rows: &[(&str, Option<String>)]) -> String {
    let rows = rows.iter().filter_map(|(name, value)| {
        let value = value.as_ref().filter(|v| !v.is_empty())?;
        Some(format!(
            "<dt>{}</dt><dd>{}</dd>",
            escaped(name),
            escaped(value)
        ))
    });
    format!("<dl>{}</dl>", rows.collect::<String>())
}
