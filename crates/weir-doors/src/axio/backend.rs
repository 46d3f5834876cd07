//! The words of `backend`: what carries packets.
//!
//! In: `ring`, `udp`, `packet:IF`, `xdp:IF,peer=IF[,mode=MODE][,queue=N]`, `dpdk:rings`, `dpdk:DEVICE+DEVICE`. Out: the link of a job with its settings; nothing for
//! words that are none. Not here: whether the machine has the interfaces (`weir-datapath`).

use weir_schema::{EngineChoice, Setting};

/// What the words may be.
pub(super) const TAKES: &str = "ring, udp, packet:INTERFACE, xdp:INTERFACE[,peer=INTERFACE][,mode=skb|drv|zc][,queue=N], \
     dpdk:rings, dpdk:DEVICE[+DEVICE]";

/// The link that the words name.
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
        let dpdk = backend("dpdk:net_af_packet0,iface=eth1+0000:98:00.0").unwrap();
        assert_eq!(dpdk.name, "dpdk");
        let second = Setting::Text("0000:98:00.0".to_owned());
        assert_eq!(dpdk.settings["peer_device"], second);
        assert_eq!(backend("dpdk:rings").unwrap().settings.len(), 1);
        assert_eq!(backend("xdp:eth1, peer=eth2").unwrap().settings.len(), 2);
    }

    #[test]
    fn words_that_name_no_link_are_none() {
        for text in [
            "",
            "dpdk",
            "dpdk:",
            "dpdk:net_null0+net_null0",
            "dpdk:a+b+c",
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
