//! `weir obj run`: mixes of operations on a store, with the distribution of their keys.
//!
//! In: arguments that were read. Out: a [`Request`], a job for each engine. Spec: object store performance, 6.
//! Not here: tests in the order of a command string (`object`).

use std::path::PathBuf;

use weir_schema::{
    Group, Job, KeyDistribution, LARGEST_OBJECT_VALUE, MixShares, OBJECT_KINDS, ObjectAction,
    ObjectDurability, ObjectEngine, ObjectLayout, ObjectMix, ObjectPrefault, ObjectTest,
    ObjectWorkload, Plan, Schedule,
};
use weir_units::{Iops, parse};

use crate::door::{Door, Measures};
use crate::flags::{Flag, nearest};
use crate::given::{FlagNeed, Given};
use crate::machine::Machine;
use crate::object::stores::{no_server, servers};
use crate::refusal::Refusal;
use crate::request::Request;
use crate::selftest::values::server_uris;
use crate::takes::Takes;

/// The door, which `weir obj run` reaches too.
pub const DOOR: Door = Door {
    flags: FLAGS,
    measures: Some(Measures {
        names_jobs: false,
        help: HELP,
        examples: &[
            "weir obj-run --preset ycsb-a --ops 100000 --size 100 -D /dev/shm",
            "weir obj-run --mix update=50,fetch=50 --time 1 --dist zipf:0.99 -D /dev/shm",
            "weir obj-run --mix fetch=1 --time 1 --rate 100k --verify -D /dev/shm",
        ],
        ..Measures::new(read)
    }),
    ..Door::new(
        "obj-run",
        "",
        "mixed operations on a store, with a distribution of keys",
    )
};

const WHAT: &str = "What is run";
const STORE: &str = "The store";

const RATE: FlagNeed = FlagNeed::new("with `--rate`", |g| g.has("rate"));
const SERVED: FlagNeed = FlagNeed::new("with `--engine remote`", |g| {
    let engines = g.text("engine").unwrap_or_default();
    engines.split(',').any(|name| name == "remote")
});

/// All of them, in the order of the help text.
const FLAGS: &[Flag] = &[
    Flag::with_value(
        "mix",
        "SHARES",
        WHAT,
        "Operations in shares, as update=50,fetch=45,punch=5",
    )
    .takes(Takes::Grammar(|text| shares(text).map(drop)))
    .long("Operations: update, fetch, punch, scan, modify (a fetch, then an update), insert."),
    Flag::with_value(
        "preset",
        "NAME",
        WHAT,
        "A mix of YCSB with its distribution",
    )
    .choices(&["ycsb-a", "ycsb-b", "ycsb-c", "ycsb-d", "ycsb-e", "ycsb-f"])
    .long("--mix and --dist take the place of its own."),
    Flag::with_value(
        "dist",
        "SHAPE",
        WHAT,
        "Distribution of keys; uniform where nothing says else",
    )
    .takes(Takes::Grammar(|text| distribution(text).map(drop)))
    .long(
        "sequential, zipf:THETA and latest:THETA (0.99), hotspot:KEYS/OPS in percent (10/90), \
             normal:SIGMA as a part of the keys (0.1).",
    ),
    Flag::with_value("ops", "N", WHAT, "End after N operations").takes(COUNT),
    Flag::with_value("time", "TIME", WHAT, "End after this time").takes(Takes::Time),
    Flag::with_value(
        "rate",
        "R",
        WHAT,
        "R operations per second; latency counts from their intended starts",
    )
    .takes(Takes::Rate("operations")),
    Flag::with_value("arrival", "HOW", WHAT, "Gaps between those starts")
        .choices(&["constant", "poisson"])
        .default("constant")
        .needs(RATE),
    Flag::switch(
        "verify",
        WHAT,
        "Compare all that fetches read with what was written",
    ),
    Flag::with_value("seed", "N", WHAT, "Of the draws; 0: others at each run")
        .range(0, i64::MAX)
        .default("1"),
    Flag::with_value(
        "engine",
        "NAMES",
        STORE,
        "Stores, one after the other: mem, disk, remote; or libraries: redb, fjall, lmdb",
    )
    .takes(Takes::Grammar(|text| engines(text).map(drop)))
    .default("mem"),
    Flag::with_value(
        "targets",
        "N",
        STORE,
        "Stores with a thread each and a part of the keys and of the pool",
    )
    .range(1, 1024)
    .default("1"),
    Flag::with_value("keys", "N", STORE, "Keys that are written before")
        .takes(COUNT)
        .default("10000"),
    Flag::with_value("size", "SIZE", STORE, "Length of a value")
        .takes(Takes::Size(LARGEST_OBJECT_VALUE.0))
        .default("4k"),
    Flag::with_value(
        "dir",
        "DIR",
        STORE,
        "Directory of the pool file, which is removed at the end",
    )
    .letter('D')
    .default("."),
    Flag::with_value("pool-size", "SIZE", STORE, "Size of the pool")
        .letter('P')
        .takes(Takes::Size(1 << 50))
        .default("2g"),
    Flag::with_value(
        "durability",
        "LEVEL",
        STORE,
        "Fate that an acknowledged update survives",
    )
    .choices(&["none", "process", "power"])
    .long("Without it the best that the place of the file has."),
    Flag::with_value(
        "prefault",
        "WHAT",
        STORE,
        "Pages of the pool that are mapped in before",
    )
    .choices(&["plan", "all", "none"])
    .default("plan"),
    Flag::with_value(
        "server",
        "ADDRS",
        STORE,
        "Addresses of servers, comma-separated",
    )
    .takes(Takes::Grammar(|text| server_uris(text).map(drop)))
    .needs(SERVED)
    .long("Without it WEIR_OBJ_SERVER."),
    Flag::with_value(
        "token-file",
        "FILE",
        STORE,
        "The secret that the servers ask for",
    )
    .needs(SERVED),
];

