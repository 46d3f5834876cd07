//! Who calls a server that waits for its client: that client, or somebody else, who is sent away.
//!
//! In: connections. Out: the first whose greeting is that of a client; a note of each that is none. A
//! connection that says nothing is let go after a while, and does not keep the others waiting.

use std::io::{self, ErrorKind};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use weir_run::{JobContext, failure};
use weir_schema::{Announcement, Failure, PacketPathWorkload};
use weir_sys::socket::is_passing;

use super::{Hello, PAUSE, PathPeer, PeerLine, interrupted, server_address};

/// Time that a greeting may take.
const GREETING: Duration = Duration::from_secs(5);
/// Bytes that it may have.
const LONGEST_GREETING: usize = 1 << 20;
/// Connections that may be about to greet.
const MOST_CALLERS: usize = 64;

/// Opens the port at which a client calls.
///
/// # Errors
/// The machine has no such address, or somebody else has the port.
pub(crate) fn listen(work: &PacketPathWorkload) -> Result<TcpListener, Failure> {
    let at = server_address(work);
    let listener = TcpListener::bind(at).and_then(|listener| {
        listener.set_nonblocking(true)?;
        Ok(listener)
    });
    listener.map_err(|why| {
        let remedy = match why.kind() {
            ErrorKind::AddrNotAvailable => {
                "; `local_ip` of a server is an address of its machine (`ip address` lists them)"
            }
            ErrorKind::AddrInUse => {
                "; another program has that port: name another `mgmt_port`, the same on both sides"
            }
            ErrorKind::PermissionDenied => {
                "; ports below 1024 need root, or CAP_NET_BIND_SERVICE: name another `mgmt_port`"
            }
            _ => "",
        };
        failure(
            "missing",
            why.raw_os_error(),
            format!("cannot wait for a client at {at}: {why}{remedy}"),
        )
    })
}

/// Waits for a client's greeting.
pub(super) fn await_client(
    listener: &TcpListener,
    context: &JobContext<'_>,
) -> Result<(PathPeer, Hello), Failure> {
    if let Ok(address) = listener.local_addr() {
        let address = address.to_string();
        (context.announce)(&Announcement::Listening { address });
    }
    let mut callers: Vec<(PathPeer, Instant)> = Vec::new();
    loop {
        if context.signals.interrupted() {
            return Err(interrupted());
        }
        while callers.len() < MOST_CALLERS {
            let Some(stream) = next_caller(listener)? else {
                break;
            };
            // One that is gone already is nobody.
            if let Ok(mut caller) = PathPeer::of(stream) {
                caller.lines.allow(LONGEST_GREETING);
                callers.push((caller, Instant::now()));
            }
        }
        let mut still = Vec::new();
        for (mut caller, since) in callers.drain(..) {
            let why = match caller.lines.hear_bytes() {
                Ok(Some(said)) => match serde_json::from_slice(&said) {
                    Ok(PeerLine::Hello(hello)) => {
                        caller.lines.allow(super::LONGEST);
                        return Ok((caller, *hello));
                    }
                    Ok(_) => "it does not greet first".to_owned(),
                    Err(why) => format!("speaks otherwise: {why}"),
                },
                Ok(None) if since.elapsed() < GREETING => {
                    still.push((caller, since));
                    continue;
                }
                Ok(None) => format!("no greeting within {GREETING:?}"),
                Err(why) => {
                    let own = why.message.strip_prefix(&caller.name);
                    let why = own.unwrap_or(&why.message);
                    let why = why.strip_prefix(" is lost").unwrap_or(why);
                    why.trim_start_matches([':', ' ']).to_owned()
                }
            };
            (context.announce)(&Announcement::Stranger {
                address: caller.name,
                awaited: "client of weir axio".to_owned(),
                why,
            });
        }
        callers = still;
        std::thread::sleep(PAUSE);
    }
}

/// Who has called since, if somebody has.
///
/// # Errors
/// Nobody can call any more.
fn next_caller(listener: &TcpListener) -> Result<Option<TcpStream>, Failure> {
    match listener.accept() {
        Ok((stream, _)) => Ok(Some(stream)),
        Err(why) if is_passing(&why) || has_left(&why) => Ok(None),
        Err(why) => {
            let why = format!("cannot wait for a client: {why}");
            Err(failure("peer", None, why))
        }
    }
}

/// True if a caller was gone before it was answered.
fn has_left(why: &io::Error) -> bool {
    matches!(
        why.kind(),
        ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset
    )
}
