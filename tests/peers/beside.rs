//! The same words to fio and to weir, each in a directory of its own, and what both said.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::Value;

use crate::stage::{Said, Stage, WEIR, said};

/// The version whose behaviour is compared.
const FIO: &str = "fio-3.33";

/// Whether a case is run or only parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Run,
    Parse,
}

/// Job files and the words that name them.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) seed: u64,
    pub(crate) number: u64,
    pub(crate) kind: Kind,
    /// Names and contents.
    pub(crate) files: Vec<(String, String)>,
    /// Everything after the program.
    pub(crate) words: Vec<String>,
}

/// What one of the two tools said.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) accepted: bool,
    /// The first thing it said, of several.
    pub(crate) said: Said,
    /// The text of `--showcmd`, of what was accepted.
    pub(crate) shown: Option<String>,
    pub(crate) ran: Option<Ran>,
}

/// What a run reported.
#[derive(Debug)]
pub(crate) struct Ran {
    /// What the two streams hold, as lines.
    pub(crate) lines: Vec<String>,
    pub(crate) json: Option<Value>,
}

/// Why there is no fio to compare with.
pub(crate) fn no_fio() -> Option<String> {
    if !crate::stage::has("fio") {
        return Some("no fio".to_owned());
    }
    let mut command = std::process::Command::new("fio");
    command.arg("--version");
    let version = said(command).out;
    (version.trim() != FIO).then(|| format!("fio is {}, not {FIO}", version.trim()))
}

/// A directory with the files of a case.
fn stage(case: &Case) -> Stage {
    let stage = Stage::in_memory();
    for (name, text) in &case.files {
        stage.file(name, text);
    }
    lay_card(&stage);
    stage
}

/// The emulated card of the examples: one memory behind eight channels.
pub(crate) fn lay_card(stage: &Stage) {
    stage.sparse("card", 64 << 20);
    for i in 0..4 {
        for way in ["h2c", "c2h"] {
            symlink("card", stage.path(&format!("ch_{way}_{i}"))).unwrap();
        }
    }
}

fn say(stage: &Stage, tool: &[&str], first: &[&str], case: &Case) -> Said {
    let mut command = stage.command(tool[0]);
    command.args(&tool[1..]).args(first).args(&case.words);
    command.env("SOME", "96k").env("DIR", ".").env("SZ", "2m");
    said(command)
}

/// What a tool makes of a case.
fn seen(tool: &[&str], case: &Case) -> Seen {
    let stage = stage(case);
    if case.kind == Kind::Parse {
        let said = say(&stage, tool, &["--parse-only"], case);
        let accepted = said.code == Some(0);
        let shown = accepted.then(|| say(&stage, tool, &["--showcmd"], case).out);
        return Seen {
            accepted,
            said,
            shown,
            ran: None,
        };
    }
    let formats = ["--output-format=normal,json", "--eta=never"];
    let said = say(&stage, tool, &formats, case);
    let ran = ran(&said);
    let accepted = ran.lines.iter().any(|l| l.starts_with("Starting "));
    Seen {
        accepted,
        said,
        shown: None,
        ran: accepted.then_some(ran),
    }
}

/// fio and weir.
pub(crate) fn both(case: &Case) -> (Seen, Seen) {
    (seen(&["fio"], case), seen(&[WEIR, "fio"], case))
}

fn ran(said: &Said) -> Ran {
    let document = document(&said.out);
    let json = document.and_then(|text| serde_json::from_str(text).ok());
    let rest = document.map_or(said.out.clone(), |text| said.out.replacen(text, "", 1));
    let lines = said
        .err
        .lines()
        .chain(rest.lines())
        .map(str::to_owned)
        .collect();
    Ran { lines, json }
}

/// The JSON document between lines of text.
fn document(text: &str) -> Option<&str> {
    let start = if text.starts_with("{\n") {
        0
    } else {
        text.find("\n{\n")? + 1
    };
    let end = start + text[start..].find("\n}")? + 2;
    Some(&text[start..end])
}

impl Case {
    /// How to start it by hand.
    pub(crate) fn command(&self) -> String {
        let quoted = |w: &String| {
            if w.contains([' ', '$', ';', '#']) {
                format!("'{w}'")
            } else {
                w.clone()
            }
        };
        let words: Vec<String> = self.words.iter().map(quoted).collect();
        format!("SOME=96k fio {}", words.join(" "))
    }

    /// Writes its files where they can be looked at, and says where.
    pub(crate) fn keep(&self, what: &str) -> String {
        let name = format!("{what}-{}-{}", self.seed, self.number);
        let directory = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join("peers")
            .join(name);
        fs::create_dir_all(&directory).unwrap();
        for (name, text) in &self.files {
            fs::write(directory.join(name), text).unwrap();
        }
        fs::write(directory.join("command"), self.command()).unwrap();
        directory.display().to_string()
    }
}
