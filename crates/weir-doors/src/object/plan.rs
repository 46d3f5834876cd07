//! The request of a command line: one job of tests on each rank's pool.
//!
//! In: arguments that were read, the machine. Out: a [`Request`]. Nothing is reached here.

use weir_schema::{
    Job, LARGEST_OBJECT_VALUE, ObjectDurability, ObjectLayout, ObjectPayload, ObjectPrefault,
    ObjectTest, ObjectValue, ObjectWorkload,
};
use weir_units::Bytes;

use super::command_string::{self, CommandError, Step};
use super::flags::{given_number, given_size};
use super::output;
use super::stores::{self, older_path};
use crate::door::{Printed, Voice};
use crate::flags::Standing;
use crate::given::Given;
use crate::house::{self, calls_peer};
use crate::machine::Machine;
use crate::refusal::{Refusal, USAGE};
use crate::request::Request;

/// Size of a pool whose size is given as 0.
const USUAL_POOL: Bytes = Bytes(1 << 30);
const LEAST_VALUE: Bytes = Bytes(4);

/// The request of these arguments.
///
/// # Errors
/// Numbers that mean nothing together, a command string that cannot be carried out (exit 2).
pub(super) fn read(given: &Given, machine: &dyn Machine) -> Result<Request, Refusal> {
    let layout = layout(given)?;
    if given.text("pool_nvme").is_some() && given_number(given, "pool_nvme") > 0 {
        let size = given.text("pool_nvme").unwrap_or_default();
        return Err(Refusal::usage(format!(
            "--pool_nvme {size}: pools have no tier of blocks yet; give all of it to -P"
        )));
    }
    let Some(commands) = commands(given) else {
        return lacks_commands(given);
    };
    let steps = match command_string::parse(commands, stores::tests(given), &layout) {
        Ok(steps) => steps,
        Err(error) => return wrong_commands(given, commands, &error),
    };
    if steps.iter().all(|step| matches!(step, Step::Unknown(_))) {
        return no_test(given, commands, &steps);
    }
    let (store, store_notes) = stores::read(given, machine)?;
    let work = work(given, store, layout, &steps);
    let most = work
        .tests
        .iter()
        .filter_map(|test| work.planned_operations(test))
        .max();
    if most == Some(u64::MAX) {
        return Err(Refusal::usage(
            "-o, -d, -a, -n and i: a test has more than 2^64 operations",
        ));
    }
    let mut request = Request::of_job(given, Job::of_objects(given.door.verb, work));
    request.notes = notes(given, machine, &steps);
    request.notes.extend(store_notes);
    request.before = before(given);
    Ok(request)
}

/// The work of these tests on a store.
fn work(
    given: &Given,
    store: ObjectWorkload,
    layout: ObjectLayout,
    steps: &[Step],
) -> ObjectWorkload {
    // What lacks something fails, and a failure ends the run: it comes last.
    let lacking = steps.iter().filter_map(|step| match step {
        Step::Lacking(test, _) => Some(test.clone()),
        _ => None,
    });
    let tests = steps.iter().filter_map(|step| match step {
        Step::Test(test) => Some(ObjectTest {
            prompt: given.has("wait").then(|| {
                let name = command_string::name(test.action);
                format!("Type 'y|Y' to run test={name}: ")
            }),
            ..test.clone()
        }),
        _ => None,
    });
    ObjectWorkload {
        pool_bytes: Some(given_size(given, "pool_scm"))
            .filter(|size| size.0 > 0)
            .unwrap_or(USUAL_POOL),
        container: given.text("cont").map(str::to_ascii_lowercase),
        durability: given.text("durability").and_then(|word| {
            let mut all = ObjectDurability::ALL.into_iter();
            all.find(|level| level.name() == word)
        }),
        prefault: match given.text("prefault") {
            Some("all") => ObjectPrefault::All,
            Some("none") => ObjectPrefault::None,
            _ => ObjectPrefault::Plan,
        },
        seed: given_number(given, "seed"),
        zero_copy: given.has("zcopy"),
        thread_per_operation: given.has("abt_ult"),
        payload: if given.has("compat-payload") {
            ObjectPayload::Compat
        } else {
            ObjectPayload::Verified
        },
        truncate: given.has("compat-truncate"),
        tests: tests.chain(lacking).collect(),
        layout,
        ..store
    }
}

