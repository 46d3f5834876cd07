//! Names of Linux error numbers that storage and networks give, for results that may come from
//! another machine.

use weir_schema::ErrorCode;

/// Number, name, meaning.
const CODES: &[(i32, &str, &str)] = &[
    (1, "EPERM", "Operation not permitted"),
    (2, "ENOENT", "No such file or directory"),
    (4, "EINTR", "Interrupted system call"),
    (5, "EIO", "Input/output error"),
    (6, "ENXIO", "No such device or address"),
    (9, "EBADF", "Bad file descriptor"),
    (11, "EAGAIN", "Resource temporarily unavailable"),
    (12, "ENOMEM", "Cannot allocate memory"),
    (13, "EACCES", "Permission denied"),
    (14, "EFAULT", "Bad address"),
    (16, "EBUSY", "Device or resource busy"),
    (19, "ENODEV", "No such device"),
    (22, "EINVAL", "Invalid argument"),
    (27, "EFBIG", "File too large"),
    (28, "ENOSPC", "No space left on device"),
    (30, "EROFS", "Read-only file system"),
    (32, "EPIPE", "Broken pipe"),
    (61, "ENODATA", "No data available"),
    (62, "ETIME", "Timer expired"),
    (
        84,
        "EILSEQ",
        "Invalid or incomplete data: a checksum does not match",
    ),
    (95, "EOPNOTSUPP", "Operation not supported"),
    (104, "ECONNRESET", "Connection reset by peer"),
    (110, "ETIMEDOUT", "Connection timed out"),
    (117, "EUCLEAN", "Structure needs cleaning"),
    (121, "EREMOTEIO", "Remote I/O error"),
    (122, "EDQUOT", "Disk quota exceeded"),
    (125, "ECANCELED", "Operation canceled"),
];

fn find(code: i32) -> Option<&'static (i32, &'static str, &'static str)> {
    CODES.iter().find(|(number, _, _)| *number == code)
}

/// `EIO`, or `errno 999`; a code that has a name, by that.
pub(crate) fn name(code: &ErrorCode) -> String {
    match code {
        ErrorCode::Named(name) => name.clone(),
        ErrorCode::Errno(errno) => find(*errno).map_or_else(
            || format!("errno {errno}"),
            |(_, name, _)| (*name).to_owned(),
        ),
    }
}

/// What it means, if it is known.
pub(crate) fn meaning(code: &ErrorCode) -> Option<&'static str> {
    find(code.errno()?).map(|(_, _, meaning)| *meaning)
}
