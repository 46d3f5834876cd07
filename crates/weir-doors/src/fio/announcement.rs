//! Messages while jobs are made ready.
//!
//! In: an announcement of the run. Out: its line. Not here: where it goes.

use weir_schema::Announcement;

/// The words of an announcement, without the end of the line.
pub fn announcement(announcement: &Announcement) -> String {
    match announcement {
        Announcement::LayingOut { job, files, bytes } => {
            let (plural, total) = if *files > 1 {
                ("s", "total ")
            } else {
                ("", "")
            };
            let mib = bytes.0 >> 20;
            format!("{job}: Laying out IO file{plural} ({files} file{plural} / {total}{mib}MiB)")
        }
        Announcement::ShortFile {
            target,
            length,
            used,
            asked,
        } => format!(
            "note: {target} has {} bytes: {} of the {} bytes asked for are read (a file never \
             grows for a read job)",
            length.0, used.0, asked.0
        ),
        Announcement::Listening { address } => {
            format!("note: the server waits for its client at {address}")
        }
        Announcement::Stranger {
            address,
            awaited,
            why,
        } => format!("note: {address} is no {awaited}: {why}"),
    }
}

#[cfg(test)]
mod tests {
    use weir_units::Bytes;

    use super::*;

    #[test]
    fn one_file_has_a_size_and_several_a_total() {
        let said = |files| {
            announcement(&Announcement::LayingOut {
                job: "a".to_owned(),
                files,
                bytes: Bytes(3 << 20),
            })
        };
        assert_eq!(said(1), "a: Laying out IO file (1 file / 3MiB)");
        assert_eq!(said(2), "a: Laying out IO files (2 files / total 3MiB)");
    }
}
