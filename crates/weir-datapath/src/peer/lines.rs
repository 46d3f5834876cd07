//! A connection whose two ends say lines of JSON to each other, and neither believes what it hears before it
//! has looked at it.
//!
//! In: a stream of TCP. Out: what a line says, once it is whole; that the other side is gone, or says what is no
//! such line, or a line that is too long. Nothing here waits for a line. Not here: what lines say.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use serde::Serialize;
use weir_run::failure;
use weir_schema::Failure;
use weir_sys::socket::{is_passing, notice_silence, set_user_timeout};

use super::ANSWER;

/// After this time without a sign of its host the other side is lost.
const SILENCE: Duration = Duration::from_secs(4);

/// The connection.
#[derive(Debug)]
pub(crate) struct LineStream {
    stream: TcpStream,
    name: String,
    /// Bytes that came and are no line yet.
    begun: Vec<u8>,
    /// Bytes that a line may have.
    longest: usize,
}

impl LineStream {
    /// A connection whose lines have at most so many bytes.
    ///
    /// # Errors
    /// The other side is gone already.
    pub(crate) fn of(stream: TcpStream, longest: usize) -> io::Result<Self> {
        let name = stream.peer_addr()?.to_string();
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        notice_silence(&stream, Duration::from_secs(1))?;
        set_user_timeout(&stream, SILENCE);
        Ok(Self {
            stream,
            name,
            begun: Vec::new(),
            longest,
        })
    }

    /// Says a line, and waits until the kernel has it.
    ///
    /// # Errors
    /// The other side is gone.
    pub(crate) fn say(&mut self, line: &impl Serialize) -> Result<(), Failure> {
        self.say_text(&text(line)?)
    }

    /// The same of the bytes of a line.
    ///
    /// # Errors
    /// The other side is gone.
    pub(crate) fn say_text(&mut self, text: &[u8]) -> Result<(), Failure> {
        let start = Instant::now();
        let mut left = text;
        while !left.is_empty() {
            match self.stream.write(left) {
                Ok(0) => return Err(lost(&self.name, &ErrorKind::WriteZero.into())),
                Ok(written) => left = &left[written..],
                Err(why) if is_passing(&why) && start.elapsed() < ANSWER => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                Err(why) => return Err(lost(&self.name, &why)),
            }
        }
        Ok(())
    }

    /// The bytes of a line with its end, where one has come.
    ///
    /// # Errors
    /// The other side is gone, or the line is too long.
    pub(crate) fn hear_text(&mut self) -> Result<Option<Vec<u8>>, Failure> {
        loop {
            let end = self.begun.iter().position(|byte| *byte == b'\n');
            if end.unwrap_or(self.begun.len()) > self.longest {
                let why = format!("{}: a line of more than {} bytes", self.name, self.longest);
                return Err(failure("peer", None, why));
            }
            if let Some(end) = end {
                return Ok(Some(self.begun.drain(..=end).collect()));
            }
            let mut piece = [0; 1 << 14];
            match self.stream.read(&mut piece) {
                Ok(0) => return Err(lost(&self.name, &ErrorKind::UnexpectedEof.into())),
                Ok(came) => self.begun.extend_from_slice(&piece[..came]),
                Err(why) if is_passing(&why) => return Ok(None),
                Err(why) => return Err(lost(&self.name, &why)),
            }
        }
    }

    /// Lines may have so many bytes from now on.
    pub(crate) fn allow(&mut self, longest: usize) {
        self.longest = longest;
    }

    /// Addresses of this end and of the other.
    ///
    /// # Errors
    /// The other side is gone.
    pub(crate) fn ends(&self) -> io::Result<[SocketAddr; 2]> {
        Ok([self.stream.local_addr()?, self.stream.peer_addr()?])
    }

    /// Who the other side is, for messages.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

/// The bytes of a line, with its end.
pub(super) fn text(line: &impl Serialize) -> Result<Vec<u8>, Failure> {
    let text = serde_json::to_vec(line);
    let mut text = text.map_err(|why| failure("peer", None, why.to_string()))?;
    text.push(b'\n');
    Ok(text)
}

pub(super) fn lost(name: &str, why: &io::Error) -> Failure {
    failure("peer", why.raw_os_error(), format!("{name} is lost: {why}"))
}
