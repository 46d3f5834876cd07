//! External channels emulated through files, byte for byte as a board's emulator keeps them
//! (spec: effective bandwidth, section 4.2).
//!
//! Four channels per rank: writers append to `kernel_output_ch<c>`, readers read
//! `kernel_input_ch<c>`, a link to the output of the neighbour that the channel comes from.
//! Channels 0 and 2 go to the right and come from there as 1 and 3, and the other way round.
//! Replication `i` writes channels `i mod 4` and `(i + 2) mod 4` and reads those at whose other
//! end the same replication writes. A message goes out in words, in turns to the two channels;
//! what is left of the last two words is filled with the size's own byte.
//!
//! The files lie in a directory of this run alone, are cut to nothing before every run of
//! exchanges, and are removed in the end unless they are to be kept.

mod scratch;

use std::borrow::Cow;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

use weir_schema::catalogue::{SettingInfo, SettingKind};
use weir_schema::{EngineChoice, MessageSize, Method, Pairing};

use self::scratch::ScratchFiles;
use super::{PLAIN, Setup, Transport, TransportInfo, address};
use crate::buffers::Buffers;
use crate::error::Halt;
use crate::exchange::drive;
use crate::pairing::partners;
use crate::settings::number;
use weir_world::Watchdog;

pub(super) const INFO: TransportInfo = TransportInfo {
    name: "file",
    peer: Some("IEC"),
    summary: "external channels emulated by files",
    settings: &[
        SettingInfo {
            name: "channel_width_bytes",
            value: SettingKind::Number { min: 1, max: 4096 },
            default: "32",
            help: "bytes that a channel takes at once",
        },
        SettingInfo {
            name: "channel_directory",
            value: SettingKind::Text,
            default: "the system's directory for temporary files",
            help: "where the files lie: a directory of the run's own in there, or there itself if they are kept",
        },
        SettingInfo {
            name: "keep_channels",
            value: SettingKind::Bool,
            default: "false",
            help: "leave the files there",
        },
    ],
    here: |asked| scratch::usable(&parent(asked.engine)),
    drive: drive::<Channels>,
    ..PLAIN
};

const CHANNELS: usize = 4;

/// Looks at a file that has not grown before the processor is offered, and before sleeping.
const LOOKS: u32 = 100;
const PAUSE: Duration = Duration::from_micros(100);

/// One rank's end.
pub(super) struct Channels {
    /// This rank's directory.
    own: PathBuf,
    /// Files that rank 0 removes in the end.
    scratch: Option<ScratchFiles>,
    outputs: Vec<File>,
    inputs: Vec<File>,
    width: usize,
    /// The byte that fills the last words up.
    filler: u8,
    buffers: Buffers,
    /// The replication that is read.
    reading: usize,
    /// Data that goes to, or has come from, the two channels of a replication.
    halves: [Vec<u8>; 2],
}

fn fail(what: impl Into<Cow<'static, str>>) -> impl FnOnce(io::Error) -> Halt {
    let what = what.into();
    move |source| Halt::Io { what, source }
}

fn fail_at(what: &str, path: &Path) -> impl FnOnce(io::Error) -> Halt {
    fail(format!("{what} {}", path.display()))
}

/// The two channels that a replication writes.
fn channels_of(replication: usize) -> [usize; 2] {
    [replication % CHANNELS, (replication + 2) % CHANNELS]
}

/// The channel at whose other end this one is.
fn opposite(channel: usize) -> usize {
    channel ^ 1
}

/// Cuts a message into words and deals them out to two channels.
fn deal(message: &[u8], width: usize, filler: u8, halves: &mut [Vec<u8>; 2]) {
    for (index, word) in message.chunks(width).enumerate() {
        halves[index % 2].extend_from_slice(word);
    }
    let iterations = message.len().div_ceil(2 * width);
    for half in halves {
        half.resize(iterations * width, filler);
    }
}

/// Puts what came on two channels together.
fn join(halves: &[Vec<u8>; 2], width: usize, message: &mut [u8]) {
    for (index, word) in message.chunks_mut(width).enumerate() {
        let from = &halves[index % 2][index / 2 * width..];
        word.copy_from_slice(&from[..word.len()]);
    }
}

