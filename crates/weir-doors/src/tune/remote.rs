//! What a search may set on the server's side of a packet path, and what that makes of its configuration.
//!
//! In: the server's configuration, settings from the network. Out: the configuration with them, or which of them
//! is refused and why. Devices, addresses, files and everything else are what the server's own configuration
//! says. Not here: the connection, runs.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use weir_diagnose::ConfigText;

use super::path::{LAYOUT, VARIED};
use super::path_layout::{PathLayout, layouts, workspaces_of};

/// The configuration of a server and the bounds within which a search may change it.
#[derive(Clone, Debug)]
pub struct RemoteBounds {
    config: ConfigText,
    layouts: Vec<PathLayout>,
    /// The keys and their highest values.
    highest: Vec<(&'static str, u64)>,
}

impl RemoteBounds {
    /// A configuration's.
    ///
    /// # Errors
    /// It cannot be read, or has a key twice.
    pub fn of(text: &str) -> Result<Self, String> {
        let config = ConfigText::read(text).map_err(|why| why.to_string())?;
        let mut highest = Vec::new();
        for (key, values, default) in VARIED {
            let own = config.value(key).map_err(|why| why.to_string())?;
            let own = own.and_then(|(value, _)| value.parse().ok());
            let last = values.split([',', '.', '*']).filter_map(|n| n.parse().ok());
            let most = last.chain(own).chain(default.parse().ok()).max();
            highest.push((key, most.unwrap_or(0)));
        }
        Ok(Self {
            // Workloads that share a workspace have the layout that is given alone.
            layouts: layouts(&config, true).unwrap_or_default(),
            config,
            highest,
        })
    }

    /// The workspaces of each workload, by its id.
    pub fn workspaces(&self) -> BTreeMap<u32, Vec<u32>> {
        workspaces_of(&self.config)
    }

    /// The configuration with these settings.
    ///
    /// # Errors
    /// The first that a search may not set, or not to this value.
    pub fn with(&self, settings: &BTreeMap<String, String>) -> Result<ConfigText, String> {
        let mut config = self.config.clone();
        if let Some(name) = settings.get(LAYOUT) {
            self.lay_out(&mut config, name)?;
        }
        for (key, value) in settings.iter().filter(|(key, _)| *key != LAYOUT) {
            let Some((known, most)) = self.highest.iter().find(|(known, _)| known == key) else {
                let keys: Vec<&str> = self.highest.iter().map(|(key, _)| *key).collect();
                let key = key.escape_debug();
                return Err(format!(
                    "`{key}` is no key that a search may set at its server (these: {}, {LAYOUT})",
                    keys.join(", ")
                ));
            };
            let is_plain = value.len() <= 20 && value.bytes().all(|byte| byte.is_ascii_digit());
            let number = value.parse::<u64>().ok().filter(|_| is_plain);
            let Some(number) = number.filter(|number| (1..=*most).contains(number)) else {
                let value = value.escape_debug();
                return Err(format!(
                    "{known}: `{value}`: a search may set 1 to {most} at its server"
                ));
            };
            let number = number.to_string();
            if !config.set(known, &number).map_err(|why| why.to_string())? {
                config.add(known, &number);
            }
        }
        Ok(config)
    }

    fn lay_out(&self, config: &mut ConfigText, name: &str) -> Result<(), String> {
        let Some(layout) = self.layouts.iter().find(|one| one.name == name) else {
            let names: Vec<&str> = self.layouts.iter().map(|one| one.name.as_str()).collect();
            let name = name.escape_debug();
            return Err(format!(
                "{LAYOUT}: `{name}`: the server's workspaces have {}",
                names.join(", ")
            ));
        };
        layout.apply(config)
    }
}

/// Where the daemon of a client's server is called: `remote_ip` and `mgmt_port` of its configuration.
///
/// # Errors
/// What is wrong with them.
pub fn daemon_of(config: &ConfigText) -> Result<(Ipv4Addr, u16), String> {
    let value = |key: &str| {
        let value = config.value(key).map_err(|why| why.to_string())?;
        Ok::<_, String>(value.map(|(value, _)| value.trim_matches('"').to_owned()))
    };
    let address = value("remote_ip")?.unwrap_or_else(|| Ipv4Addr::LOCALHOST.to_string());
    let port = value("mgmt_port")?.unwrap_or_else(|| MANAGEMENT_PORT.to_string());
    let address = address
        .parse()
        .map_err(|_| format!("remote_ip: `{address}` is no IPv4 address"))?;
    let port = port.parse().ok().filter(|port| (1..65535).contains(port));
    let port =
        port.ok_or("mgmt_port: with a daemon it is 1 to 65534: trials use the port after it")?;
    Ok((address, port))
}

/// Where the key is missing.
const MANAGEMENT_PORT: u16 = 20086;

#[cfg(test)]
mod tests {
    use super::*;

    const SERVER: &str = "backend : udp # fast\nkAppTxMsgBatchSize : 600\nring : 64\n\
        kAppCoreNum : 1\nkDispQueueNum : 1\nworkload : 1 : RXDispatcher : 0 : 0 : 1\n";

    fn with(settings: &[(&str, &str)]) -> Result<String, String> {
        let owned = settings.iter();
        let owned = owned.map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        let bounds = RemoteBounds::of(SERVER).unwrap();
        bounds.with(&owned.collect()).map(|config| config.text())
    }

    #[test]
    fn settings_within_bounds_replace_the_servers_own_alone() {
        let text = with(&[
            ("ring", "16384"),
            ("kAppTxMsgBatchSize", "600"),
            ("inflight", "64"),
        ]);
        assert_eq!(
            text.unwrap(),
            SERVER.replace("ring : 64", "ring : 16384") + "inflight : 64\n"
        );
        let text = with(&[("layout", "combined")]).unwrap();
        assert!(text.contains(" : 0,1 : 0|1 : 0|1\n"), "{text}");
        assert!(text.contains("kAppCoreNum : 2\n"), "{text}");
        assert_eq!(RemoteBounds::of(SERVER).unwrap().workspaces()[&1], [0, 1]);
    }

    #[test]
    fn everything_else_is_refused_by_name() {
        for (key, value, says) in [
            (
                "backend",
                "shm:/etc/passwd",
                "`backend` is no key that a search may set",
            ),
            ("local_ip", "10.0.0.1", "is no key"),
            ("hugepages", "1G", "is no key"),
            ("ring", "16385", "1 to 16384"),
            ("kAppTxMsgBatchSize", "601", "1 to 600"),
            ("kDispTxBatchSize", "0", "1 to 512"),
            ("kDispTxBatchSize", "+1", "1 to 512"),
            ("kDispTxBatchSize", "1 # x\nbackend : shm:/x", "1 to 512"),
            ("layout", "split-9", "given, combined, split-1"),
            ("a\u{1b}[2J", "1", "`a\\u{1b}[2J`"),
        ] {
            let why = with(&[(key, value)]).unwrap_err();
            assert!(why.contains(says), "{key}={value}: {why}");
        }
    }

    #[test]
    fn a_daemon_is_called_where_the_client_has_its_server() {
        let of = |text: &str| daemon_of(&ConfigText::read(text).unwrap());
        assert_eq!(of(""), Ok((Ipv4Addr::LOCALHOST, 20086)));
        let both = of("remote_ip : 10.0.0.2\nmgmt_port : 7\n");
        assert_eq!(both, Ok((Ipv4Addr::new(10, 0, 0, 2), 7)));
        assert!(of("mgmt_port : 65535\n").unwrap_err().contains("65534"));
        assert!(of("remote_ip : x\n").unwrap_err().contains("`x`"));
    }
}