const COUNT: Takes = Takes::Scaled(1, i64::MAX);

const HELP: &str = "\
First --keys values are written, as a phase of their own: update. Then the phase mix draws operations and keys, \
each from a stream of random numbers of its own, until --ops or --time: the same seed draws the same. Keys are \
those of vos-perf, blade-1 and so on. Only keys that were written are drawn; a punched one may be, and its fetch \
finds nothing. A scan reads 1 to 100 keys that follow each other by their numbers.

Each update is a version of its own. When the pool is full the update that finds it so waits for an aggregation, \
which drops the versions that nobody reads any more; the result has their number.";

/// The request of these arguments.
fn read(given: &Given, machine: &dyn Machine) -> Result<Request, Refusal> {
    if let Some(why) = given.refusal() {
        return Err(Refusal::usage(why));
    }
    let mix = mix(given)?;
    let names = engines(given.text("engine").unwrap_or_default()).map_err(Refusal::usage)?;
    let is_one = names.len() == 1;
    let servers = servers(given, machine)?;
    if servers.is_empty() && names.contains(&ObjectEngine::Remote) {
        return Err(no_server(""));
    }
    let groups = names.into_iter().map(|engine| {
        let mut job = Job::of_objects(engine.name(), work(given, engine, &servers, mix));
        // Each begins when the one before has ended.
        job.start.barrier = !is_one;
        Group { jobs: vec![job] }
    });
    let verb = given.door.verb;
    let plan = Plan {
        groups: groups.collect(),
        ..Plan::new(verb, verb, Vec::new())
    };
    Ok(Request::measure(given, plan))
}

fn mix(given: &Given) -> Result<ObjectMix, Refusal> {
    let preset = given.text("preset").and_then(preset);
    let asked = given.text("mix").map(shares).transpose();
    let asked = asked.map_err(Refusal::usage)?;
    let Some(shares) = asked.or(preset.map(|(shares, _)| shares)) else {
        return Err(Refusal::usage("a run needs --mix SHARES or --preset NAME"));
    };
    let shape = given.text("dist").map(distribution).transpose();
    let shape = shape.map_err(Refusal::usage)?;
    let mix = ObjectMix {
        shares,
        keys: shape
            .or(preset.map(|(_, shape)| shape))
            .unwrap_or(KeyDistribution::Uniform),
        scan_keys: ObjectMix::SCAN_KEYS,
        verify: given.has("verify"),
        operations: given.whole("ops"),
        runtime_ns: given.time("time"),
    };
    if mix.operations.is_none() && mix.runtime_ns.is_none() {
        return Err(Refusal::usage("a run needs an end: --ops N or --time TIME"));
    }
    Ok(mix)
}

