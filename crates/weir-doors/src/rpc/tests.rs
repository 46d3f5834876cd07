//! Words of `weir rpc serve` and the settings that they are.

use super::*;
use weir_schema::{RpcPoll, RpcServiceTime};
use weir_units::{Bytes, Nanos};

fn list(words: &str) -> Vec<String> {
    let words = words.split(' ').filter(|word| !word.is_empty());
    words.map(str::to_owned).collect()
}

fn served(words: &str) -> ServeSettings {
    served_with(words, &[])
}

/// Settings with these variables in the environment.
fn served_with(words: &str, variables: &[(&str, &str)]) -> ServeSettings {
    let variable = |name: &str| {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    match read(&list(&format!("serve {words}")), &variable) {
        Ok(Action::Serve(settings)) => *settings,
        other => panic!("{words}: {other:?}"),
    }
}

#[test]
fn without_words_it_is_one_rank_of_one_tag_that_only_this_machine_reaches() {
    let settings = served("");
    assert_eq!(settings.serve.group, "daos_server");
    assert_eq!((settings.serve.ranks, settings.serve.tags), (None, 1));
    assert_eq!(settings.serve.addresses, ["tcp://127.0.0.1:0"]);
    assert_eq!(settings.serve.max_message, Bytes(16 << 20));
    assert_eq!(
        (settings.serve.max_connections, settings.serve.max_sessions),
        (16_384, 65_536)
    );
    assert_eq!(settings.serve.half_frame_timeout_ns, Nanos::from_secs(30));
    assert_eq!(settings.end, ServeEnd::Never);
    assert_eq!(settings.serve.service_time, RpcServiceTime::None);
    assert_eq!(settings.serve.poll, RpcPoll::Automatic);
    let table = settings.serve.table.unwrap();
    assert!(settings.serve.allows_masters && !table.is_public && !table.is_plain);
}

#[test]
fn values_are_what_they_say() {
    let settings = served(
        "--ranks 0-3 --layout daos,targets=16,helpers=4 --allow-master no --exit-after idle:0.5 \
         --service-time bimodal:10,0.99,1000 --transport tcp://0.0.0.0:7000,shm:// --cpus 0,2-3 \
         --poll spin:50 --mem-limit 512m --table-format cart",
    );
    assert_eq!(
        (settings.serve.ranks, settings.serve.tags),
        (Some((0, 3)), 22)
    );
    assert_eq!(settings.serve.addresses.len(), 2);
    assert_eq!(settings.serve.cpus, [0, 2, 3]);
    assert_eq!(settings.serve.memory_limit, Some(Bytes(512 << 20)));
    assert_eq!(settings.end, ServeEnd::Idle(Nanos::from_millis(500)));
    assert_eq!(
        settings.serve.service_time,
        RpcServiceTime::Bimodal {
            first: Nanos(10_000),
            probability: 0.99,
            second: Nanos(1_000_000),
        }
    );
    assert_eq!(
        settings.serve.poll,
        RpcPoll::Spin {
            for_ns: Nanos(50_000)
        }
    );
    let table = settings.serve.table.unwrap();
    assert!(!settings.serve.allows_masters && table.is_plain);
    assert_eq!(served("--exit-after 5").end, ServeEnd::Requests(5));
}

#[test]
fn variables_say_what_words_leave_open() {
    let site = [
        ("D_PROVIDER", "ofi+tcp"),
        ("CRT_PHY_ADDR_STR", "ofi+sockets"),
        ("D_INTERFACE", "ib0"),
        ("OFI_DOMAIN", "mlx5_0"),
        ("OFI_PORT", "31416"),
        ("CRT_CTX_NUM", "3"),
        ("D_PROGRESS_BUSY", "1"),
    ];
    let settings = served_with("", &site);
    assert_eq!(settings.serve.addresses, ["ofi+tcp://ib0:31416"]);
    assert_eq!(settings.serve.interface.as_deref(), Some("ib0"));
    assert_eq!(settings.serve.domain.as_deref(), Some("mlx5_0"));
    assert_eq!(
        (settings.serve.tags, settings.serve.poll),
        (3, RpcPoll::Busy)
    );
    let [note] = &settings.notes[..] else {
        panic!("{settings:?}");
    };
    for name in ["D_PROVIDER=", "OFI_PORT=", "CRT_CTX_NUM=", "D_INTERFACE="] {
        assert!(note.contains(name), "{note}");
    }
    assert!(!note.contains("CRT_PHY_ADDR_STR"), "{note}");
    // Words go before them.
    let words = "--transport tcp://127.0.0.1:7000 --tags 2 --poll block";
    let settings = served_with(words, &site);
    assert_eq!(settings.serve.addresses, ["tcp://127.0.0.1:7000"]);
    assert_eq!(
        (settings.serve.tags, settings.serve.poll),
        (2, RpcPoll::Block)
    );
    assert!(!settings.notes[0].contains("D_PROVIDER"));
    let by_memory = served_with("", &[("D_PROVIDER", "shm"), ("D_PORT", "1")]);
    assert_eq!(by_memory.serve.addresses, ["shm://"]);
    assert!(!by_memory.notes[0].contains("D_PORT"));
    for (name, value) in [
        ("D_PORT", "65536"),
        ("CRT_CTX_NUM", "129"),
        ("D_PROVIDER", "x"),
    ] {
        let variable = |of: &str| (of == name).then(|| value.to_owned());
        let refusal = read(&list("serve"), &variable).unwrap_err();
        let says = format!("the variable {name}={value}: ");
        assert!(
            refusal.code == 2 && refusal.message.contains(&says),
            "{refusal}"
        );
    }
}

#[test]
fn tables_are_where_words_or_else_variables_say_or_else_in_the_usual_places() {
    let site = [
        ("XDG_RUNTIME_DIR", "/run/user/7"),
        ("CRT_ATTACH_INFO_PATH", "/c"),
        ("WEIR_GROUP_DIR", "/w"),
    ];
    let paths = |settings: &ServeSettings| {
        let all = settings.directories.iter();
        all.map(|one| one.path.clone()).collect::<Vec<_>>()
    };
    let by_words = served_with("--path /d", &site);
    assert_eq!(paths(&by_words), ["/d"]);
    assert_eq!(by_words.notes, Vec::<String>::new());
    for (variables, path, name) in [
        (&site[..], "/w", "WEIR_GROUP_DIR="),
        (&site[..2], "/c", "CRT_ATTACH_INFO_PATH="),
    ] {
        let settings = served_with("", variables);
        assert_eq!(paths(&settings), [path]);
        assert!(settings.notes[0].contains(name), "{settings:?}");
    }
    let usual = served_with("", &site[..1]);
    assert_eq!(paths(&usual), ["/run/user/7/weir", "/run/weir", "/tmp"]);
    assert_eq!(usual.directories[0].variable, Some("XDG_RUNTIME_DIR"));
    assert_eq!(paths(&served("")), ["/run/weir", "/tmp"]);
}

#[test]
fn values_out_of_range_are_refused_by_name() {
    for (words, says) in [
        ("--group a/b", "--group a/b: a name has no '/'"),
        ("--ranks 1,3", "--ranks 1,3: it takes N or FIRST-LAST"),
        ("--group ..", "--group ..: a name has no `..`"),
        (
            "--layout daos,targets=16",
            "--layout daos,targets=16: it takes",
        ),
        (
            "--layout daos,targets=0,helpers=1",
            "targets: it takes a whole number from 1",
        ),
        (
            "--layout daos,targets=1,targets=2,helpers=1",
            "stands there twice",
        ),
        ("--tags 0", "--tags 0: it takes a whole number from 1"),
        (
            "--tags 3 --layout daos,targets=1,helpers=1",
            "--layout says it as well",
        ),
        ("--rank 0 --ranks 0-1", "--ranks says it as well"),
        ("--ranks 3-1", "--ranks 3-1: it takes N or FIRST-LAST"),
        ("--ranks 0-9999", "at most 4096 ranks"),
        ("--rank 4294967295", "--rank 4294967295"),
        ("--transport udp://x", "`udp://x`: it takes tcp, shm or"),
        ("--service-time const", "it takes const:US"),
        ("--service-time exp:-1", "it takes const:US"),
        ("--service-time bimodal:1,2,3", "between 0 and 1"),
        ("--exit-after x", "idle:SECONDS"),
        ("--max-msg 2g", "--max-msg 2g"),
        ("--cpus 0-2 --pollers 2", "--cpus 0-2: 3 CPUs for 2 pollers"),
        ("--poll spin:x", "whole microseconds"),
        (
            "--tls-cert c",
            "--tls-cert is not available: this build has no TLS",
        ),
        ("--bogus", "no option `--bogus`"),
        (
            "--group a --group b",
            "'--group <NAME>' cannot be used multiple",
        ),
    ] {
        let refusal = read(&list(&format!("serve {words}")), &|_| None).unwrap_err();
        assert_eq!(refusal.code, 2, "{words}");
        assert!(refusal.message.contains(says), "{words}: {refusal}");
    }
    for words in ["", "sever", "x"] {
        assert_eq!(
            read(&list(words), &|_| None).unwrap_err().code,
            2,
            "{words}"
        );
    }
}

#[test]
fn the_examples_of_the_page_are_good_words() {
    let Ok(Action::Print(page)) = read(&list("serve --help"), &|_| None) else {
        panic!("no page");
    };
    let examples: Vec<&str> = page
        .lines()
        .filter_map(|l| l.strip_prefix("    weir rpc "))
        .collect();
    assert!((3..=5).contains(&examples.len()), "{page}");
    for example in examples {
        assert!(
            matches!(read(&list(example), &|_| None), Ok(Action::Serve(_))),
            "{example}"
        );
    }
    let Ok(Action::Print(planned)) = read(&list("serve --tags 3 --rank 1 --dry-run"), &|_| None)
    else {
        panic!("it serves");
    };
    assert_eq!(
        planned,
        "group daos_server: rank 1, 3 tags each, at tcp://127.0.0.1:0\n"
    );
}
