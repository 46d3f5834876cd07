//! The request of a command line: a measurement, a search for a rate, the report of stored samples.
//!
//! In: arguments that were read, the machine. Out: a [`Request`]. Nothing is reached here.

use weir_schema::Plan;

use super::contradictions::refuse_contradictions;
use super::exit::{in_style_of, is_cart};
use super::{
    FLAGS, RateSearch, SelfTestOptions, output, plan, refuse, samples, table_file, variables,
};
use crate::door::{Printed, Voice};
use crate::flags::Standing;
use crate::given::Given;
use crate::house::{self, calls_peer};
use crate::machine::{Machine, NamedPath};
use crate::refusal::Refusal;
use crate::request::{Action, NamedFile, Request};
use crate::search::RunSearch;

/// The longest text of samples that is read.
const LONGEST_SAMPLES: u64 = 1 << 30;

/// The request of these arguments.
///
/// # Errors
/// Arguments that do not go together (exit 2), a group that is not there (3).
pub(super) fn read(given: &Given, machine: &dyn Machine) -> Result<Request, Refusal> {
    let options = SelfTestOptions::read(given);
    if let Some(file) = given.text("replay") {
        return replay(given, file, machine);
    }
    refuse_contradictions(given)?;
    let made = plan::of(given, machine)?;
    let old = FLAGS.iter().filter(|flag| given.has(flag.name));
    let old = old.filter_map(|flag| match flag.standing {
        Standing::WithoutEffect(why) => Some(format!("--{}: {why}", flag.name)),
        _ => None,
    });
    let notes: Vec<String> = old.chain(made.notes).collect();
    let samples = given.text("samples");
    // By the verb a dry run says what a run would refuse.
    let is_dry = given.house.has("dry-run") && house::voice(given) == Voice::Peer;
    let head = output::head(&made.plan, &options);
    match absent_table(given, &made.plan, machine) {
        Some(_) if given.house.has("show-plan") => {}
        // What ranks there are nobody can say without a table.
        Some(_) if is_dry => {
            let notes = notes.iter().map(|note| format!("note: {note}\n"));
            return Ok(Request::printed(Printed {
                out: head,
                err: notes.collect(),
                ..Printed::default()
            }));
        }
        Some(refusal) => return Err(refusal),
        None => {}
    }
    let mut request = match options.goal {
        Some(goal) => {
            let search = RateSearch::new(made.plan, goal);
            let first = search.next_plan();
            let first = first.ok_or_else(|| Refusal::usage("--find-max: nothing to measure"))?;
            Request::search(given, first, search)
        }
        None => Request::measure(given, made.plan),
    };
    request.action = match request.action {
        Action::Measure(input) | Action::Search(input, _) if is_dry => Action::DryRun(input, head),
        action => action,
    };
    request.notes = notes;
    request.stall = given.seconds("stall-timeout");
    let samples = samples.iter();
    let samples = samples.map(|file| NamedFile::written(file, "where the samples go (--samples)"));
    let token = given.text("token-file");
    let token = token.map(|file| NamedFile::read(file, "the --token-file"));
    request.files = samples.chain(token).collect();
    Ok(request)
}

/// Samples say what was measured: only what chooses how they are shown goes with them.
fn replay(given: &Given, file: &str, machine: &dyn Machine) -> Result<Request, Refusal> {
    let mut all = given.iter().chain(given.house.iter());
    let other = all.find(|(flag, _)| !flag.prints && flag.name != "replay");
    if let Some((flag, value)) = other {
        let why = "with --replay nothing is measured; leave it out";
        return Err(refuse(flag.name, value, why));
    }
    let text = machine.file_under(samples::HEAD, file, LONGEST_SAMPLES);
    let sampled = text.and_then(|text| samples::read(&text));
    let (result, code) = sampled.map_err(|why| refuse("replay", file, &why))?;
    let code = in_style_of(code, Some(&result), is_cart(given, machine));
    let mut request = Request::new(Action::Show(Box::new(result)));
    request.least_code = code;
    Ok(request)
}

/// The refusal of a run without a table of its group, which says where one was looked for.
fn absent_table(given: &Given, plan: &Plan, machine: &dyn Machine) -> Option<Refusal> {
    let work = output::first_work(plan)?;
    let table = work.table.as_ref()?;
    let kind = |path: &str| machine.named_path(path);
    if kind(&table_file(table, &work.group)).is_file() {
        return None;
    }
    let has_agent = given.has("use-daos-agent-env");
    let looked: Vec<String> = if given.has("path") {
        vec![table_file(table, &work.group)]
    } else {
        let places = variables::places(&|name| machine.variable(name), has_agent);
        let files = places.iter().map(|one| table_file(&one.path, &work.group));
        files.collect()
    };
    let named = looked.iter().map(|path| match kind(path) {
        NamedPath::Missing => path.clone(),
        _ => format!("{path}, which is no regular file"),
    });
    let (group, named) = (&work.group, named.collect::<Vec<_>>().join(", "));
    let mut refusal = Refusal::lacks(format!(
        "no table of group `{group}` (looked for {named})\n  help: start a server with `weir rpc serve \
         --group {group}`, name servers with --target tcp://HOST:PORT, or let --loopback start one for \
         this run"
    ));
    if calls_peer(given) && !has_agent && work.transport.is_none() {
        let provider = "Error: provider (D_PROVIDER) is not set\nExample: export \
                        D_PROVIDER='ofi+tcp'\n";
        refusal.message.push_str(provider);
    }
    Some(refusal)
}
