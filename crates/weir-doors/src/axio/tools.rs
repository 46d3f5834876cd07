//! `weir axio tools`: arguments of the Axio emulator's own tools, carried out by the doors that do the same.
//!
//! In: given flags. Out: what is printed, or the arguments of `weir diagnose` or `weir tune`. Not here: `-v` and
//! `-p` alone, which every verb takes.

use super::look::{Look, look};
use crate::door::Printed;
use crate::given::GivenFlags;
use crate::refusal::Refusal;
use crate::request::{Action, Request, Tool};

/// Flags that only the tools have.
const OWN: [&str; 4] = ["diagnose", "metric", "tune", "list-packages"];

const DIAGNOSE: &str = "diagnose";

/// The folder of what each trial prints.
const LOGS: &str = "tmp";

/// Debian's packages for links that are not part of weir.
pub(super) const PACKAGES: &str = "\
dpdk libdpdk-dev   links by DPDK: make -C native/dpdk
linux-perf         counters of the processor for weir diagnose --perf
";

/// The tools, as they are listed where none is named.
const TOOLS: &str = "`weir axio tools` needs a tool\n  \
    -v  verify the configuration of -c\n  \
    -p  print its tunable numbers\n  \
    -d LOG -m REPORT  say what holds the path back\n  \
    -t N  search for better batches in N trials\n  \
    -i  print what to install for links that are not part of weir";

/// Message for a call that names no configuration.
pub(super) const NO_CONFIG: &str = "Please specify the configuration file via -c";

/// An error with the message and the exit code of the older tools.
pub(super) fn error(why: &str) -> Request {
    Request::printed(Printed {
        err: format!("[ERROR] {why}\n"),
        code: 1,
        ..Printed::default()
    })
}

/// Finds out whether the arguments ask for something that only the tools do.
///
/// # Errors
/// Such a flag at another verb.
pub(super) fn has_own(given: &GivenFlags, is_tool: bool) -> Result<bool, Refusal> {
    let flag = OWN.into_iter().find(|flag| given.has(flag));
    match flag {
        Some(flag) if !is_tool => Err(Refusal::usage(format!(
            "--{flag} acts only with `weir axio tools`\n  help: `weir axio tools -c FILE --{flag} …`"
        ))),
        flag => Ok(flag.is_some()),
    }
}

/// Finds out whether a tool is named. The older tools silently do nothing without one.
///
/// # Errors
/// None is.
pub(super) fn check_named(given: &GivenFlags) -> Result<(), Refusal> {
    let is_named = |flag: &&str| given.has(flag);
    if OWN.iter().chain(&["verify", "print"]).any(is_named) {
        Ok(())
    } else {
        Err(Refusal::usage(TOOLS))
    }
}

/// Carries out a tool that takes a configuration, other than `-v` and the `-p` of a search, which come first.
///
/// # Errors
/// As [`look`].
pub(super) fn carry_out(asked: &Look<'_>, file: &str) -> Result<Request, Refusal> {
    let given = asked.given;
    let call = if let Some(trials) = given.text("tune") {
        tune(given, (file, trials))
    } else {
        diagnose(given, file)
    };
    let (verb, args) = match call {
        Ok(call) => call,
        Err(why) => return Ok(error(why)),
    };
    let is_figure = verb == DIAGNOSE;
    let asked = Look {
        prints: asked.prints && !is_figure,
        verifies: false,
        ..*asked
    };
    let before = look(&asked)?;
    if before.code > 0 {
        return Ok(Request::printed(before));
    }
    Ok(Request::new(Action::Tool(Tool::OtherDoor {
        before,
        verb,
        args,
    })))
}

/// Verb of another door, with its arguments.
type OtherCall = (&'static str, Vec<String>);

/// Call of `weir diagnose`.
fn diagnose(given: &GivenFlags, file: &str) -> Result<OtherCall, &'static str> {
    let log = given.text("diagnose");
    let log = log.ok_or("Please specify the log file via -d")?;
    let report = given.text("metric");
    let report = report.ok_or("Please specify the metric file via -m")?;
    let args = [log, report, "-c", file].map(str::to_owned);
    let figures = given.has("print").then(|| "-p".to_owned());
    Ok((DIAGNOSE, args.into_iter().chain(figures).collect()))
}

/// Call of `weir tune`.
fn tune(given: &GivenFlags, (file, trials): (&str, &str)) -> Result<OtherCall, &'static str> {
    if given.has("diagnose") || given.has("metric") {
        return Err("-t measures and diagnoses itself: leave out -d and -m");
    }
    let mut args = ["--trials", trials, "-c", file, "--logs", LOGS]
        .map(str::to_owned)
        .to_vec();
    let looks = ["print", "verify"]
        .into_iter()
        .filter(|flag| given.has(flag));
    args.extend(looks.map(|flag| format!("--show={flag}")));
    let sides = ["--server", "--client", "--loopback"];
    let side = sides.into_iter().find(|side| given.has(&side[2..]));
    let command = |side| ["--", "axio", "-c", "{config}", side].map(str::to_owned);
    args.extend(side.into_iter().flat_map(command));
    Ok(("tune", args))
}
