//! This machine, for the doors' reading of a command line.
//!
//! In: questions of doors. Out: their answers, and the files that were read for them. Not here: which
//! questions there are (`weir-doors`).

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, IsTerminal as _, Read};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use weir_doors::Refusal;
use weir_doors::axio::MachineFacts;
use weir_doors::fio::output::Idleness;
use weir_doors::kio::{ModuleFacts, TargetFacts};
use weir_doors::nvme::{NamespaceUse, NvmeNamespace};
use weir_doors::{Machine, NamedPath};
use weir_jobfile::{CompileRequest, Compiled, Context, Diagnostic, compile};
use weir_rpc::group::RpcGroup;
use weir_schema::catalogue::{Catalogue, TransportCatalogue};
use weir_schema::{Job, Kind, Plan, RankTags, RpcWorkload, RunResult};
use weir_sys::Tree;
use weir_sys::clock::Detection;
use weir_sys::limits::most_open_files;
use weir_sys::memory::MemoryFacts;
use weir_world::Launcher;

use crate::idleness::IdlenessWatch;
use crate::{environment, held_input, kio, nvme, output, runners};

/// Bytes of a file in which its first section would begin.
const LONGEST_HEAD: u64 = 64 << 10;

/// The machine that the program runs on.
#[derive(Debug, Default)]
pub(crate) struct ThisMachine {
    /// Paths with their texts.
    read: Mutex<Vec<(String, String)>>,
    is_input_held: AtomicBool,
    idleness_watch: OnceLock<IdlenessWatch>,
    idleness: OnceLock<Idleness>,
}

impl ThisMachine {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Files that were read so far.
    pub(crate) fn files_read(&self) -> Vec<String> {
        self.read().iter().map(|(path, _)| path.clone()).collect()
    }

    /// Nobody panics while holding it.
    fn read(&self) -> MutexGuard<'_, Vec<(String, String)>> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Machine for ThisMachine {
    fn launcher(&self) -> Option<u32> {
        Launcher::of_this_process().map(|launcher| launcher.size)
    }

    fn transports(&self) -> TransportCatalogue {
        runners::transports()
    }

    fn memory_bytes(&self) -> Option<u64> {
        MemoryFacts::read(&Tree::real()).total.map(|bytes| bytes.0)
    }

    fn lacks_daos(&self) -> Option<String> {
        runners::lacks_daos()
    }

    fn blank_result(&self, plan: &Plan) -> RunResult {
        let (_, clock) = Detection::begin().finish();
        let started = SystemTime::now().duration_since(UNIX_EPOCH);
        RunResult {
            weir_version: env!("CARGO_PKG_VERSION").to_owned(),
            started_unix_ns: started.map_or(0, |t| u64::try_from(t.as_nanos()).unwrap_or(0)),
            complete: true,
            clock: environment::clock_facts(clock),
            host: environment::host(),
            program: Some(environment::program()),
            ..RunResult::of(plan.clone())
        }
    }

    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn file(&self, path: &str, most: u64) -> Result<String, String> {
        let known = self.read().iter().find(|(known, _)| known == path).cloned();
        if let Some((_, text)) = known {
            return Ok(text);
        }
        let text = output::read_text(path, most)?;
        self.read().push((path.to_owned(), text.clone()));
        Ok(text)
    }

    fn file_under(&self, head: &str, path: &str, most: u64) -> Result<String, String> {
        let mut file = BufReader::new(File::open(path).map_err(|e| e.to_string())?);
        let mut first = Vec::new();
        let longest = head.len() as u64 + 2;
        let is_read = (&mut file).take(longest).read_until(b'\n', &mut first);
        is_read.map_err(|e| e.to_string())?;
        let first = String::from_utf8_lossy(&first);
        if first.trim_end() != head {
            return Err(format!("line 1: it begins with `{head}`"));
        }
        Ok(first.into_owned() + &output::read_text_of(file, most)?)
    }

    fn compile(&self, jobs: &CompileRequest) -> Result<Compiled, Vec<Diagnostic>> {
        let context = Context {
            environment: &environment::read(),
            catalogue: &runners::catalogue(),
            files: &environment::RealFiles,
        };
        compile(jobs, &context)
    }

    fn engines(&self) -> Catalogue {
        runners::catalogue()
    }

    fn is_output_terminal(&self) -> bool {
        io::stdout().is_terminal()
    }

    fn is_error_terminal(&self) -> bool {
        io::stderr().is_terminal()
    }

    fn watch_idleness(&self) {
        self.idleness_watch.get_or_init(IdlenessWatch::start);
    }

