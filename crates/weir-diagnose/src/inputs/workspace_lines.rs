//! Lines of a log about each workspace, before its table.
//!
//! In: lines that begin with `[Workspace N]`. Out: [`WorkspaceFigures`]; other lines are none of them.

use crate::inputs::{InputError, LOG_HELP};
use crate::reading::Reading;
use crate::stage_tables::WorkspaceFigures;

const BEGIN: &str = "[Workspace ";

/// Adds what a line says of a workspace.
pub(super) fn add_line(
    all: &mut Vec<WorkspaceFigures>,
    line: &str,
    number: usize,
) -> Result<(), InputError> {
    let parts = line.trim_start().strip_prefix(BEGIN);
    let Some((id, rest)) = parts.and_then(|parts| parts.split_once(']')) else {
        return Ok(());
    };
    let wrong = |what: String| InputError::new(number, what, LOG_HELP);
    let id: u32 = id
        .trim()
        .parse()
        .map_err(|_| wrong(format!("`{id}` is no workspace")))?;
    let figure = |label: &str| -> Result<Option<Reading>, InputError> {
        let Some((_, after)) = rest.split_once(label) else {
            return Ok(None);
        };
        let end = after.trim_start().find([',', ' ', ')']);
        let text = after.trim_start();
        let text = end.map_or(text, |end| &text[..end]);
        let label = label.trim();
        match Reading::of_text(text) {
            None => Err(wrong(format!("{label} `{text}` is no number"))),
            Some(reading) if reading.is_negative() => {
                Err(wrong(format!("{label} `{text}` is below 0")))
            }
            reading => Ok(reading),
        }
    };
    let is_rx = rest.trim_start().starts_with("RX Breakdown");
    let handled = if is_rx { figure("(App")? } else { None };
    let (sent, received) = (figure("App tx drop:")?, figure("Disp rx drop:")?);
    let at = all.iter().position(|known| known.id == id);
    let at = at.unwrap_or_else(|| {
        let none = || Reading::missing("the log does not say it of each workspace");
        all.push(WorkspaceFigures {
            id,
            app_tx_drops: none(),
            disp_rx_drops: none(),
            handled_mpps: none(),
        });
        all.len() - 1
    });
    let known = &mut all[at];
    for (place, new) in [
        (&mut known.app_tx_drops, sent),
        (&mut known.disp_rx_drops, received),
        (&mut known.handled_mpps, handled),
    ] {
        if let Some(new) = new {
            *place = new;
        }
    }
    Ok(())
}
