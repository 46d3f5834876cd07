//! HTTP server for few clients and short requests, without a library, which serves the state of a run.
//!
//! In: an address, what answers a path. Out: answers. A request is read whole before it is answered, is
//! bounded in length, time and number of clients, and names this machine: a page from elsewhere whose
//! name was made to lead here (DNS rebinding) reads nothing. Not here: what is answered.

use std::io::{self, Read as _, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// Most clients answered at a time.
const MOST_CLIENTS: usize = 16;
/// The longest request.
const LONGEST: usize = 8 << 10;
/// Silence after which a client is gone.
const PATIENCE: Duration = Duration::from_secs(5);

/// Request of a client.
pub(super) struct Request {
    /// Path without the part from `?` on.
    pub(super) path: String,
    /// Accepted types, in small letters.
    pub(super) accept: String,
}

/// Answer to a request.
pub(super) enum Answer {
    /// A page.
    Page {
        /// Content type of the head.
        content_type: &'static str,
        text: String,
    },
    /// Events until this has no more; it waits between them.
    Events(Box<dyn FnMut() -> Option<String>>),
    /// No page of this name, or not yet.
    Missing(&'static str),
}

/// Function that answers requests.
pub(super) type Answers = dyn Fn(&Request) -> Answer + Send + Sync;

/// Listens at an address, and returns the actual one.
///
/// # Errors
/// The address cannot be used.
pub(super) fn listen(address: SocketAddr, answers: Arc<Answers>) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(address)?;
    let address = listener.local_addr()?;
    let clients = Arc::new(AtomicUsize::new(0));
    thread::Builder::new()
        .name("weir-web".to_owned())
        .spawn(move || {
            for stream in listener.incoming().flatten() {
                admit(stream, address, &clients, &answers);
            }
        })?;
    Ok(address)
}

/// Answers a client on a thread of its own, if there is room for it.
fn admit(
    mut stream: TcpStream,
    address: SocketAddr,
    clients: &Arc<AtomicUsize>,
    answers: &Arc<Answers>,
) {
    let time_out = Some(PATIENCE);
    let is_set =
        stream.set_read_timeout(time_out).is_ok() && stream.set_write_timeout(time_out).is_ok();
    if !is_set {
        return;
    }
    if clients.fetch_add(1, Ordering::Relaxed) >= MOST_CLIENTS {
        clients.fetch_sub(1, Ordering::Relaxed);
        // Whether it reads that is its own affair.
        let _ = refuse(
            &mut stream,
            "503 Service Unavailable",
            "sixteen others are being answered",
        );
        return;
    }
    let (mine, answers) = (Arc::clone(clients), Arc::clone(answers));
    let started = thread::Builder::new()
        .name("weir-web-client".to_owned())
        .spawn(move || {
            // A client that is gone misses nothing.
            let _ = serve(&mut stream, address, &answers);
            mine.fetch_sub(1, Ordering::Relaxed);
        });
    if started.is_err() {
        clients.fetch_sub(1, Ordering::Relaxed);
    }
}

fn serve(stream: &mut TcpStream, address: SocketAddr, answers: &Arc<Answers>) -> io::Result<()> {
    let Some(head) = read_head(stream)? else {
        let status = "431 Request Header Fields Too Large";
        return refuse(stream, status, "the request is too long");
    };
    let request = match understood(&head, address) {
        Ok(request) => request,
        Err((status, why)) => return refuse(stream, status, why),
    };
    match answers(&request) {
        Answer::Page { content_type, text } => {
            write_head(stream, "200 OK", content_type, Some(text.len()))?;
            stream.write_all(text.as_bytes())
        }
        Answer::Missing(why) => refuse(stream, "404 Not Found", why),
        Answer::Events(mut next) => {
            write_head(stream, "200 OK", "text/event-stream", None)?;
            while let Some(event) = next() {
                write!(stream, "data: {event}\n\n")?;
            }
            stream.write_all(b"event: end\ndata: {}\n\n")
        }
    }
}

/// The request up to the empty line; nothing where it is too long.
fn read_head(stream: &mut TcpStream) -> io::Result<Option<String>> {
    let mut head = Vec::new();
    let mut piece = [0; 1024];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let count = stream.read(&mut piece)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        head.extend_from_slice(piece.get(..count).unwrap_or_default());
        if head.len() > LONGEST {
            return Ok(None);
        }
    }
    Ok(Some(String::from_utf8_lossy(&head).into_owned()))
}

