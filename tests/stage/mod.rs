//! A stage for door tests: a directory that vanishes, the built program as a user starts it, what it said.
//!
//! A program that does not end within three minutes is killed and the test fails. A test that cannot
//! be done here says so with [`skip`]; it never passes silently.
#![allow(
    dead_code,
    unused_imports,
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "helpers of tests, each file uses a part of them"
)]

mod launchers;
mod processes;
pub(crate) mod ranks;

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

pub(crate) use launchers::{LAUNCHERS, each_launcher, launch, launch_program};
pub(crate) use processes::{catches_signals, descendants, is_stopped, send, works_for};

/// The program under test.
pub(crate) const WEIR: &str = env!("CARGO_BIN_EXE_weir");
/// Longer than a machine with other work keeps anything waiting; only what hangs takes as long.
const PATIENCE: Duration = Duration::from_secs(180);

/// True of the name of a peer, by which the tests call the program.
fn is_peer(name: &str) -> bool {
    let mut links = weir_doors::DOORS.iter().flat_map(|door| door.links);
    links.any(|link| link.name == name)
}

/// Link to the program by a peer's name: its text and exit codes. By a verb it is weir.
#[track_caller]
pub(crate) fn peer(name: &str) -> &'static str {
    assert!(is_peer(name), "no peer is named `{name}`");
    // Beside the program, so that each build has its own.
    let folder = Path::new(WEIR).with_file_name("peers");
    fs::create_dir_all(&folder).unwrap();
    let link = folder.join(name);
    if let Err(why) = symlink("../weir", &link) {
        assert_eq!(why.kind(), ErrorKind::AlreadyExists, "{}", link.display());
    }
    link.into_os_string().into_string().unwrap().leak()
}

/// The root of the tree.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Says that a test could not be done here.
pub(crate) fn skip(name: &str, reason: &str) {
    println!("SKIPPED: {name}: {reason}");
    if let Ok(path) = std::env::var("WEIR_SKIP_LOG") {
        let log = fs::OpenOptions::new().append(true).create(true).open(path);
        let _ = log.and_then(|mut log| writeln!(log, "{name}: {reason}"));
    }
}

/// True if the tests have the rights of the system's administrator.
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// True if a program can be started.
pub(crate) fn has(program: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).any(|p| p.join(program).is_file())
}

/// Why a test cannot have mounts of its own here.
pub(crate) fn lacks_mounts() -> Option<&'static str> {
    if !is_root() {
        return Some("mounts need root");
    }
    if !has("unshare") {
        return Some("no unshare");
    }
    let tried = Command::new("unshare").args(["--mount", "true"]).output();
    let can = tried.is_ok_and(|tried| tried.status.success());
    (!can).then_some("`unshare --mount` fails, as in a root directory that is no mount")
}

/// A directory that vanishes.
pub(crate) struct Stage {
    directory: PathBuf,
}

/// Files of a launcher of MPI while it runs, in a stage.
const MPI_FILES: &str = ".mpi";

impl Stage {
    /// On the disk that holds the build.
    pub(crate) fn new() -> Self {
        Self::below(Path::new(env!("CARGO_TARGET_TMPDIR")))
    }

    /// Where every user may go, for tests as somebody else.
    pub(crate) fn public() -> Self {
        use std::os::unix::fs::PermissionsExt;
        let stage = Self::below(&std::env::temp_dir());
        fs::set_permissions(&stage.directory, fs::Permissions::from_mode(0o777)).unwrap();
        stage
    }

    /// In memory where the system has such a place, so that nothing waits for a disk.
    pub(crate) fn in_memory() -> Self {
        let memory = Path::new("/dev/shm");
        let there = memory.metadata().is_ok_and(|m| !m.permissions().readonly());
        Self::below(if there {
            memory
        } else {
            Path::new(env!("CARGO_TARGET_TMPDIR"))
        })
    }

    fn below(top: &Path) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let directory = top.join(format!("door-{}-{number}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        Self { directory }
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.directory.join(name).to_str().unwrap().to_owned()
    }

    /// Makes a file.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        fs::write(&path, content).unwrap();
        path
    }

