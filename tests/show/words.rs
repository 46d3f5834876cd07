//! The words of `weir show`: those that choose how a result is printed are taken, all others are
//! refused by name.

use crate::stage::{Stage, said};

/// A result of each door.
fn stored() -> Stage {
    let stage = Stage::new();
    stage.file("j.fio", "[a]\nioengine=null\nsize=64k\n");
    for words in [
        "run j.fio --store-result run.json",
        "fio j.fio --store-result fio.json",
        "Network_intel --comm-type shm --ranks 2 -n 2 -u 8 -l 8 -m 4 --store-result beff.json",
        "net lat-bw --comm-type shm --min-time 0.0001 --store-result net.json",
    ] {
        said(stage.called(&words.split(' ').collect::<Vec<_>>())).code(0);
    }
    stage
}

#[test]
fn words_without_a_meaning_for_a_stored_result_are_refused_by_name() {
    let stage = stored();
    let before = stage.list();
    for (words, name) in [
        ("run.json fio.json", "fio.json"),
        ("run.json zork", "zork"),
        ("run.json --raw zork", "zork"),
        ("run.json --store-result q.json", "--store-result"),
        ("run.json --output q.json", "--output"),
        ("run.json --show-plan", "--show-plan"),
        ("run.json --strict", "--strict"),
        ("run.json --as run --as fio", "--as"),
        ("run.json --as fio --eta never", "--eta"),
        ("fio.json zork", "zork"),
        ("fio.json --rw=write", "--rw"),
        ("fio.json --showcmd", "--showcmd"),
        ("fio.json --parse-only", "--parse-only"),
        ("fio.json --output=q", "--output"),
        ("beff.json --dump-json q3.json", "--dump-json"),
        ("beff.json --test", "--test"),
        ("beff.json -n 7", "-n"),
        ("net.json --show-plan", "--show-plan"),
        ("net.json --ranks 4", "--ranks"),
    ] {
        let words: Vec<_> = std::iter::once("show").chain(words.split(' ')).collect();
        let why = format!("`{name}` has no meaning for a stored result");
        stage.say(&words).code(2).silent().err(&why);
    }
    assert_eq!(stage.list(), before);
    let near = stage.say(&["show", "run.json", "--formt=json"]).code(2);
    near.err("did you mean `--format`?");
}

#[test]
fn words_that_cannot_act_are_refused_with_what_they_need() {
    let stage = stored();
    for (words, why) in [
        (
            "run.json --pretty",
            "--pretty acts only with `--format json`",
        ),
        (
            "run.json --format json --raw",
            "--raw acts only with `--format text`",
        ),
        (
            "fio.json --terse-version 4",
            "--terse-version acts only with",
        ),
        (
            "beff.json --json-compat hpcc-1.3",
            "--json-compat acts only with",
        ),
    ] {
        let words: Vec<_> = std::iter::once("show").chain(words.split(' ')).collect();
        stage.say(&words).code(2).silent().err(why);
    }
}

#[test]
fn words_that_choose_how_a_result_is_printed_are_taken() {
    let stage = stored();
    for (words, says) in [
        ("run.json --raw --percentiles 50,75", "p75"),
        ("run.json --format json --pretty", "\n  \"schema\""),
        ("fio.json --output-format json", "\"jobs\""),
        ("fio.json -output-format=terse", "3;weir"),
        ("run.json --as fio --minimal --terse-version=5", "5;weir"),
        ("beff.json --format=csv", "message_bytes,"),
        ("beff.json --line-rate 100G --quiet", "line rate"),
        (
            "net.json --voice peer --format json",
            "MaxPingPongLatency_usec\":",
        ),
        (
            "net.json --as net --format json",
            "MaxPingPongLatency_usec\":",
        ),
        ("net.json --as net", "MaxPingPongLatency_usec="),
    ] {
        let words: Vec<_> = std::iter::once("show").chain(words.split(' ')).collect();
        stage.say(&words).code(0).out(says);
    }
    let bad = stage.say(&["show", "fio.json", "--output-format=zork"]);
    bad.code(2).silent().err("zork");
}

#[test]
fn the_page_lists_the_words_of_each_door() {
    let stage = Stage::new();
    for words in [&["show", "--help"][..], &["show", "r.json", "--help"]] {
        let page = stage.say(words).code(0).calm();
        let page = page
            .out("run       --format")
            .out("fio       --output-format");
        page.out("beff      ").out("net       --voice");
    }
}