/// Reads a request; the error is the status and the reason.
fn understood(head: &str, address: SocketAddr) -> Result<Request, (&'static str, &'static str)> {
    const BAD: &str = "400 Bad Request";
    let mut lines = head.lines();
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next());
    let target = target.ok_or((BAD, "the first line is none of HTTP"))?;
    if !words
        .next()
        .is_some_and(|version| version.starts_with("HTTP/1."))
    {
        return Err((BAD, "this server speaks HTTP/1.1"));
    }
    if method != "GET" {
        return Err(("405 Method Not Allowed", "this server is only read: GET"));
    }
    let headers: Vec<(String, &str)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim()))
        .collect();
    let value = |name: &str| {
        headers
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, value)| *value)
    };
    let hosts = headers.iter().filter(|(name, _)| name == "host");
    if hosts.count() > 1 {
        return Err((BAD, "more than one Host"));
    }
    let names = [&own_name(), "localhost"];
    if !value("host").is_some_and(|host| is_this_machine(host, address, names)) {
        return Err((
            "403 Forbidden",
            "the host that is asked for is not this one: ask by an address, by localhost or by the \
             name that `hostname` prints, with the port",
        ));
    }
    Ok(Request {
        path: target.split('?').next().unwrap_or_default().to_owned(),
        accept: value("accept").unwrap_or_default().to_ascii_lowercase(),
    })
}

/// Host name of this machine, which no page of another site can have.
fn own_name() -> String {
    let system = rustix::system::uname();
    system.nodename().to_string_lossy().into_owned()
}

/// True if a `Host` is an address, or one of the names of this machine. Its port, if it states one, has to be
/// this server's.
fn is_this_machine(host: &str, address: SocketAddr, names: [&str; 2]) -> bool {
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') && !name.is_empty() => (name, Some(port)),
        _ => (host, None),
    };
    if port.is_some_and(|port| port.parse() != Ok(address.port())) {
        return false;
    }
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    let is_named = || names.iter().any(|own| name.eq_ignore_ascii_case(own));
    bare.parse::<IpAddr>().is_ok() || (!name.is_empty() && is_named())
}

fn refuse(stream: &mut TcpStream, status: &str, why: &str) -> io::Result<()> {
    let text = format!("{why}\n");
    write_head(
        stream,
        status,
        "text/plain; charset=utf-8",
        Some(text.len()),
    )?;
    stream.write_all(text.as_bytes())
}

fn write_head(
    stream: &mut TcpStream,
    status: &str,
    content_type: &str,
    length: Option<usize>,
) -> io::Result<()> {
    let length = length.map_or(String::new(), |length| {
        format!("Content-Length: {length}\r\n")
    });
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\n{length}Cache-Control: no-store\r\n\
         X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(head: &str) -> Result<Request, (&'static str, &'static str)> {
        understood(head, "127.0.0.1:8080".parse().unwrap())
    }

    fn status(head: &str) -> &'static str {
        of(head).err().map_or("200", |(status, _)| &status[..3])
    }

    #[test]
    fn only_reading_by_a_name_of_this_machine_is_allowed() {
        let get = |host: &str| status(&format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        for host in [
            "127.0.0.1:8080",
            "localhost",
            "LOCALHOST:8080",
            "[::1]:8080",
            "[::1]",
            "10.1.2.3",
        ] {
            assert_eq!(get(host), "200", "{host}");
        }
        for host in [
            "evil",
            "evil.example:8080",
            "127.0.0.1:80",
            "localhost.evil.example",
            "",
        ] {
            assert_eq!(get(host), "403", "{host}");
        }
        assert_eq!(get(&own_name()), "200");
        assert_eq!(get(&format!("{}:8080", own_name())), "200");
        assert_eq!(get("localhost\r\nHost: evil"), "400");
        assert_eq!(status("POST / HTTP/1.1\r\nHost: localhost\r\n\r\n"), "405");
        assert_eq!(status("GET / HTTP/1.1\r\n\r\n"), "403");
        assert_eq!(status("GET /\r\n\r\n"), "400");
        assert_eq!(status("\r\n\r\n"), "400");
    }

    #[test]
    fn a_path_ends_before_its_question() {
        let request =
            of("GET /metrics?x=1 HTTP/1.1\r\nhost: localhost\r\nAccept: Text/Plain\r\n\r\n");
        let request = request.ok().unwrap();
        assert_eq!(
            (&*request.path, &*request.accept),
            ("/metrics", "text/plain")
        );
    }
}
