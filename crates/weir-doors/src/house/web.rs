//! `--web`, `--web-linger`, `--metrics-file`: access of others to a running run.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use weir_units::Nanos;

use crate::given::GivenFlags;

/// Web view and metrics of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Web {
    /// Address to listen at; port 0 chooses a free one.
    pub address: Option<SocketAddr>,
    /// Time for which the result can be fetched after the run.
    pub linger: Nanos,
    /// The file that gets the metrics now and then.
    pub metrics_file: Option<String>,
}

/// Reads the web settings that the flags ask for.
pub(super) fn read(given: &GivenFlags) -> Web {
    Web {
        address: given.parsed("web", address),
        linger: given.seconds("web-linger").unwrap_or_default(),
        metrics_file: given.text("metrics-file").map(str::to_owned),
    }
}

/// An address with or without its port, a port alone, or nothing: this machine's own, any free port.
pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    let own = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let of_ip = |ip: IpAddr| SocketAddr::new(ip, 0);
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    match text {
        "" => Some(of_ip(own)),
        text => {
            let port = text.strip_prefix(':').unwrap_or(text).parse().ok();
            let port = port.map(|port| SocketAddr::new(own, port));
            port.or_else(|| text.parse().ok())
                .or_else(|| bare.parse().ok().map(of_ip))
        }
    }
    .ok_or_else(|| "it takes ADDRESS:PORT, as 127.0.0.1:9464".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_may_leave_either_half_out() {
        for (text, meant) in [
            ("", "127.0.0.1:0"),
            ("9464", "127.0.0.1:9464"),
            (":9464", "127.0.0.1:9464"),
            ("0.0.0.0", "0.0.0.0:0"),
            ("10.0.0.1:80", "10.0.0.1:80"),
            ("[::1]:80", "[::1]:80"),
            ("::1", "[::1]:0"),
        ] {
            assert_eq!(address(text).unwrap(), meant.parse().unwrap(), "{text}");
        }
        for text in ["localhost", "1.2.3.4:99999", "x:1"] {
            assert!(address(text).is_err(), "{text}");
        }
    }
}
