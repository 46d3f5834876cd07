//! Options about files, devices and the part of them that a job uses.

use weir_schema::{Preallocate, Size};
use weir_units::Bytes;

use super::needs;
use super::record::{OptionRecord, option};
use super::small;
use crate::diagnostic::Fault;
use crate::value::{list, number::NumberScale};

/// Longest name that a path or a pattern of names may have.
const MAX_PATH: usize = 4095;

fn paths(text: &str, what: &str) -> Result<Vec<String>, Fault> {
    let names = list::names(text);
    if names.is_empty() {
        return Err(Fault::value(format!("`{what}` names nothing")).label("expected a path"));
    }
    match names.iter().find(|n| n.len() > MAX_PATH) {
        Some(name) => Err(Fault::range(format!("a path of {} bytes", name.len()))),
        None => Ok(names),
    }
}

pub(super) static RECORDS: &[OptionRecord] = &[
    option("description", "Free text for the report").text(|d, v, _| {
        d.description = Some(v.to_owned());
        Ok(())
    }),
    option("name", "Displayed name of the job")
        .long("Replaces the section's name; wait_for uses it too, generated file names do not.")
        .text(|d, v, _| {
            v.clone_into(&mut d.name);
            Ok(())
        }),
    option("filename", "Files or devices to use")
        .long("Paths separated by `:`; `\\:` is a colon. Without it names are made by filename_format.")
        .text(|d, v, _| {
            d.filenames = paths(v, "filename")?;
            Ok(())
        }),
    option("directory", "Directory of the files")
        .long("Several separated by `:` are used in turn by the clones. An absolute `filename` lies below it too.")
        .text(|d, v, _| {
            d.directories = paths(v, "directory")?;
            Ok(())
        }),
    option("filename_format", "How generated file names are made")
        .needs(needs::OWN_FILES)
        .default("$jobname.$jobnum.$filenum")
        .text(|d, v, _| {
            v.clone_into(&mut d.filename_format);
            Ok(())
        }),
    option("nrfiles", "Files per job")
        .needs(needs::OWN_FILES)
        .aliases(&["nr_files"])
        .default("1")
        .long("The size is split evenly over them unless filesize is given.")
        .integer(1, 1 << 20, |d, n| d.file_count = small(n)),
    option("size", "Bytes of the region that a job uses")
        .long("Over all files of the job, or a share of the file or device in percent.")
        .size(1, |d, s| d.region.size = Some(s)),
    option("io_size", "Bytes to transfer")
        .aliases(&["io_limit"])
        .long("More than `size` starts over in the region; `loops` multiply it, in whole passes where it is more than `size`. Default is `size`.")
        .size(0, |d, s| d.passes.io_size = Some(s).filter(|s| *s != Size::Bytes(Bytes(0)))),
    option("filesize", "Size of each file")
        .long("Limits the region; the size of missing files and of character devices. `a-b` draws sizes between both.")
        .text(|d, v, _| {
            let (min, max) = list::range(v, NumberScale::Count { kb_base: d.kb_base })?;
            if min == 0 {
                return Err(Fault::range("`filesize=0` is below 1")
                    .peer("filesize: min value out of range: 0 (1 min)"));
            }
            d.region.file_size_bytes = Some((Bytes(min), Bytes(max)));
            Ok(())
        }),
    option("offset", "Start of the region in each file")
        .aliases(&["fileoffset"])
        .default("0")
        .long("In bytes, or in percent rounded down to offset_align (or the block size).")
        .size(0, |d, s| d.region.offset = Some(s).filter(|s| *s != Size::Bytes(Bytes(0)))),
    option("offset_increment", "Added to the start for each further clone")
        .needs(needs::CLONES)
        .default("0")
        .size(0, |d, s| d.region.offset_step = Some(s).filter(|s| *s != Size::Bytes(Bytes(0)))),
    option("offset_align", "Rounding of a start in percent")
        .needs(needs::PERCENT_OFFSET)
        .default("0")
        .integer(0, u64::MAX, |d, n| {
            d.region.offset_align_bytes = Some(Bytes(n)).filter(|b| b.0 > 0);
        }),
    option("number_ios", "Stop after so many operations")
        .default("0")
        .long("In each of `loops`; ignored with time_based.")
        .integer(0, u64::MAX, |d, n| d.bounds.operations = Some(n).filter(|n| *n > 0)),
    option("fill_device", "Write until the device or file system is full")
        .aliases(&["fill_fs"])
        .bool(|d, on| d.passes.until_full = on),
    option("allow_file_create", "Missing files may be made")
        .long("Default: yes, except below /dev, where a mistyped device must not become a file.")
        .bool(|d, on| d.create.allow = Some(on))
        .default("1"),
    option("allow_mounted_write", "Writing to a mounted device is allowed")
        .bool(|d, on| d.allow_mounted_write = on),
    option("overwrite", "Lay files out anew before the run").bool(|d, on| d.create.overwrite = on),
    option("fallocate", "How space is reserved before a write job").default("native").words(
        &[
            ("none", "Do not pre-allocate space"),
            ("native", "Use native pre-allocation if possible"),
            ("posix", "Use posix_fallocate()"),
            ("keep", "Use fallocate(..., FALLOC_FL_KEEP_SIZE, ...)"),
            ("truncate", "Truncate file to final size instead of allocating"),
            ("0", "Alias for 'none'"),
            ("1", "Alias for 'posix'"),
        ],
        |d, word| {
            d.create.preallocate = match word {
                "none" | "0" => Preallocate::None,
                "posix" | "1" => Preallocate::Posix,
                "keep" => Preallocate::KeepSize,
                "truncate" => Preallocate::Truncate,
                _ => Preallocate::Native,
            };
        },
    ),
    option("create_fsync", "fsync after the layout")
        .bool(|d, on| d.create.sync = on)
        .default("1"),
    option("create_on_open", "Make files when they are opened, not before")
        .bool(|d, on| d.create.on_open = on),
    option("create_only", "Lay files out and stop").bool(|d, on| d.create.only = on),
    option("pre_read", "Read the region through first")
        .long("Cancels `invalidate`.")
        .bool(|d, on| d.open.read_first = on),
    option("invalidate", "Drop the page cache of the region before each pass")
        .bool(|d, on| d.open.drop_cache = on)
        .default("1"),
    option("unlink", "Remove the job's own files afterwards").bool(|d, on| d.remove_after = on),
];