/// The work on one engine: keys, then the mix.
fn work(given: &Given, engine: ObjectEngine, servers: &[String], mix: ObjectMix) -> ObjectWorkload {
    let is_remote = engine == ObjectEngine::Remote;
    let token_file = given.text("token-file").filter(|_| is_remote);
    let layout = ObjectLayout {
        dkeys: given.number("keys"),
        akeys: 1,
        strides: 1,
        stride_bytes: given.size("size").unwrap_or_default(),
        ..ObjectLayout::default()
    };
    let dir = given.text("dir").unwrap_or_default();
    let actions = [ObjectAction::Update, ObjectAction::Mix(mix)];
    let mut work = ObjectWorkload {
        engine,
        path: format!("{}/obj", dir.strip_suffix('/').unwrap_or(dir)),
        targets: Some(given.number("targets")).filter(|targets| *targets > 1),
        pool_bytes: given.size("pool-size").unwrap_or_default(),
        servers: if is_remote {
            servers.to_vec()
        } else {
            Vec::new()
        },
        token_file: token_file.map(PathBuf::from),
        durability: given.text("durability").and_then(|word| {
            let mut all = ObjectDurability::ALL.into_iter();
            all.find(|level| level.name() == word)
        }),
        prefault: match given.text("prefault") {
            Some("all") => ObjectPrefault::All,
            Some("none") => ObjectPrefault::None,
            _ => ObjectPrefault::Plan,
        },
        seed: given.number("seed"),
        tests: actions
            .map(|action| ObjectTest::new(action, &layout))
            .to_vec(),
        layout,
        ..ObjectWorkload::default()
    };
    let rate = given.parsed("rate", |text| parse::rate(text, "operations"));
    work.load.pacing.schedule =
        rate.map(|rate| schedule(rate, mix.shares, given.is("arrival", "poisson")));
    work
}

/// A rate of all operations, by their shares.
fn schedule(rate: f64, shares: MixShares, poisson: bool) -> Schedule {
    let weights = MixShares::KINDS.into_iter().zip(shares.weights());
    let limits = weights
        .filter(|(_, weight)| *weight > 0)
        .map(|((_, kind), weight)| {
            #[expect(clippy::cast_precision_loss, reason = "a share of small numbers")]
            let share = f64::from(weight) / shares.sum() as f64;
            ((&OBJECT_KINDS[kind]).into(), Iops(rate * share))
        });
    Schedule::OpsPerSecond {
        limit_per_s: limits.collect(),
        poisson,
        open_loop: true,
        ignore_thinktime: false,
    }
}

/// Power of zipf where none is given.
const THETA: f64 = 0.99;
const ZIPF: KeyDistribution = KeyDistribution::Zipf { theta: THETA };
const LATEST: KeyDistribution = KeyDistribution::Latest { theta: THETA };

/// Workloads of YCSB: weights of update, fetch, punch, scan, modify, insert, and the distribution.
const PRESETS: [(&str, [u32; 6], KeyDistribution); 6] = [
    ("ycsb-a", [50, 50, 0, 0, 0, 0], ZIPF),
    ("ycsb-b", [5, 95, 0, 0, 0, 0], ZIPF),
    ("ycsb-c", [0, 100, 0, 0, 0, 0], ZIPF),
    ("ycsb-d", [0, 95, 0, 0, 0, 5], LATEST),
    ("ycsb-e", [0, 0, 0, 95, 0, 5], ZIPF),
    ("ycsb-f", [0, 50, 0, 0, 50, 0], ZIPF),
];

fn preset(name: &str) -> Option<(MixShares, KeyDistribution)> {
    let mut all = PRESETS.into_iter();
    let (_, weights, shape) = all.find(|(known, ..)| *known == name)?;
    Some((MixShares::of_weights(weights), shape))
}

/// Reads `update=50,fetch=45`.
fn shares(text: &str) -> Result<MixShares, String> {
    let names = MixShares::KINDS.map(|(name, _)| name);
    let mut weights = [None; 6];
    for part in text.split(',') {
        let (name, weight) = part.split_once('=').unwrap_or((part, ""));
        let place = names.iter().position(|known| *known == name);
        let weight = weight.parse::<u32>().ok();
        let (Some(place), Some(weight)) = (place, weight) else {
            let hint = match (place, nearest(name, names.into_iter())) {
                (None, Some(near)) => format!("; did you mean {near}?"),
                _ => String::new(),
            };
            let list = names.join(", ");
            return Err(format!(
                "it takes shares as update=50,fetch=50, of {list}{hint}"
            ));
        };
        if weights[place].replace(weight).is_some() {
            return Err(format!("{name} has two shares"));
        }
    }
    let shares = MixShares::of_weights(weights.map(Option::unwrap_or_default));
    let wrong = || "one share has to be above 0".to_owned();
    (shares.sum() > 0).then_some(shares).ok_or_else(wrong)
}