    /// Makes a file of this size without writing it.
    pub(crate) fn sparse(&self, name: &str, bytes: u64) -> String {
        let path = self.path(name);
        fs::File::create(&path).unwrap().set_len(bytes).unwrap();
        path
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    pub(crate) fn read_bytes(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    /// Names of what is in it, sorted.
    pub(crate) fn list(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.directory).unwrap();
        let name = |e: std::io::Result<fs::DirEntry>| e.unwrap().file_name().into_string().unwrap();
        let mut names: Vec<String> = entries.map(name).filter(|name| name != MPI_FILES).collect();
        names.sort();
        names
    }

    /// A program that starts in it, in plain surroundings.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.directory);
        for name in ["CI", "NO_COLOR", "CLICOLOR_FORCE", "COLUMNS", "SZ", "DIR"] {
            command.env_remove(name);
        }
        // What tests measure is nobody's history.
        command.env("WEIR_HISTORY", "off");
        command.env("LC_ALL", "C.UTF-8").stdin(Stdio::null());
        command
    }

    /// weir with these words.
    pub(crate) fn weir(&self, words: &[&str]) -> Command {
        let mut command = self.command(WEIR);
        command.args(words);
        command
    }

    /// Output of weir for these arguments.
    pub(crate) fn say(&self, words: &[&str]) -> Said {
        said(self.weir(words))
    }

    /// The peer that the first word names, with the other words.
    #[track_caller]
    pub(crate) fn peer(&self, words: &[&str]) -> Command {
        let mut command = self.command(peer(words[0]));
        command.args(&words[1..]);
        command
    }

    /// The peer that the first word names, else weir with that verb.
    pub(crate) fn called(&self, words: &[&str]) -> Command {
        if is_peer(words[0]) {
            return self.peer(words);
        }
        self.weir(words)
    }

    /// Output of a peer that is called with these words, its name first.
    #[track_caller]
    pub(crate) fn peer_says(&self, words: &[&str]) -> Said {
        said(self.peer(words))
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// Output and exit code of a program.
#[derive(Clone, Debug)]
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Said {
    /// It ended with this code.
    #[track_caller]
    pub(crate) fn code(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self}");
        self
    }

    /// A launcher ended with this code of the first rank that failed, or by the signal with which it then
    /// ended the others, which may come while they end themselves.
    #[track_caller]
    pub(crate) fn code_of_a_rank(self, code: i32) -> Self {
        let [kill, term] = [Signal::KILL, Signal::TERM].map(Signal::as_raw);
        let of_signals = [kill, term, 128 + kill, 128 + term];
        let is_so = |ended| ended == code || of_signals.contains(&ended);
        assert!(self.code.is_none_or(is_so), "{self}");
        self
    }

    /// Its standard error holds this.
    #[track_caller]
    pub(crate) fn err(self, text: &str) -> Self {
        assert!(self.err.contains(text), "no `{text}` in\n{self}");
        self
    }

    /// Its standard output holds this.
    #[track_caller]
    pub(crate) fn out(self, text: &str) -> Self {
        assert!(self.out.contains(text), "no `{text}` in\n{self}");
        self
    }

    /// Nothing on standard output.
    #[track_caller]
    pub(crate) fn silent(self) -> Self {
        assert_eq!(self.out, "", "{self}");
        self
    }

    /// Nothing on standard error.
    #[track_caller]
    pub(crate) fn calm(self) -> Self {
        assert_eq!(self.err, "", "{self}");
        self
    }

    /// No panic, and no control sequence of a terminal.
    #[track_caller]
    fn plain(self) -> Self {
        for text in [&self.out, &self.err] {
            assert!(!text.contains("panicked at"), "{self}");
            assert!(!text.contains('\x1b'), "{self}");
        }
        self
    }
}

impl std::fmt::Display for Said {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let cut = |text: &str| text.chars().take(4000).collect::<String>();
        let (out, err) = (cut(&self.out), cut(&self.err));
        write!(f, "exit {:?}\n--- out\n{out}\n--- err\n{err}", self.code)
    }
}

