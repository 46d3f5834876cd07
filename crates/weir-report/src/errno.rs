//! Meanings of Linux error numbers that storage and networks give, for results that may come from
//! another machine.

use weir_schema::{ErrorCode, errno};

/// Number, meaning.
const MEANINGS: &[(i32, &str)] = &[
    (1, "Operation not permitted"),
    (2, "No such file or directory"),
    (4, "Interrupted system call"),
    (5, "Input/output error"),
    (6, "No such device or address"),
    (9, "Bad file descriptor"),
    (11, "Resource temporarily unavailable"),
    (12, "Cannot allocate memory"),
    (13, "Permission denied"),
    (14, "Bad address"),
    (16, "Device or resource busy"),
    (19, "No such device"),
    (22, "Invalid argument"),
    (27, "File too large"),
    (28, "No space left on device"),
    (30, "Read-only file system"),
    (32, "Broken pipe"),
    (61, "No data available"),
    (62, "Timer expired"),
    (84, "Invalid or incomplete data: a checksum does not match"),
    (95, "Operation not supported"),
    (104, "Connection reset by peer"),
    (110, "Connection timed out"),
    (117, "Structure needs cleaning"),
    (121, "Remote I/O error"),
    (122, "Disk quota exceeded"),
    (125, "Operation canceled"),
];

/// `EIO`, or `errno 999` where it is not known what it means; a code that has a name, by that.
pub(crate) fn name(code: &ErrorCode) -> String {
    match code {
        ErrorCode::Named(name) => name.clone(),
        ErrorCode::Errno(number) => {
            let known = meaning(code).and_then(|_| errno::name(*number));
            known.map_or_else(|| format!("errno {number}"), str::to_owned)
        }
    }
}

/// Meaning of the code, if it is known.
pub(crate) fn meaning(code: &ErrorCode) -> Option<&'static str> {
    let errno = code.errno()?;
    let found = MEANINGS.iter().find(|(number, _)| *number == errno);
    found.map(|(_, meaning)| *meaning)
}
