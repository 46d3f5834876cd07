//! The files of logs: opened once in a run, written as it goes, shared by workers whose files
//! have one name.
//!
//! In: records. Out: a file, and at the end what is wrong with it. A write that fails ends the
//! log, not the run. Not here: what a record says.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::rc::Rc;

use flate2::Compression;
use flate2::bufread::ZlibDecoder;
use flate2::write::ZlibEncoder;

use weir_schema::{Log, LogFormat, LogRecord};

/// A file that several writers of the run's thread may hold.
pub(crate) type SharedFile = Rc<RefCell<LogFile>>;

/// Bytes of a compressed log that are taken out at once.
const PIECE: usize = 1 << 16;

/// A file that gets records.
#[derive(Debug)]
pub(crate) struct LogFile {
    path: String,
    out: Sink,
    format: LogFormat,
    /// The words of the present record.
    text: String,
    failed: Option<io::Error>,
}

impl LogFile {
    /// Makes the file, or empties it.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn create(path: &str, is_compressed: bool, format: LogFormat) -> io::Result<Self> {
        let plain = BufWriter::with_capacity(1 << 18, File::create(path)?);
        Ok(Self {
            path: path.to_owned(),
            out: if is_compressed {
                Sink::Compressed(ZlibEncoder::new(plain, Compression::default()))
            } else {
                Sink::Plain(plain)
            },
            format,
            text: String::new(),
            failed: None,
        })
    }

    /// Its name.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// Writes a record; after an error nothing more is written.
    pub(crate) fn record(&mut self, log: &Log, record: &LogRecord<'_>) {
        if self.failed.is_none() {
            self.text.clear();
            (self.format)(log, record, &mut self.text);
            self.failed = self.out.write_all(self.text.as_bytes()).err();
        }
    }

    /// Hands what was written to the system.
    pub(crate) fn flush(&mut self) {
        if self.failed.is_none() {
            self.failed = self.out.flush().err();
        }
    }

    /// Error of the file, in a sentence.
    pub(crate) fn complaint(&mut self) -> Option<String> {
        self.flush();
        let (path, error) = (&self.path, self.failed.as_ref()?);
        Some(format!("The log {path} is not whole: {error}."))
    }
}

/// Sink of the records' text.
#[derive(Debug)]
enum Sink {
    Plain(BufWriter<File>),
    /// A zlib stream, which ends when it is dropped.
    Compressed(ZlibEncoder<BufWriter<File>>),
}

impl Write for Sink {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(out) => out.write(text),
            Self::Compressed(out) => out.write(text),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(out) => out.flush(),
            Self::Compressed(out) => out.flush(),
        }
    }
}

/// Hands over the text of a compressed log, piece by piece: zlib streams one after the other.
///
/// # Errors
/// It cannot be read, is no such log or is not whole: what was there has been handed over.
pub fn inflate_log(file: impl Read, mut take: impl FnMut(&[u8])) -> io::Result<()> {
    let mut file = BufReader::new(file);
    let mut piece = vec![0; PIECE];
    let mut is_first = true;
    if file.fill_buf()?.is_empty() {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it is empty"));
    }
    while !file.fill_buf()?.is_empty() {
        let mut stream = ZlibDecoder::new(&mut file);
        loop {
            let count = stream.read(&mut piece)?;
            if count == 0 {
                break;
            }
            if is_first && !piece[0].is_ascii_digit() {
                let message = "its records are no text: the program that wrote it can expand it";
                return Err(io::Error::new(io::ErrorKind::InvalidData, message));
            }
            is_first = false;
            take(&piece[..count]);
        }
    }
    Ok(())
}

/// The log files of a run, by name.
#[derive(Debug)]
pub(crate) struct LogFiles {
    files: BTreeMap<String, SharedFile>,
    format: LogFormat,
}

impl LogFiles {
    /// None yet; each record will be put into words so.
    pub(crate) fn new(format: LogFormat) -> Self {
        Self {
            files: BTreeMap::new(),
            format,
        }
    }

    /// The file of this name; made when it is asked for first.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn open(&mut self, path: &str, is_compressed: bool) -> io::Result<SharedFile> {
        if let Some(file) = self.files.get(path) {
            return Ok(Rc::clone(file));
        }
        let file = Rc::new(RefCell::new(LogFile::create(
            path,
            is_compressed,
            self.format,
        )?));
        self.files.insert(path.to_owned(), Rc::clone(&file));
        Ok(file)
    }
}

/// Finds out whether a file can be written, and leaves everything as it was.
///
/// # Errors
/// It cannot be written.
pub(crate) fn check_writable(path: &str) -> io::Result<()> {
    if fs::exists(path)? {
        return OpenOptions::new().write(true).open(path).map(drop);
    }
    File::create_new(path)?;
    fs::remove_file(path)
}

#[cfg(test)]
mod tests {
    use weir_schema::{LogMeasure, Logged};
    use weir_units::Nanos;

    use super::*;

    #[test]
    fn a_file_that_takes_nothing_is_told_by_name() {
        let format: LogFormat = |_, _, out| out.push_str("one");
        let mut file = LogFile::create("/dev/full", false, format).unwrap();
        let log = Log {
            what: Logged::Operations,
            path: String::new(),
            window_ns: Nanos(0),
            maximum: false,
            offset: false,
            hex_priority: false,
            since_1970: false,
            compressed: false,
        };
        let record = LogRecord {
            at_ms: 500,
            kind: "read",
            operation: None,
            measure: LogMeasure::Latency(Nanos(1)),
        };
        file.record(&log, &record);
        let complaint = file.complaint().unwrap();
        assert!(complaint.contains("/dev/full is not whole"), "{complaint}");
    }

    #[test]
    fn a_compressed_log_of_several_streams_gives_its_text_back() {
        let stream = |text: &str| {
            let mut out = ZlibEncoder::new(Vec::new(), Compression::default());
            out.write_all(text.as_bytes()).unwrap();
            out.finish().unwrap()
        };
        let inflate = |file: &[u8]| {
            let mut text = Vec::new();
            let end = inflate_log(file, |piece| text.extend_from_slice(piece));
            (
                String::from_utf8(text).unwrap(),
                end.map_err(|e| e.to_string()),
            )
        };
        let file = [stream("1, 2\n"), stream("3, 4\n")].concat();
        assert_eq!(inflate(&file), ("1, 2\n3, 4\n".to_owned(), Ok(())));
        let (text, end) = inflate(&file[..file.len() - 6]);
        assert!(text.starts_with("1, 2\n") && end.is_err());
        assert!(
            inflate(&stream("\u{1}"))
                .1
                .unwrap_err()
                .contains("its records are no text")
        );
        assert!(inflate(b"1, 2\n").1.is_err());
        assert_eq!(inflate(b"").1, Err("it is empty".to_owned()));
    }

    #[test]
    fn a_look_at_a_file_neither_makes_nor_empties_it() {
        let path = std::env::temp_dir().join(format!("weir-log-{}", std::process::id()));
        let path = path.to_str().unwrap();
        check_writable(path).unwrap();
        assert!(!fs::exists(path).unwrap());
        fs::write(path, "kept").unwrap();
        check_writable(path).unwrap();
        assert_eq!(fs::read_to_string(path).unwrap(), "kept");
        fs::remove_file(path).unwrap();
        assert!(check_writable("/nowhere/at/all").is_err());
    }
}
