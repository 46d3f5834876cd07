//! The same words to fio and to weir, each in a directory of its own, and what both said.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::Duration;

use serde_json::Value;

use crate::left::{Left, left};
use crate::order::{Written, written};
use crate::stage::{Running, Said, Stage, peer, said};

/// The version whose behaviour is compared.
const FIO: &str = "fio-3.33";

/// Longest time of one of the two: the jobs are short.
const PATIENCE: Duration = Duration::from_secs(30);

/// Kind of a case: run, or only parsed.
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

/// Output of one of the two tools.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// fio 3.33 does not come to the end of some jobs.
    pub(crate) ended: bool,
    pub(crate) accepted: bool,
    /// The first thing it said, of several.
    pub(crate) said: Said,
    /// The text of `--showcmd`, of what was accepted.
    pub(crate) shown: Option<String>,
    pub(crate) ran: Option<Ran>,
}

/// Report of a run.
#[derive(Clone, Debug)]
pub(crate) struct Ran {
    /// Lines of the two streams.
    pub(crate) lines: Vec<String>,
    pub(crate) json: Option<Value>,
    /// Of each terse line the number of its fields; what stands on a line of its own as it is.
    pub(crate) terse: Vec<String>,
    /// The files that are there afterwards.
    pub(crate) left: Left,
    /// When they were last written.
    pub(crate) written: Written,
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
    for directory in ["dir", "many"] {
        fs::create_dir(stage.path(directory)).unwrap();
    }
    for name in ["many/first", "many/second"] {
        stage.file(name, vec![7; 256 << 10]);
    }
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

fn say(stage: &Stage, tool: &[&str], first: &[&str], case: &Case) -> (Said, bool) {
    let mut command = stage.command(tool[0]);
    command.args(&tool[1..]).args(first).args(&case.words);
    command.env("SOME", "96k").env("DIR", ".").env("SZ", "2m");
    let (said, ended) = Running::start(command).end_within(PATIENCE);
    assert!(
        ended || tool[0] == "fio",
        "weir does not end: {}",
        case.keep("endless")
    );
    (said, ended)
}

/// Output of a tool for a case.
fn seen(tool: &[&str], case: &Case) -> Seen {
    let stage = stage(case);
    if case.kind == Kind::Parse {
        let (said, ended) = say(&stage, tool, &["--parse-only"], case);
        let accepted = said.code == Some(0);
        let shown = accepted.then(|| say(&stage, tool, &["--showcmd"], case).0.out);
        return Seen {
            ended,
            accepted,
            said,
            shown,
            ran: None,
        };
    }
    let version = format!("--terse-version={}", case.terse_version());
    let formats = ["--output-format=normal,json,terse", "--eta=never", &version];
    let (said, ended) = say(&stage, tool, &formats, case);
    let ran = ran(&said, left(&stage, case), written(&stage));
    let accepted = ran.lines.iter().any(|l| l.starts_with("Starting "));
    Seen {
        ended,
        accepted,
        said,
        shown: None,
        ran: accepted.then_some(ran),
    }
}

/// Outputs of fio and weir for a case.
#[derive(Debug)]
pub(crate) struct Both {
    pub(crate) theirs: Seen,
    pub(crate) ours: Seen,
}

/// Runs both.
pub(crate) fn both(case: &Case) -> Both {
    Both {
        theirs: seen(&["fio"], case),
        ours: seen_of_weir(case),
    }
}

pub(crate) fn seen_of_weir(case: &Case) -> Seen {
    seen(&[peer("fio")], case)
}

impl Seen {
    /// Everything that it printed and left behind, for a person to read.
    fn report(&self) -> String {
        let Said { code, out, err } = &self.said;
        let left = self.ran.iter().flat_map(|ran| &ran.left);
        let line = |(name, look): (&String, &String)| format!("{name}: {look}");
        let left: Vec<String> = left.map(line).collect();
        let left = left.join("\n");
        format!("exit {code:?}\n--- out\n{out}\n--- err\n{err}\n--- left behind\n{left}\n")
    }
}

fn ran(said: &Said, left: Left, written: Written) -> Ran {
    let document = document(&said.out);
    let json = document.and_then(|text| serde_json::from_str(text).ok());
    let rest = document.map_or(said.out.clone(), |text| said.out.replacen(text, "", 1));
    let (terse, report): (Vec<&str>, Vec<&str>) = rest.lines().partition(|line| is_terse(line));
    let terse = terse.into_iter().map(fields).collect();
    let lines = said.err.lines().chain(report).map(str::to_owned).collect();
    Ran {
        lines,
        json,
        terse,
        left,
        written,
    }
}

/// A terse line has its version first; what describes the job may stand alone.
fn is_terse(line: &str) -> bool {
    line.starts_with(';') || ["2;", "3;", "4;", "5;"].iter().any(|v| line.starts_with(v))
}

fn fields(line: &str) -> String {
    if line.starts_with(';') {
        return line.to_owned();
    }
    let fields: Vec<&str> = line.split(';').collect();
    format!("version {} with {} fields", fields[0], fields.len())
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
    /// Every version in turn.
    fn terse_version(&self) -> u64 {
        2 + self.number % 4
    }

    /// Command that starts it by hand.
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

    /// Writes its files and what both made of it where they can be looked at, and says where.
    pub(crate) fn keep_with(&self, what: &str, both: &Both) -> String {
        let directory = self.keep(what);
        for (tool, seen) in [("fio", &both.theirs), ("weir", &both.ours)] {
            let path = std::path::Path::new(&directory).join(format!("{tool}.said"));
            fs::write(path, seen.report()).unwrap();
        }
        directory
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