    fn idleness(&self) -> Option<Idleness> {
        let watch = self.idleness_watch.get()?;
        Some(self.idleness.get_or_init(|| watch.idleness()).clone())
    }

    fn utc_offset_s(&self) -> i64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.unwrap_or_default().as_secs();
        // From files of the system where they say so; UTC otherwise.
        weir_sys::local_time::utc_offset_s(now).into()
    }

    fn kernel_module(&self) -> ModuleFacts {
        kio::module_facts()
    }

    fn named_path(&self, path: &str) -> NamedPath {
        let Ok(found) = fs::metadata(path) else {
            return NamedPath::Missing;
        };
        let kind = found.file_type();
        if kind.is_block_device() || kind.is_char_device() {
            return NamedPath::Device;
        }
        if kind.is_dir() {
            return NamedPath::Directory;
        }
        if !kind.is_file() {
            return NamedPath::Other;
        }
        let mut head = Vec::new();
        // A file that cannot be read is refused by whoever opens it.
        let _ = File::open(path).map(|file| file.take(LONGEST_HEAD).read_to_end(&mut head));
        NamedPath::of_file(&head)
    }

    fn is_believed(&self, path: &str) -> bool {
        let owner = fs::metadata(path).map(|found| found.uid());
        owner.is_ok_and(|owner| [0, rustix::process::geteuid().as_raw()].contains(&owner))
    }

    fn target(&self, path: &str) -> Result<TargetFacts, String> {
        kio::target(path)
    }

    fn held_data(&self, path: &str) -> Option<&'static str> {
        kio::held_data(path)
    }

    fn cpus(&self) -> Vec<u32> {
        let cpus = weir_sys::pin::affinity();
        cpus.map_or_else(|_| Vec::new(), |cpus| cpus.as_slice().to_vec())
    }

    fn memory_node(&self, cpu: u32) -> Option<u32> {
        weir_sys::topology::Topology::of_this_machine().node_of(cpu)
    }

    fn drive_health(&self, node: &str) -> Option<String> {
        nvme::health(node)
    }

    fn check_takeover(&self, address: &str) -> Result<(), Refusal> {
        nvme::check_takeover(address)
    }

    fn release_drive(&self, address: &str) -> Result<(), Refusal> {
        nvme::release(address)
    }

    fn namespace_use(&self, node: &str) -> Option<NamespaceUse> {
        nvme::namespace_use(node)
    }

    fn nvme_namespaces(&self) -> Vec<NvmeNamespace> {
        nvme::namespaces()
    }

    fn first_operations(&self, job: &Job, worker: u32, count: u32) -> Vec<(Kind, u64)> {
        runners::first_operations(job, worker, count)
    }

    fn standard_input(&self, most: u64) -> Result<String, String> {
        let (text, is_held) = held_input::read(most)?;
        self.is_input_held.store(is_held, Ordering::Relaxed);
        Ok(text)
    }

    fn is_input_held(&self) -> bool {
        self.is_input_held.load(Ordering::Relaxed)
    }

    fn path_facts(&self) -> MachineFacts {
        let cpus = weir_sys::pin::affinity().map(|cpus| cpus.as_slice().to_vec());
        let topology = weir_sys::topology::Topology::of_this_machine();
        let mut nodes = BTreeMap::new();
        for cpu in cpus.unwrap_or_default() {
            *nodes.entry(topology.node_of(cpu).unwrap_or(0)).or_default() += 1;
        }
        let memory = MemoryFacts::read(&Tree::real());
        let free = |page: u64| {
            let pools = memory.huge_pages.iter();
            let pools = pools.filter(|pool| pool.page.0 == page);
            pools.map(|pool| pool.free).sum()
        };
        MachineFacts {
            nodes: nodes.into_iter().collect(),
            free_huge_pages: [free(2 << 20), free(1 << 30)],
        }
    }

    fn group_members(&self, work: &RpcWorkload) -> Result<Vec<RankTags>, String> {
        let group = RpcGroup::of(work, Path::new("")).map_err(|failure| failure.message)?;
        Ok(group.ranks())
    }

    fn most_open_files(&self) -> Option<u64> {
        most_open_files()
    }

    fn seed(&self) -> u64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        now.map_or(1, |since| u64::from(since.subsec_nanos()) ^ since.as_secs())
    }

    fn packet_links(&self) -> Vec<(&'static str, Option<String>)> {
        let states = weir_datapath::link_states().into_iter();
        states.map(|link| (link.name, link.lacks)).collect()
    }
}
