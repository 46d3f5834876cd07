//! Files in memory, engines and environment, so that nothing outside is touched.

use std::collections::BTreeMap;
use std::io;

use weir_jobfile::{CompileRequest, Compiled, Context, Diagnostic, Files, compile};
use weir_schema::catalogue::{
    ActsOn, Catalogue, EngineInfo, Environment, SettingInfo, SettingKind,
};

/// Files by name.
#[derive(Debug, Default)]
pub struct Memory(pub BTreeMap<String, Vec<u8>>);

impl Files for Memory {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        let found = self.0.get(path).cloned();
        found.ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

const fn setting(name: &'static str, value: SettingKind) -> SettingInfo {
    SettingInfo {
        name,
        value,
        default: "0",
        help: "a setting",
    }
}

const fn engine(
    name: &'static str,
    settings: &'static [SettingInfo],
    synchronous: bool,
) -> EngineInfo {
    EngineInfo {
        name,
        summary: "an engine",
        settings,
        synchronous,
        acts_on: ActsOn::Data,
    }
}

const IO_URING: &[SettingInfo] = &[
    setting("polled", SettingKind::Bool),
    setting("registered_buffers", SettingKind::Bool),
    setting("registered_files", SettingKind::Bool),
    setting("kernel_poll_thread", SettingKind::Bool),
    setting("kernel_poll_cpu", SettingKind::Number { min: 0, max: 4095 }),
    setting("nonvectored", SettingKind::Bool),
    setting(
        "force_async",
        SettingKind::Number {
            min: 0,
            max: 1 << 20,
        },
    ),
    setting("uncached", SettingKind::Bool),
    setting("no_wait", SettingKind::Bool),
];
const PVSYNC2: &[SettingInfo] = &[
    setting("polled", SettingKind::Bool),
    setting("polled_percent", SettingKind::Number { min: 0, max: 100 }),
];
/// One setting of each form, in the whole range of its type.
const NULL: &[SettingInfo] = &[
    setting("toy_switch", SettingKind::Bool),
    setting(
        "toy_number",
        SettingKind::Number {
            min: i64::MIN,
            max: i64::MAX,
        },
    ),
    setting("toy_text", SettingKind::Text),
];

/// Engines like those of the program.
pub fn catalogue() -> Catalogue {
    Catalogue {
        engines: vec![
            engine("psync", &[], true),
            engine("pvsync2", PVSYNC2, true),
            engine("io_uring", IO_URING, false),
            EngineInfo {
                acts_on: ActsOn::Size,
                ..engine("null", NULL, false)
            },
        ],
    }
}

fn environment() -> Environment {
    Environment {
        cpus: 8,
        page_bytes: 4096,
        memory_mib: 16384,
        variables: [("DIR", "/tmp/weir"), ("SZ", "2m"), ("NONE", "")]
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
            .into(),
    }
}

/// Compiles a request with these files.
///
/// # Errors
/// The error in it.
pub fn compile_in(request: &CompileRequest, files: &Memory) -> Result<Compiled, Vec<Diagnostic>> {
    let (catalogue, environment) = (catalogue(), environment());
    let context = Context {
        environment: &environment,
        catalogue: &catalogue,
        files,
    };
    compile(request, &context)
}