/// Parent of a run's directory, or of the files themselves if they are kept.
fn parent(engine: &EngineChoice) -> PathBuf {
    let given = engine.text("channel_directory").map(PathBuf::from);
    given.unwrap_or_else(std::env::temp_dir)
}

/// The directory of the files, and what removes it: rank 0 makes it and tells the others.
fn directory(setup: &Setup<'_>, keep: bool) -> Result<(PathBuf, Option<ScratchFiles>), Halt> {
    let comm = setup.comm;
    let token = address::token(setup)?;
    if comm.rank() != 0 {
        let received = comm.receive(0, setup.watchdog)?;
        let base = PathBuf::from(String::from_utf8_lossy(&received).into_owned());
        return Ok((base, None));
    }
    let parent = parent(setup.engine);
    let refused =
        |e: io::Error| Halt::Garbled(format!("channels cannot be in {}: {e}", parent.display()));
    let (base, scratch) = if keep {
        (fs::canonicalize(&parent).map_err(refused)?, None)
    } else {
        let scratch = ScratchFiles::new(&parent, token).map_err(refused)?;
        (scratch.path().to_owned(), Some(scratch))
    };
    for rank in 1..comm.size() {
        comm.send(rank, base.to_string_lossy().as_bytes(), setup.watchdog)?;
    }
    Ok((base, scratch))
}

/// Folder of a rank's files, below the run's directory.
fn place(ranks: u32, rank: u32) -> String {
    match ranks {
        1 => String::new(),
        _ => format!("rank{rank}/"),
    }
}

/// The file of an outgoing channel.
fn output(own: &Path, channel: usize) -> PathBuf {
    own.join(format!("kernel_output_ch{channel}"))
}

/// Links an input to the output at its other end, in place of what an earlier run left.
fn link(own: &Path, channel: usize, setup: &Setup<'_>) -> Result<(), Halt> {
    let (rank, ranks) = (setup.comm.rank(), setup.comm.size());
    let replication = u32::from(!channel.is_multiple_of(2));
    let neighbour = partners(Pairing::Ring, ranks, rank, replication).to;
    let up = if ranks == 1 { "" } else { "../" };
    let end = opposite(channel);
    let target = format!("{up}{}kernel_output_ch{end}", place(ranks, neighbour));
    let name = own.join(format!("kernel_input_ch{channel}"));
    match fs::remove_file(&name) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(fail("remove the link of an earlier run")(error));
        }
        _ => {}
    }
    symlink(target, name).map_err(fail("link a channel to its other end"))
}

impl Transport for Channels {
    fn together() -> bool {
        true
    }

    fn open(setup: &Setup<'_>) -> Result<Self, Halt> {
        let (rank, ranks) = (setup.comm.rank(), setup.comm.size());
        let ring = |(i, p): (u32, &_)| *p == partners(Pairing::Ring, ranks, rank, i);
        if !(0..).zip(setup.partners).all(ring) {
            let message = "the channels of transport `file` form a ring (use pairing `ring`)";
            return Err(Halt::Garbled(message.to_owned()));
        }
        let keep = setup.engine.flag("keep_channels", false);
        let (base, scratch) = directory(setup, keep)?;
        let own = base.join(place(ranks, rank));
        fs::create_dir_all(&own).map_err(fail_at("make a rank's directory", &own))?;
        let make = |channel| {
            let name = output(&own, channel);
            let mut options = OpenOptions::new();
            let file = options.create(true).append(true).open(&name);
            file.and_then(|file| file.set_len(0).map(|()| file))
                .map_err(fail_at("make channel", &name))
        };
        let outputs = (0..CHANNELS).map(make).collect::<Result<_, _>>()?;
        (0..CHANNELS).try_for_each(|channel| link(&own, channel, setup))?;
        // All outputs are there before anybody opens one as an input.
        setup.comm.barrier(setup.watchdog)?;
        let input = |channel| File::open(own.join(format!("kernel_input_ch{channel}")));
        let inputs = (0..CHANNELS).map(input).collect::<io::Result<_>>();
        let width = number(setup.engine, "channel_width_bytes", 32);
        Ok(Self {
            scratch,
            outputs,
            inputs: inputs.map_err(fail("open a channel of the neighbour"))?,
            width: usize::try_from(width).unwrap_or(1),
            filler: 0,
            own,
            buffers: Buffers::default(),
            reading: 0,
            halves: Default::default(),
        })
    }

