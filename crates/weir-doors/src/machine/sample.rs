//! Machine of tests.

use std::io;

use weir_jobfile::{CompileRequest, Compiled, Context, Diagnostic, Files, compile};
use weir_schema::catalogue::{ActsOn, Catalogue, EngineInfo, Environment, TransportCatalogue};

use super::{Machine, NamedPath};
use crate::kio::TargetFacts;
use crate::nvme::{NamespaceUse, NvmeNamespace};

/// Machine for tests: sample transports, and this many ranks of a launcher.
pub(crate) struct SampleMachine(pub(crate) Option<u32>);

impl Machine for SampleMachine {
    fn launcher(&self) -> Option<u32> {
        self.0
    }

    fn transports(&self) -> TransportCatalogue {
        weir_schema::sample::transports()
    }

    fn target(&self, _path: &str) -> Result<TargetFacts, String> {
        Ok(TargetFacts::sample())
    }

    fn cpus(&self) -> Vec<u32> {
        (0..8).collect()
    }

    fn memory_node(&self, cpu: u32) -> Option<u32> {
        Some(cpu / 4)
    }

    fn drive_health(&self, node: &str) -> Option<String> {
        (node == "/dev/nvme0n1").then(|| "47 °C, 1 reads, 2 writes".to_owned())
    }

    fn namespace_use(&self, node: &str) -> Option<NamespaceUse> {
        (node == "/dev/nvme0n1").then_some(NamespaceUse {
            blocks: 131_072,
            used: 32_768,
            empty_reads_as: Some(0),
        })
    }

    fn nvme_namespaces(&self) -> Vec<NvmeNamespace> {
        vec![NvmeNamespace {
            node: "/dev/nvme0n1".to_owned(),
            address: "0000:01:00.0".to_owned(),
            ids: (0x144d, 0xa80a),
            number: 1,
            bytes: 64 << 20,
            sector: 512,
            ..NvmeNamespace::default()
        }]
    }

    fn named_path(&self, path: &str) -> NamedPath {
        match path {
            "data" => NamedPath::Missing,
            _ if path.starts_with("/dev/") => NamedPath::Device,
            _ => NamedPath::Directory,
        }
    }

    fn engines(&self) -> Catalogue {
        let engine = |name| EngineInfo {
            name,
            summary: "",
            settings: &[],
            synchronous: false,
            acts_on: ActsOn::Data,
        };
        Catalogue {
            engines: ["null", "psync", "io_uring"].map(engine).to_vec(),
        }
    }

    fn compile(&self, jobs: &CompileRequest) -> Result<Compiled, Vec<Diagnostic>> {
        let context = Context {
            environment: &Environment::default(),
            catalogue: &self.engines(),
            files: &SampleFiles,
        };
        compile(jobs, &context)
    }
}

/// The same job in every file.
struct SampleFiles;

impl Files for SampleFiles {
    fn read(&self, _path: &str) -> io::Result<Vec<u8>> {
        Ok(b"[job]\nioengine=null\nfilename=f\nsize=1m\n".to_vec())
    }
}
