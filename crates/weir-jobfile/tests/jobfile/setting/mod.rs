//! Setting of the tests: files in memory, a machine, a catalogue, short ways to compile.
#![allow(
    dead_code,
    clippy::panic,
    clippy::unwrap_used,
    reason = "each test file uses its part, tests fail by panicking"
)]

use std::collections::BTreeMap;
use std::io;

use weir_jobfile::{
    CommandWord, CompileRequest, Compiled, Context, Diagnostic, Dialect, Files, JobSource, compile,
};
use weir_schema::catalogue::{
    ActsOn, Catalogue, EngineInfo, Environment, SettingInfo, SettingKind,
};
use weir_schema::{BlockWorkload, Job, Workload};

/// Files by name.
#[derive(Default)]
pub(crate) struct Memory(pub(crate) BTreeMap<String, Vec<u8>>);

impl Files for Memory {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        self.0
            .get(path)
            .cloned()
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

const fn switch(name: &'static str) -> SettingInfo {
    SettingInfo {
        name,
        value: SettingKind::Bool,
        default: "0",
        help: "a switch",
    }
}

const fn text(name: &'static str) -> SettingInfo {
    SettingInfo {
        name,
        value: SettingKind::Text,
        default: "",
        help: "a text",
    }
}

const fn number(name: &'static str, min: i64, max: i64) -> SettingInfo {
    SettingInfo {
        name,
        value: SettingKind::Number { min, max },
        default: "0",
        help: "a number",
    }
}

const fn engine(
    name: &'static str,
    settings: &'static [SettingInfo],
    synchronous: bool,
    no_target: bool,
) -> EngineInfo {
    EngineInfo {
        name,
        summary: "",
        settings,
        synchronous,
        acts_on: if no_target {
            ActsOn::Size
        } else {
            ActsOn::Data
        },
    }
}

const URING: &[SettingInfo] = &[
    switch("polled"),
    switch("registered_buffers"),
    switch("registered_files"),
    switch("kernel_poll_thread"),
    number("kernel_poll_cpu", 0, 4095),
    switch("nonvectored"),
    number("force_async", 0, 1 << 20),
    switch("uncached"),
    switch("no_wait"),
    text("priority_percent"),
    text("priority_class"),
    text("priority_level"),
    text("priority_by_size"),
];
const LIBAIO: &[SettingInfo] = &[
    switch("user_space_reap"),
    switch("no_wait"),
    text("priority_percent"),
    text("priority_class"),
    text("priority_level"),
    text("priority_by_size"),
];

pub(crate) fn catalogue() -> Catalogue {
    const PVSYNC2: &[SettingInfo] = &[
        switch("polled"),
        number("polled_percent", 0, 100),
        switch("uncached"),
        switch("no_wait"),
    ];
    const MMAP: &[SettingInfo] = &[switch("transparent_huge_pages")];
    const NET: &[SettingInfo] = &[
        text("host"),
        number("port", 1, 65_535),
        text("protocol"),
        switch("listen"),
        switch("no_delay"),
        text("segment_bytes"),
        text("interface"),
        number("ttl", 1, 255),
    ];
    const EXEC: &[SettingInfo] = &[text("program"), text("arguments"), switch("redirect")];
    const CPU: &[SettingInfo] = &[number("round_us", 1, 3_600_000_000), text("work")];
    const STAT: &[SettingInfo] = &[text("call")];
    const NULL: &[SettingInfo] = &[number("toy", 0, 9)];
    Catalogue {
        engines: vec![
            engine("psync", &[], true, false),
            engine("pvsync2", PVSYNC2, true, false),
            engine("io_uring", URING, false, false),
            engine("libaio", LIBAIO, false, false),
            engine("mmap", MMAP, true, false),
            engine("null", NULL, false, true),
            engine("sync", &[], true, false),
            engine("vsync", &[], false, false),
            engine("pvsync", &[], true, false),
            engine("posixaio", &[], false, false),
            engine("splice", &[], true, false),
            engine("falloc", &[], true, false),
            engine("ftruncate", &[], true, false),
            engine("filecreate", &[], true, false),
            engine("filestat", STAT, true, false),
            engine("filedelete", &[], true, false),
            engine("net", NET, true, true),
            EngineInfo {
                acts_on: ActsOn::Nothing,
                ..engine("exec", EXEC, true, true)
            },
            EngineInfo {
                acts_on: ActsOn::Nothing,
                ..engine("cpuio", CPU, true, true)
            },
        ],
    }
}

pub(crate) fn environment() -> Environment {
    Environment {
        cpus: 8,
        page_bytes: 4096,
        memory_mib: 16384,
        variables: [("DIR", "/tmp/weir"), ("SZ", "2m")]
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
            .into(),
    }
}

pub(crate) fn request(sources: Vec<JobSource>) -> CompileRequest {
    CompileRequest {
        dialect: Dialect::Fio,
        command: vec!["fio".to_owned()],
        sources,
        sets: Vec::new(),
        maps: Vec::new(),
        sections: Vec::new(),
        read_only: false,
    }
}

pub(crate) fn compile_in(
    request: &CompileRequest,
    files: &Memory,
) -> Result<Compiled, Vec<Diagnostic>> {
    let (catalogue, environment) = (catalogue(), environment());
    let context = Context {
        environment: &environment,
        catalogue: &catalogue,
        files,
    };
    compile(request, &context)
}

pub(crate) fn memory(files: &[(&str, &str)]) -> Memory {
    Memory(
        files
            .iter()
            .map(|(n, t)| ((*n).to_owned(), t.as_bytes().to_vec()))
            .collect(),
    )
}

/// Compiles one file.
pub(crate) fn file(text: &str) -> Result<Compiled, Vec<Diagnostic>> {
    compile_in(
        &request(vec![JobSource::File("job.fio".into())]),
        &memory(&[("job.fio", text)]),
    )
}

/// The words of a command line, beginning with dashes.
pub(crate) fn words(arguments: &[&str]) -> JobSource {
    let word = |(index, text): (usize, &&str)| {
        let (key, value) = match text.trim_start_matches('-').split_once('=') {
            Some((key, value)) => (key, Some(value.to_owned())),
            None => (text.trim_start_matches('-'), None),
        };
        CommandWord {
            key: key.to_owned(),
            value,
            argument: index + 1,
            text: (*text).to_owned(),
        }
    };
    JobSource::Words(arguments.iter().enumerate().map(word).collect())
}

pub(crate) fn jobs(compiled: &Compiled) -> Vec<&Job> {
    compiled.plan.jobs().map(|(_, job)| job).collect()
}

pub(crate) fn block(job: &Job) -> &BlockWorkload {
    match &job.workload {
        Workload::Block(block) => block,
        _ => panic!("not block I/O"),
    }
}

/// One job of one section, with these lines.
pub(crate) fn job(lines: &str) -> Job {
    let compiled = file(&format!("[a]\nioengine=null\nsize=1m\n{lines}\n"));
    let compiled = compiled.unwrap_or_else(|e| panic!("{lines}: {}", e[0].render()));
    jobs(&compiled)[0].clone()
}

/// All that is wrong with a job of these lines.
pub(crate) fn faults(lines: &str) -> Vec<Diagnostic> {
    match file(&format!("[a]\nioengine=null\nsize=1m\n{lines}\n")) {
        Ok(_) => panic!("accepted: {lines}"),
        Err(errors) => errors,
    }
}