/// Reads `zipf:0.99`.
fn distribution(text: &str) -> Result<KeyDistribution, String> {
    let forms = || {
        "it takes uniform, sequential, zipf:THETA, latest:THETA, hotspot:KEYS/OPS or normal:SIGMA"
            .to_owned()
    };
    let (name, value) = match text.split_once(':') {
        Some((name, value)) => (name, Some(value)),
        None => (text, None),
    };
    let number = |usual: f64| value.map_or(Ok(usual), |value| value.parse().map_err(|_| forms()));
    let shape = match name {
        "zipf" => KeyDistribution::Zipf {
            theta: number(THETA)?,
        },
        "latest" => KeyDistribution::Latest {
            theta: number(THETA)?,
        },
        "normal" => KeyDistribution::Normal {
            sigma: number(0.1)?,
        },
        "hotspot" => {
            let parts = value.unwrap_or("10/90").split_once('/');
            let parts = parts.and_then(|(keys, operations)| {
                Some((keys.parse().ok()?, operations.parse().ok()?))
            });
            let (keys_percent, operations_percent) = parts.ok_or_else(forms)?;
            KeyDistribution::Hotspot {
                keys_percent,
                operations_percent,
            }
        }
        "uniform" if value.is_none() => KeyDistribution::Uniform,
        "sequential" if value.is_none() => KeyDistribution::Sequential,
        _ => return Err(forms()),
    };
    shape.wrong().map_or(Ok(shape), |why| Err(why.to_owned()))
}

/// Reads `mem,disk`.
fn engines(text: &str) -> Result<Vec<ObjectEngine>, String> {
    // Echo stores nothing, and a pool of DAOS is not made here.
    let mixed = || {
        let engines = ObjectEngine::EMBEDDED.into_iter();
        engines.chain([ObjectEngine::Remote])
    };
    let named = |name: &str| mixed().find(|e| e.name() == name);
    let wrong = || {
        let names: Vec<_> = mixed().map(ObjectEngine::name).collect();
        format!("it takes names of {}", names.join(", "))
    };
    text.split(',')
        .map(|name| named(name).ok_or_else(wrong))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_are_the_workloads_of_ycsb() {
        let choices = FLAGS
            .iter()
            .find(|flag| flag.name == "preset")
            .unwrap()
            .choices;
        let names = PRESETS.map(|(name, ..)| name);
        assert_eq!(choices, names);
        // Each has a hundred operations: a YCSB share is a percentage.
        for name in names {
            let (shares, shape) = preset(name).unwrap();
            assert_eq!(shares.sum(), 100, "{name}");
            assert_eq!(shape == LATEST, name == "ycsb-d");
        }
        let (shares, _) = preset("ycsb-e").unwrap();
        assert_eq!((shares.scan, shares.insert), (95, 5));
    }

    #[test]
    fn words_of_shares_and_distributions_are_read_or_refused() {
        assert_eq!(
            shares("update=50,fetch=45,punch=5").unwrap().weights(),
            [50, 45, 5, 0, 0, 0]
        );
        for wrong in [
            "",
            "update",
            "update=-1",
            "update=x",
            "update=0",
            "update=1,update=2",
            "updaet=1",
        ] {
            assert!(shares(wrong).is_err(), "{wrong}");
        }
        assert!(
            shares("updaet=1")
                .unwrap_err()
                .ends_with("did you mean update?")
        );
        assert_eq!(
            distribution("zipf:1.2").unwrap(),
            KeyDistribution::Zipf { theta: 1.2 }
        );
        assert_eq!(
            distribution("latest").unwrap(),
            KeyDistribution::Latest { theta: 0.99 }
        );
        for wrong in [
            "zipf:",
            "zipf:0",
            "zipf:nan",
            "uniform:1",
            "hotspot:10",
            "hotspot:0/50",
            "normal:2",
            "Zipf",
        ] {
            assert!(distribution(wrong).is_err(), "{wrong}");
        }
        assert_eq!(
            engines("mem,disk").unwrap(),
            [ObjectEngine::Mem, ObjectEngine::Disk]
        );
        assert!(engines("mem,").is_err() && engines("daos").is_err());
    }
}