/// Keys and values. Flat objects have one attribute key, as have those of which all are one.
///
/// # Errors
/// A number of 0, a value that is too long.
pub(super) fn layout(given: &Given) -> Result<ObjectLayout, Refusal> {
    let number = |name| given_number(given, name);
    let flat = given.has("flat_dkey") && older_path(given).is_none();
    let constant_akey = given.has("const_akey") || flat;
    let [dkeys, akeys, strides] = ["dkey", "akey", "num"].map(number);
    if [dkeys, akeys, strides].contains(&0) {
        let why = format!("Invalid arguments {dkeys}/{akeys}/{strides}/");
        let help = usage(given);
        return Err(Refusal::usage(&why).by_peer(format!("{why}\n{help}")));
    }
    let stride_bytes = given_size(given, "size").max(LEAST_VALUE);
    if stride_bytes > LARGEST_OBJECT_VALUE {
        let size = given.text("size").unwrap_or_default();
        let why = format!("--size {size}: DER_INVAL(-1003): values have at most 1 GiB");
        return Err(Refusal::usage(why));
    }
    let shuffled = given
        .operands
        .iter()
        .any(|word| word.eq_ignore_ascii_case("r"))
        || given.text("array").is_some_and(|word| !word.is_empty());
    Ok(ObjectLayout {
        objects: number("obj").max(1),
        dkeys,
        akeys: if constant_akey { 1 } else { akeys },
        strides,
        stride_bytes,
        value: if given.has("array") {
            ObjectValue::Array { shuffled }
        } else {
            ObjectValue::Single
        },
        integer_dkeys: given.has("int_dkey") || flat,
        constant_akey,
        flat,
    })
}

/// The command string.
pub(super) fn commands(given: &Given) -> Option<&str> {
    let both = given.has("B").then_some("U;p F;p");
    given.text("run").or(both)
}

/// Notes on arguments and variables that do something else than one may think.
fn notes(given: &Given, machine: &dyn Machine, steps: &[Step]) -> Vec<String> {
    let mut notes = Vec::new();
    let idle = given.iter().filter_map(|(flag, _)| match flag.standing {
        Standing::WithoutEffect(why) => Some(format!("-{}: {why}", flag.name)),
        _ => None,
    });
    notes.extend(idle);
    if machine.variable("PMEM_NO_FLUSH").is_some() {
        notes.push(
            "PMEM_NO_FLUSH is ignored: without flushes updates do not survive a loss of power; \
             --durability chooses what they survive"
                .to_owned(),
        );
    }
    let has_default = given.has("obj") && given_number(given, "obj") == 0;
    if house::voice(given) == Voice::Weir {
        notes.extend(has_default.then(|| no_objects(given)));
        notes.extend(steps.iter().filter_map(|step| match step {
            Step::Unknown(code) => Some(format!("unknown test code {code}: skipped")),
            Step::Idle(test) => {
                let layout = layout(given).ok()?;
                stores::tests(given)
                    .idle(test.action, &layout)
                    .map(str::to_owned)
            }
            Step::Lacking(_, why) => Some(format!("Q fails: {why}")),
            Step::Test(_) => None,
        }));
    }
    notes
}

/// The peer's lines before it begins.
fn before(given: &Given) -> String {
    let mut out = String::new();
    if house::voice(given) == Voice::Weir {
        return out;
    }
    if given.has("obj") && given_number(given, "obj") == 0 {
        push!(out, "{}\n", no_objects(given));
    }
    for (flag, what) in [("pool", "pool"), ("cont", "cont")] {
        if let Some(uuid) = given.text(flag) {
            push!(
                out,
                "Using {what}:{}\n",
                uuid.chars().take(8).collect::<String>()
            );
        }
    }
    out
}

fn no_objects(given: &Given) -> String {
    let word = given.text("obj").unwrap_or_default();
    format!("bad -o arg '{word}', set ts_obj_p_cont as 1")
}

/// The page of the door.
pub(super) fn usage(given: &Given) -> String {
    given.door.command().render_help().to_string()
}

/// A refusal that the peer prints on standard output.
fn refused(given: &Given, out: String, err: String, why: &str) -> Result<Request, Refusal> {
    if !calls_peer(given) {
        return Err(Refusal::usage(why));
    }
    Ok(Request::printed(Printed {
        out,
        err,
        code: USAGE,
        ..Printed::default()
    }))
}

fn lacks_commands(given: &Given) -> Result<Request, Refusal> {
    let why = "Please provide command string";
    let out = format!("{why}\n{}", usage(given));
    refused(
        given,
        out,
        String::new(),
        &format!("{why}, as -R \"U;p F;p\""),
    )
}

fn wrong_commands(given: &Given, commands: &str, error: &CommandError) -> Result<Request, Refusal> {
    let why = format!("-R \"{commands}\": {}", error.why);
    let err = format!("{}\n", error.why);
    let out = format!("Invalid test parameters: {}\n", error.after);
    refused(given, out, err, &why)
}

fn no_test(given: &Given, commands: &str, steps: &[Step]) -> Result<Request, Refusal> {
    let (mut out, mut err) = (String::new(), String::new());
    for step in steps {
        if let Step::Unknown(code) = step {
            output::unknown(&mut out, &mut err, *code);
        }
    }
    out.push_str("Please provide command string\n");
    let letters = stores::tests(given)
        .letters
        .split("")
        .filter(|letter| !letter.is_empty());
    let list = letters.collect::<Vec<_>>().join(", ");
    let why = format!("-R \"{commands}\": it has no test; there are {list}");
    refused(given, out, err, &why)
}