    fn prepare(&mut self, size: MessageSize, _: Method, setup: &Setup<'_>) -> Result<(), Halt> {
        self.filler = size.exponent;
        self.buffers = Buffers::new(setup.partners.len(), size.bytes())?;
        Ok(())
    }

    fn outgoing(&mut self, replication: usize) -> &mut [u8] {
        self.buffers.outgoing(replication)
    }

    fn incoming(&mut self, replication: usize) -> &mut [u8] {
        self.buffers.incoming(replication)
    }

    /// Everybody has read everything: the files begin anew.
    fn rewind(&mut self, setup: &Setup<'_>) -> Result<(), Halt> {
        setup.comm.barrier(setup.watchdog)?;
        for file in &self.outputs {
            file.set_len(0).map_err(fail("cut a channel"))?;
        }
        for file in &mut self.inputs {
            file.rewind().map_err(fail("go back in a channel"))?;
        }
        Ok(())
    }

    fn exchange(&mut self, replication: usize, watchdog: &Watchdog) -> Result<(), Halt> {
        self.write(replication)?;
        self.read(replication, watchdog)
    }

    fn exchange_all(&mut self, replications: usize, watchdog: &Watchdog) -> Result<(), Halt> {
        (0..replications).try_for_each(|replication| self.write(replication))?;
        (0..replications).try_for_each(|replication| self.read(replication, watchdog))
    }

    fn waiting_for(&self) -> Option<usize> {
        Some(self.reading)
    }

    fn finish(self) -> Result<(), Halt> {
        match self.scratch {
            Some(scratch) => scratch.remove().map_err(fail("remove the channels")),
            None => Ok(()),
        }
    }
}

impl Channels {
    fn write(&mut self, replication: usize) -> Result<(), Halt> {
        self.halves.iter_mut().for_each(Vec::clear);
        let (message, _) = self.buffers.both(replication);
        deal(message, self.width, self.filler, &mut self.halves);
        for (channel, half) in channels_of(replication).into_iter().zip(&self.halves) {
            self.outputs[channel]
                .write_all(half)
                .map_err(|e| fail_at("append to channel", &output(&self.own, channel))(e))?;
        }
        Ok(())
    }

    fn read(&mut self, replication: usize, watchdog: &Watchdog) -> Result<(), Halt> {
        self.reading = replication;
        let (_, message) = self.buffers.both(replication);
        let length = message.len().div_ceil(2 * self.width) * self.width;
        for (channel, half) in channels_of(replication).into_iter().zip(&mut self.halves) {
            half.resize(length, 0);
            fill(&mut self.inputs[opposite(channel)], half, watchdog)?;
        }
        let (_, message) = self.buffers.both(replication);
        join(&self.halves, self.width, message);
        Ok(())
    }
}

/// Reads until there is as much as wanted, however long the writer takes.
fn fill(file: &mut File, wanted: &mut [u8], watchdog: &Watchdog) -> Result<(), Halt> {
    let (mut done, mut looks) = (0, 0);
    while done < wanted.len() {
        match file.read(&mut wanted[done..]) {
            Ok(0) if looks < LOOKS => {
                looks += 1;
                std::thread::yield_now();
            }
            Ok(0) => {
                watchdog.check()?;
                std::thread::sleep(PAUSE);
            }
            Ok(came) => (done, looks) = (done + came, 0),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(fail("read a channel")(error)),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_message_survives_being_dealt_out(
            message in proptest::collection::vec(any::<u8>(), 1..300), width in 1usize..70
        ) {
            let mut halves = [Vec::new(), Vec::new()];
            deal(&message, width, 7, &mut halves);
            let whole = message.len().div_ceil(2 * width) * width;
            prop_assert!(halves.iter().all(|half| half.len() == whole));
            let mut back = vec![0; message.len()];
            join(&halves, width, &mut back);
            prop_assert_eq!(back, message);
        }
    }
}