/// Runs a program to its end.
#[track_caller]
pub(crate) fn said(command: Command) -> Said {
    Running::start(command).end()
}

/// A program that runs.
pub(crate) struct Running {
    child: Child,
    out: Stream,
    err: Stream,
}

impl Running {
    pub(crate) fn start(mut command: Command) -> Self {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        // A group of its own: fio's workers are processes, and hold the streams open.
        command.process_group(0);
        let mut child = command
            .spawn()
            .unwrap_or_else(|e| panic!("{command:?}: {e}"));
        Self {
            out: collect(child.stdout.take().unwrap()),
            err: collect(child.stderr.take().unwrap()),
            child,
        }
    }

    /// Its process.
    pub(crate) fn process(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        send(Pid::from_child(&self.child), signal);
    }

    /// True if signals end it in order by now.
    pub(crate) fn catches_signals(&self) -> bool {
        catches_signals(Pid::from_child(&self.child))
    }

    /// Sends it to all that it started too, as a terminal does.
    pub(crate) fn signal_all(&self, signal: Signal) {
        kill_process_group(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits until its standard error holds this.
    #[track_caller]
    pub(crate) fn waits_for_err(&self, text: &str) {
        until(text, || {
            String::from_utf8_lossy(&self.err.bytes.lock().unwrap()).contains(text)
        });
    }

    /// Waits until it has used so many hundredths of a second of CPU time.
    #[track_caller]
    pub(crate) fn works_for(&self, ticks: u64) {
        works_for(self.child.id(), ticks);
    }

    /// Processes that it has started.
    pub(crate) fn children(&self) -> Vec<Pid> {
        descendants(Pid::from_child(&self.child))
    }

    /// Waits for its end.
    #[track_caller]
    pub(crate) fn end(self) -> Said {
        let (said, ended) = self.end_within(PATIENCE);
        assert!(ended, "it did not end: {}", said.err);
        said
    }

    /// Waits so long for its end, then kills it and all it started; and whether it ended itself.
    #[track_caller]
    pub(crate) fn end_within(mut self, patience: Duration) -> (Said, bool) {
        let begin = Instant::now();
        let (status, ended) = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break (status, true);
            }
            if begin.elapsed() > patience {
                // fio's workers leave the group, and hold the streams open.
                for pid in descendants(Pid::from_child(&self.child)) {
                    let _ = kill_process(pid, Signal::KILL);
                }
                kill_process_group(Pid::from_child(&self.child), Signal::KILL).unwrap();
                break (self.child.wait().unwrap(), false);
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        let said = Said {
            code: status.code(),
            out: self.out.end(),
            err: self.err.end(),
        };
        (said.plain(), ended)
    }
}

/// Output of a program, read by a thread as it comes.
struct Stream {
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl Stream {
    /// All of it, once its last writer has ended.
    fn end(self) -> String {
        self.reader.join().unwrap();
        String::from_utf8_lossy(&self.bytes.lock().unwrap()).into_owned()
    }
}

fn collect(mut from: impl Read + Send + 'static) -> Stream {
    let bytes = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&bytes);
    let reader = std::thread::spawn(move || {
        let mut part = vec![0; 1 << 16];
        loop {
            let read = from.read(&mut part).unwrap();
            if read == 0 {
                return;
            }
            kept.lock().unwrap().extend_from_slice(&part[..read]);
        }
    });
    Stream { bytes, reader }
}

/// Waits until this holds.
#[track_caller]
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < PATIENCE, "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Replaces every number by `#`, with its decimals, so that only the shape is left.
pub(crate) fn masked(text: &str) -> String {
    let mut out = String::new();
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        if !c.is_ascii_digit() {
            out.push(c);
            continue;
        }
        while characters
            .peek()
            .is_some_and(|c| c.is_ascii_digit() || *c == '.')
        {
            characters.next();
        }
        out.push('#');
    }
    out
}
