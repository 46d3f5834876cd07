//! Slow tests: results of an installed fio.

use super::{Json, Stage, has, skip};

#[test]
fn what_fio_prints_here_and_now_is_imported() {
    let stage = Stage::new();
    if !has("fio") {
        return skip(
            "what_fio_prints_here_and_now_is_imported",
            "fio is not installed",
        );
    }
    let file = stage.path("data");
    let run = |format: &str| {
        let mut fio = stage.command("fio");
        let target = format!("--filename={file}");
        let words = [
            "--name=a",
            "--rw=randrw",
            "--size=1m",
            "--bs=4k",
            "--ioengine=psync",
        ];
        fio.args(words)
            .arg(target)
            .arg(format!("--output-format={format}"));
        String::from_utf8(fio.output().unwrap().stdout).unwrap()
    };
    for format in ["json", "json+", "normal,json"] {
        let text = run(format);
        stage.file("fio.out", &text);
        let imported = stage.say(&["import", "fio.out"]).code(0).calm();
        let result: Json = serde_json::from_str(&imported.out).unwrap();
        let document = &text[text.find("\n{").map_or(0, |at| at + 1)..];
        let mut documents = serde_json::Deserializer::from_str(document).into_iter::<Json>();
        let fio = documents.next().unwrap().unwrap();
        let read = &fio["jobs"][0]["read"];
        let job = &result["groups"][0]["jobs"][0];
        let kind = &job["outcome"]["workers"][0]["kinds"][0];
        assert_eq!(kind["operations"], read["total_ios"], "{format}");
        assert_eq!(kind["bytes"], read["io_bytes"], "{format}");
    }
}
