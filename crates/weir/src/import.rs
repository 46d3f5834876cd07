//! `weir import`: a result of another program in the form of weir's own.

use weir_doors::import::{Action, Import, read};
use weir_doors::{Refusal, USAGE};
use weir_import::{Column, import_csv};
use weir_schema::RunResult;

use crate::stored::{Stored, read_from, read_text};
use crate::{Outcome, no_result, output, printed};

/// Carries out the arguments after `import`.
pub(crate) fn run(words: &[String]) -> Outcome {
    match read(words)? {
        Action::Print(text) => Ok(printed(&text)),
        Action::Import(import) => carry_out(&import),
    }
}

fn carry_out(import: &Import) -> Outcome {
    let refuse = |why: String| Refusal::usage(format!("{}: {why}", import.file));
    let result = if import.columns.is_empty() {
        match read_from(&import.file, import.format.as_deref())? {
            Stored::One(result) if result.source.is_some() => *result,
            _ => return Err(refuse("it is a result of weir already".to_owned())),
        }
    } else {
        of_columns(import)?
    };
    let text = result.to_json().map_err(|e| refuse(e.to_string()))? + "\n";
    match &import.output {
        None => Ok(printed(&text)),
        Some(path) if output::are_same(path, &import.file) => Err(refuse(
            "-o names the file itself, which would be lost".to_owned(),
        )),
        Some(path) => {
            output::write_file(path, &text).map_err(|why| Refusal::new(USAGE, why))?;
            Ok(0)
        }
    }
}

/// The columns of a CSV file that are asked for.
fn of_columns(import: &Import) -> Result<RunResult, Refusal> {
    let columns = import.columns.iter().map(|text| Column::read(text));
    let columns: Result<Vec<Column>, String> = columns.collect();
    let columns = columns.map_err(|why| Refusal::usage(format!("--column: {why}")))?;
    let text = read_text(&import.file, None)?;
    import_csv(&text, &columns, &import.file).map_err(|e| {
        Refusal::usage(format!(
            "{}:{e}\n  help: it was read as CSV whose first line names the columns{}",
            import.file,
            no_result::seems_other(&text, "csv")
        ))
    })
}

#[cfg(test)]
mod tests {
    use weir_import::FORMATS;

    #[test]
    fn the_help_lists_every_format() {
        let lines = FORMATS
            .iter()
            .map(|format| format!("  {:14}  {}\n", format.name, format.meaning));
        let list: String = lines.collect();
        assert!(weir_doors::import::HELP.contains(&list), "{list}");
    }
}
