//! Values of `backend`: the link that carries packets.
//!
//! In: words as [`TAKES`] has them. Out: the link of a job with its settings; nothing for words that are
//! none. Not here: whether the machine has the interfaces (`weir-datapath`).

use weir_schema::{EngineChoice, Setting};

/// Values that the key and the flag take.
pub(super) const TAKES: &str = "ring, shm:PATH, udp, packet:INTERFACE, \
     xdp:INTERFACE[,peer=INTERFACE][,mode=skb|drv|zc][,queue=N], dpdk:rings, dpdk:DEVICE[+DEVICE], \
     verbs:ud|rc:DEVICE";

/// Links by name, with the prefix of the value and the needs of each.
const NEEDS: [(&str, &str, &str); 7] = [
    ("ring", "ring", "both sides in one process"),
    ("shm", "shm:PATH", "two processes of one machine"),
    ("udp", "udp", "addresses of the machine"),
    ("packet", "packet:INTERFACE", "CAP_NET_RAW"),
    (
        "xdp",
        "xdp:INTERFACE",
        "CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF; mode=zc: a driver with zero copy",
    ),
    ("dpdk", "dpdk:DEVICE", "DPDK 22.11 and libweir_dpdk.so"),
    (
        "verbs",
        "verbs:ud|rc:DEVICE",
        "libibverbs and an RDMA device for RoCE v2, as a card or rdma_rxe makes it",
    ),
];

/// Text of `--backend list`: a line for each link, with the reason where it is not available.
pub(super) fn list(states: &[(&str, Option<String>)]) -> String {
    let mut out = String::new();
    for (name, words, needs) in NEEDS {
        let state = states.iter().find(|(known, _)| *known == name);
        let state = match state {
            Some((_, Some(why))) => format!("unavailable: {why}"),
            _ => "available".to_owned(),
        };
        push!(out, "{words:20} needs {needs}\n{:20} {state}\n", "");
    }
    out
}

/// The link that the value names.
pub(super) fn backend(text: &str) -> Option<EngineChoice> {
    if ["ring", "udp"].contains(&text) {
        return Some(EngineChoice::new(text));
    }
    if let Some(interface) = text.strip_prefix("packet:").filter(|name| !name.is_empty()) {
        let mut choice = EngineChoice::new("packet");
        let name = Setting::Text(interface.to_owned());
        choice.settings.insert("interface".to_owned(), name);
        return Some(choice);
    }
    if let Some(path) = text.strip_prefix("shm:").filter(|path| !path.is_empty()) {
        let mut choice = EngineChoice::new("shm");
        let path = Setting::Text(path.to_owned());
        choice.settings.insert("path".to_owned(), path);
        return Some(choice);
    }
    if let Some(words) = text.strip_prefix("verbs:") {
        return verbs(words);
    }
    if let Some(devices) = text.strip_prefix("dpdk:") {
        let devices: Vec<&str> = devices.split('+').map(str::trim).collect();
        let mut choice = EngineChoice::new("dpdk");
        let names = match devices[..] {
            ["rings"] => &["device"][..],
            [one, other] if one != other && !one.is_empty() && !other.is_empty() => {
                &["device", "peer_device"]
            }
            [own] if !own.is_empty() => &["device"],
            _ => return None,
        };
        let settings = names.iter().zip(devices);
        let of =
            |(name, device): (&&str, &str)| ((*name).to_owned(), Setting::Text(device.to_owned()));
        choice.settings = settings.map(of).collect();
        return Some(choice);
    }
    let mut parts = text.strip_prefix("xdp:")?.split(',').map(str::trim);
    let mut choice = EngineChoice::new("xdp");
    let mut set = |name: &str, value: Setting| {
        let before = choice.settings.insert(name.to_owned(), value);
        before.is_none().then_some(())
    };
    let word = |word: &str| Some(Setting::Text(word.to_owned())).filter(|_| !word.is_empty());
    set("interface", word(parts.next()?)?)?;
    for part in parts {
        let (name, value) = part.split_once('=')?;
        match name {
            "peer" => set("peer_interface", word(value)?)?,
            "mode" if ["skb", "drv", "zc"].contains(&value) => set("mode", word(value)?)?,
            "queue" => {
                let number = value.parse::<u8>().ok().filter(|n| *n < 128)?;
                set("queue", Setting::Number(number.into()))?;
            }
            _ => return None,
        }
    }
    Some(choice)
}

/// `rc:mlx5_0`: the transport and the device.
fn verbs(words: &str) -> Option<EngineChoice> {
    let (transport, device) = words.split_once(':')?;
    if !["ud", "rc"].contains(&transport) || device.is_empty() {
        return None;
    }
    let mut choice = EngineChoice::new("verbs");
    for (name, word) in [("transport", transport), ("device", device)] {
        let word = Setting::Text(word.to_owned());
        choice.settings.insert(name.to_owned(), word);
    }
    Some(choice)
}

