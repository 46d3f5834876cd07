//! Stored results, by whatever names them.
//!
//! In: an operand of a verb that reads results. Out: one result, or several runs with what they say
//! together. Not here: what is done with them.

use weir_doors::Refusal;
use weir_doors::flags::nearest;
use weir_import::{FORMATS, Format};
use weir_schema::{RunResult, Runs};

use crate::output;

/// The longest result that is read.
pub(crate) const LONGEST: u64 = 1 << 30;

/// What an operand names.
pub(crate) enum Stored {
    /// A run.
    One(Box<RunResult>),
    /// Several runs of one or more plans.
    Several(Box<Runs>),
}

impl Stored {
    /// A result of weir, or of another program by what stands in the file.
    ///
    /// # Errors
    /// Nothing that can be read, or no result.
    pub(crate) fn read(operand: &str) -> Result<Self, Refusal> {
        let refuse = |why: String| Refusal::usage(format!("{operand}: {why}"));
        let text = output::read_text(operand, LONGEST).map_err(refuse)?;
        if !is_own(&text)
            && let Some(format) = Format::of(&text)
        {
            return import(format, &text, operand);
        }
        if Runs::is_in(&text) {
            let runs = Runs::from_json(&text).map_err(|e| refuse(e.to_string()))?;
            return Ok(Self::Several(Box::new(runs)));
        }
        let result = RunResult::from_json(&text).map_err(|e| refuse(e.to_string()))?;
        if result.is_newer() {
            output::error(&format!(
                "note: {operand}: {} was made by a newer weir: what this one does not know is left \
                 out\n",
                result.schema
            ));
        }
        Ok(Self::One(Box::new(result)))
    }
}

/// Whether a text begins as a result of weir.
fn is_own(text: &str) -> bool {
    let head = text.chars().take(200).filter(|c| !c.is_whitespace());
    head.collect::<String>().starts_with("{\"schema\":\"weir.")
}

/// The same, where words may say which format of another program it has.
///
/// # Errors
/// Nothing that can be read, another format, no such format.
pub(crate) fn read_from(operand: &str, format: Option<&str>) -> Result<Stored, Refusal> {
    let Some(name) = format else {
        return Stored::read(operand);
    };
    let format = format_named(name)?;
    let text = output::read_text(operand, LONGEST)
        .map_err(|why| Refusal::usage(format!("{operand}: {why}")))?;
    import(format, &text, operand)
}

fn format_named(name: &str) -> Result<&'static Format, Refusal> {
    Format::named(name).ok_or_else(|| {
        let names: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
        let near = nearest(name, names.iter().copied()).map_or_else(String::new, |near| {
            format!("\n  help: did you mean `{near}`?")
        });
        let list = names.join(", ");
        Refusal::usage(format!(
            "no format `{name}` is read (these are: {list}){near}"
        ))
    })
}

fn import(format: &Format, text: &str, operand: &str) -> Result<Stored, Refusal> {
    let result = format.import(text, operand).map_err(|e| {
        Refusal::usage(format!(
            "{operand}:{e}\n  help: it was read as {}",
            format.meaning
        ))
    })?;
    Ok(Stored::One(Box::new(result)))
}
