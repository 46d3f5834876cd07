//! Error codes of OpenCL, in words.

use super::calls::Code;

/// No platform has such a device.
pub(super) const DEVICE_NOT_FOUND: Code = -1;
/// The loader knows no driver.
pub(super) const PLATFORM_NOT_FOUND: Code = -1001;

/// Error of OpenCL.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenClError {
    /// There is no library.
    #[error("no OpenCL library: {0}")]
    Library(String),
    /// The library refused.
    #[error("OpenCL cannot {what}: {}", name(*.code))]
    Call {
        /// A verb phrase.
        what: &'static str,
        /// The answer.
        code: Code,
    },
    /// A kernel file was not understood, in the compiler's words.
    #[error("OpenCL cannot build the kernel: {0}")]
    Build(String),
    /// Memory of the host.
    #[error("{0}")]
    Host(String),
}

/// For `map_err`, or where a code came back: 0 is good.
pub(super) fn good(what: &'static str, code: Code) -> Result<(), OpenClError> {
    if code == 0 {
        return Ok(());
    }
    Err(OpenClError::Call { what, code })
}

/// The standard's name of a code, for those that a measurement can meet.
fn name(code: Code) -> String {
    let known = match code {
        DEVICE_NOT_FOUND => "CL_DEVICE_NOT_FOUND",
        -2 => "CL_DEVICE_NOT_AVAILABLE",
        -3 => "CL_COMPILER_NOT_AVAILABLE",
        -4 => "CL_MEM_OBJECT_ALLOCATION_FAILURE",
        -5 => "CL_OUT_OF_RESOURCES",
        -6 => "CL_OUT_OF_HOST_MEMORY",
        -11 => "CL_BUILD_PROGRAM_FAILURE",
        -30 => "CL_INVALID_VALUE",
        -33 => "CL_INVALID_DEVICE",
        -34 => "CL_INVALID_CONTEXT",
        -36 => "CL_INVALID_COMMAND_QUEUE",
        -38 => "CL_INVALID_MEM_OBJECT",
        -42 => "CL_INVALID_BINARY",
        -44 => "CL_INVALID_PROGRAM",
        -45 => "CL_INVALID_PROGRAM_EXECUTABLE",
        -48 => "CL_INVALID_KERNEL",
        -52 => "CL_INVALID_KERNEL_ARGS",
        -54 => "CL_INVALID_WORK_GROUP_SIZE",
        -59 => "CL_INVALID_OPERATION",
        -61 => "CL_INVALID_BUFFER_SIZE",
        PLATFORM_NOT_FOUND => "CL_PLATFORM_NOT_FOUND_KHR",
        _ => return format!("error {code}"),
    };
    format!("{known} ({code})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_told_by_name_and_number() {
        let error = good("make a buffer", -61).unwrap_err();
        let text = "OpenCL cannot make a buffer: CL_INVALID_BUFFER_SIZE (-61)";
        assert_eq!(error.to_string(), text);
        assert!(
            good("x", -9999)
                .unwrap_err()
                .to_string()
                .ends_with("error -9999")
        );
        assert!(good("x", 0).is_ok());
    }
}
