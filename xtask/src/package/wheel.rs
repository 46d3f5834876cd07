//! The wheel: the program for those who install with pip, as a zip file.
//!
//! In: a release. Out: a `.whl` with the program among its scripts. Its tag names the oldest C library
//! that the program runs with. Wheels know no links: `weir NAME` is the door.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Result;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

use super::Release;
use super::deb::newest_symbols;

/// A file of the wheel.
struct Member {
    path: String,
    content: Vec<u8>,
    mode: u32,
}

pub(super) fn make(root: &Path, release: &Release) -> Result<PathBuf> {
    let tag = tag(&newest_symbols(&release.program)?);
    let version = &release.version;
    let members = members(
        version,
        &tag,
        fs::read(&release.program)?,
        &fs::read_to_string(root.join("README.md"))?,
    );
    let path = release.out.join(format!("weir-{version}-{tag}.whl"));
    pack(File::create(&path)?, members)?;
    Ok(path)
}

/// `py3-none-manylinux_2_34_x86_64`.
fn tag(libc: &str) -> String {
    let machine = std::env::consts::ARCH;
    format!("py3-none-manylinux_{}_{machine}", libc.replace('.', "_"))
}

/// The files, the list of them last.
fn members(version: &str, tag: &str, program: Vec<u8>, readme: &str) -> Vec<Member> {
    let info = format!("weir-{version}.dist-info");
    let metadata = format!(
        "Metadata-Version: 2.1\n\
         Name: weir\n\
         Version: {version}\n\
         Summary: Measures how fast data moves through storage and networks\n\
         License: MIT OR Apache-2.0\n\
         Requires-Python: >=3.7\n\
         Description-Content-Type: text/markdown\n\n{readme}"
    );
    let wheel =
        format!("Wheel-Version: 1.0\nGenerator: weir\nRoot-Is-Purelib: false\nTag: {tag}\n");
    let member = |path: String, content: Vec<u8>, mode| Member {
        path,
        content,
        mode,
    };
    let mut members = vec![
        member(format!("weir-{version}.data/scripts/weir"), program, 0o755),
        member(format!("{info}/METADATA"), metadata.into_bytes(), 0o644),
        member(format!("{info}/WHEEL"), wheel.into_bytes(), 0o644),
    ];
    let record = format!("{info}/RECORD");
    let line = |of: &Member| {
        let digest = URL_SAFE_NO_PAD.encode(Sha256::digest(&of.content));
        format!("{},sha256={digest},{}\n", of.path, of.content.len())
    };
    let lines: String = members.iter().map(line).collect();
    members.push(member(
        record.clone(),
        format!("{lines}{record},,\n").into_bytes(),
        0o644,
    ));
    members
}

fn pack(file: File, members: Vec<Member>) -> Result<()> {
    let mut zip = ZipWriter::new(file);
    for member in members {
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            // Of no file: the earliest that a zip file can say.
            .last_modified_time(DateTime::default())
            .unix_permissions(member.mode);
        zip.start_file(member.path, options)?;
        zip.write_all(&member.content)?;
    }
    zip.finish()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_in_the_record_with_its_digest_and_the_record_without() {
        let members = members("1.0.0", "py3-none-any", b"program".to_vec(), "read me");
        let (record, files) = members.split_last().unwrap();
        assert_eq!(record.path, "weir-1.0.0.dist-info/RECORD");
        let text = String::from_utf8(record.content.clone()).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), files.len() + 1);
        assert_eq!(
            lines[0],
            "weir-1.0.0.data/scripts/weir,sha256=ExDKLIky29EYZovZdEJVij4fVGteFcaWmd-9YCT1SNg,7"
        );
        assert_eq!(lines[3], "weir-1.0.0.dist-info/RECORD,,");
        assert_eq!(files[0].mode, 0o755);
    }

    #[test]
    fn the_tag_names_the_oldest_c_library() {
        let machine = std::env::consts::ARCH;
        assert_eq!(tag("2.34"), format!("py3-none-manylinux_2_34_{machine}"));
    }
}
