//! Words of `weir obj`.

use weir_schema::ObjectDurability;
use weir_units::Bytes;

use super::*;

fn of(text: &str) -> Result<Action, Refusal> {
    let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    read(&words, &|_| None)
}

fn served(text: &str) -> ServeSettings {
    match of(text) {
        Ok(Action::Serve(settings)) => *settings,
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn a_server_has_a_pool_and_addresses() {
    let plain = served("serve");
    assert_eq!((plain.directory, plain.targets), (None, None));
    assert_eq!(plain.pool_bytes, Bytes(2 << 30));
    assert_eq!(plain.rpc.serve.addresses, ["tcp://127.0.0.1:0"]);
    assert_eq!((plain.rpc.serve.tags, plain.rpc.serve.table), (1, None));
    assert!(!plain.rpc.serve.allows_masters);
    let uuid = "3AD5B1C6-0c22-4f1c-8f51-2b7a5a1b6c1d";
    let full = served(&format!(
        "serve -D d --targets 2 --pool {uuid} --durability power --csum none \
         --listen tcp://0.0.0.0:7000,shm:// --token-file t --exit-after idle:60 --ready-fd 3"
    ));
    assert_eq!(full.directory, Some(PathBuf::from("d")));
    assert_eq!((full.targets, full.rpc.serve.tags), (Some(2), 2));
    assert_eq!(full.pool, Some(uuid.to_ascii_lowercase()));
    assert_eq!(full.durability, Some(ObjectDurability::Power));
    assert_eq!(full.sums, Sums::None);
    assert_eq!(full.rpc.serve.addresses, ["tcp://0.0.0.0:7000", "shm://"]);
    assert_eq!(full.rpc.ready_descriptor, Some(3));
}

#[test]
fn a_pool_that_exists_is_named_by_its_path() {
    for (word, task) in [
        ("info", PoolTask::Info),
        ("check", PoolTask::Check),
        ("aggregate", PoolTask::Aggregate),
    ] {
        let Ok(Action::Pool(call)) = of(&format!("{word} d/obj0 --format json")) else {
            panic!("{word}");
        };
        let path = PathBuf::from("d/obj0");
        let json = true;
        assert_eq!(call, PoolCall { task, path, json });
    }
}

#[test]
fn words_that_mean_nothing_are_refused() {
    for (text, why) in [
        ("", "`weir obj` needs a word: serve, info, check, aggregate"),
        ("inof f", "did you mean `weir obj info`?"),
        ("info", "FILE is missing"),
        ("info a b", "stray word `b`"),
        ("serve --targets 0", "--targets 0: it takes a whole number"),
        ("serve --pool x --dir d", "--pool x: it takes a UUID"),
        (
            "serve --pool 3ad5b1c6-0c22-4f1c-8f51-2b7a5a1b6c1d",
            "--pool acts only with `--dir`",
        ),
        ("serve --dir d --durability none", "leave one of both out"),
        ("serve --listen here", "--listen here: "),
        ("serve --engine disk", "--engine disk: it takes one of mem"),
        ("check f --targets 2", "no option `--targets`"),
    ] {
        let refusal = of(text).unwrap_err();
        assert!(refusal.message.contains(why), "{text}: {refusal}");
        assert_eq!(refusal.code, 2);
    }
}

#[test]
fn pages_have_examples_that_are_good() {
    let mut pages = vec!["--help".to_owned()];
    pages.extend(VERBS.iter().map(|verb| format!("{} --help", verb.name)));
    for asked in pages {
        let Ok(Action::Print(page)) = of(&asked) else {
            panic!("{asked}");
        };
        let examples = page
            .lines()
            .filter_map(|line| line.strip_prefix("    weir obj "));
        let examples: Vec<&str> = examples.collect();
        assert!((3..=5).contains(&examples.len()), "{page}");
        for example in examples {
            assert!(of(example).is_ok(), "{example}: {:?}", of(example));
        }
    }
}