/// Fewest frames in a ring of the devices that DPDK makes of interfaces, and in a queue of so many slots for messages
/// of UD. A frame without room there is lost.
pub(super) fn frames_of_devices(choice: &EngineChoice, slots: u32) -> Option<u32> {
    const KIND: &str = "net_af_packet";
    const USUAL: u32 = 512;
    let frames = |device: &str| {
        let mut words = device.split(',').map(str::trim);
        words.next().filter(|name| name.starts_with(KIND))?;
        let asked = words.find_map(|word| word.strip_prefix("framecnt="));
        Some(asked.map_or(USUAL, |count| count.parse().unwrap_or(USUAL)))
    };
    let is = |name: &str, word: &str| matches!(choice.settings.get(name), Some(Setting::Text(text)) if text == word);
    if choice.name == "verbs" && is("transport", "ud") {
        return Some(slots);
    }
    let devices = ["device", "peer_device"].map(|name| choice.settings.get(name));
    let of = |setting: Option<&Setting>| match setting {
        Some(Setting::Text(device)) if choice.name == "dpdk" => frames(device),
        _ => None,
    };
    devices.into_iter().filter_map(of).min()
}

/// Link of a side whose configuration names a device and no backend, as in the older program.
pub(super) fn of_device(pcie: Option<&str>, name: Option<&str>) -> Option<EngineChoice> {
    match (pcie, name) {
        (Some(pcie), _) if pcie.contains(':') => backend(&format!("dpdk:{pcie}")),
        // Its dots stand for colons, all but the last.
        (Some(pcie), _) => backend(&format!("dpdk:{}", pcie.replacen('.', ":", 2))),
        (None, Some(name)) => verbs(&format!("rc:{name}")),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_a_backend_become_the_settings_of_a_link() {
        assert_eq!(backend("ring"), Some(EngineChoice::new("ring")));
        let xdp = backend("xdp:eth1,peer=eth2,mode=skb,queue=3").unwrap();
        assert_eq!(xdp.name, "xdp");
        let text = |name: &str| match &xdp.settings[name] {
            Setting::Text(text) => text.clone(),
            other => format!("{other:?}"),
        };
        assert_eq!(text("interface"), "eth1");
        assert_eq!(text("peer_interface"), "eth2");
        assert_eq!(text("mode"), "skb");
        assert_eq!(xdp.settings["queue"], Setting::Number(3));
        let frames = |words| frames_of_devices(&backend(words).unwrap(), 99);
        assert_eq!(frames("packet:net_af_packet0"), None);
        assert_eq!(frames("dpdk:net_null0"), None);
        assert_eq!(frames("verbs:rc:rxe0"), None);
        assert_eq!(frames("verbs:ud:rxe0"), Some(99));
        assert_eq!(frames("dpdk:net_af_packet0,iface=a"), Some(512));
        let other = "dpdk:net_af_packet0,iface=a+net_af_packet1,iface=b";
        assert_eq!(frames(&format!("{other},framecnt=64")), Some(64));
        let dpdk = backend("dpdk:net_af_packet0,iface=eth1+0000:98:00.0").unwrap();
        assert_eq!(dpdk.name, "dpdk");
        let second = Setting::Text("0000:98:00.0".to_owned());
        assert_eq!(dpdk.settings["peer_device"], second);
        assert_eq!(backend("dpdk:rings").unwrap().settings.len(), 1);
        assert_eq!(backend("xdp:eth1, peer=eth2").unwrap().settings.len(), 2);
        assert_eq!(backend("shm:/run/x").unwrap().settings.len(), 1);
        let verbs = backend("verbs:rc:mlx5_0").unwrap();
        assert_eq!((verbs.name.as_str(), verbs.settings.len()), ("verbs", 2));
    }

    #[test]
    fn a_device_stands_for_a_backend() {
        let card = of_device(Some("0000.98.00.0"), Some("mlx5_0")).unwrap();
        let address = Setting::Text("0000:98:00.0".to_owned());
        assert_eq!(
            (card.name.as_str(), &card.settings["device"]),
            ("dpdk", &address)
        );
        let colons = of_device(Some("0000:98:00.0"), None).unwrap();
        assert_eq!(colons.settings["device"], address);
        assert_eq!(of_device(None, Some("mlx5_0")), backend("verbs:rc:mlx5_0"));
        assert_eq!(of_device(None, None), None);
    }

    #[test]
    fn every_link_is_listed_with_what_it_needs_and_why_it_is_not_there() {
        let text = list(&[("ring", None), ("dpdk", Some("no library".to_owned()))]);
        assert_eq!(text.lines().count(), 14);
        assert!(text.contains("unavailable: no library\n"), "{text}");
        assert_eq!(text.matches(" available\n").count(), 6, "{text}");
    }

    #[test]
    fn words_that_name_no_link_are_none() {
        for text in [
            "",
            "dpdk",
            "dpdk:",
            "dpdk:net_null0+net_null0",
            "dpdk:a+b+c",
            "shm:",
            "verbs:rc",
            "verbs:xx:mlx5_0",
            "verbs:ud:",
            "xdp",
            "xdp:",
            "xdp:eth1,peer=",
            "xdp:eth1,peer=eth2,mode=fast",
            "xdp:eth1,peer=eth2,queue=128",
            "xdp:eth1,peer=eth2,peer=eth3",
            "xdp:eth1,peer=eth2,speed=1",
        ] {
            assert_eq!(backend(text), None, "{text}");
        }
    }
}
