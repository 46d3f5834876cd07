//! Libraries that are loaded before the C library and take its functions over: the synchronous
//! engines call these functions, one for each operation.

use super::stage::{Stage, has, peer, said, skip};

/// Counts the calls on the file `f` and writes the counts down at the end.
const SHIM: &str = r#"
    #define _GNU_SOURCE
    #include <dlfcn.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <string.h>
    #include <sys/types.h>
    #include <sys/uio.h>
    #include <unistd.h>

    static int is_target(int fd) {
        char link[64], path[4096];
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        ssize_t length = readlink(link, path, sizeof path);
        return length > 2 && !memcmp(path + length - 2, "/f", 2);
    }

    #define COUNTED(result, name, parameters, arguments) \
        static unsigned long count_##name; \
        result name parameters { \
            result (*next) parameters = dlsym(RTLD_NEXT, #name); \
            if (is_target(fd)) \
                __atomic_fetch_add(&count_##name, 1, __ATOMIC_RELAXED); \
            return next arguments; \
        }

    COUNTED(off_t, lseek, (int fd, off_t at, int whence), (fd, at, whence))
    COUNTED(ssize_t, read, (int fd, void *m, size_t n), (fd, m, n))
    COUNTED(ssize_t, write, (int fd, const void *m, size_t n), (fd, m, n))
    COUNTED(ssize_t, readv, (int fd, const struct iovec *v, int n), (fd, v, n))
    COUNTED(ssize_t, writev, (int fd, const struct iovec *v, int n), (fd, v, n))
    COUNTED(ssize_t, pread, (int fd, void *m, size_t n, off_t at), (fd, m, n, at))
    COUNTED(ssize_t, pwrite, (int fd, const void *m, size_t n, off_t at), (fd, m, n, at))
    COUNTED(ssize_t, preadv, (int fd, const struct iovec *v, int n, off_t at), (fd, v, n, at))
    COUNTED(ssize_t, pwritev, (int fd, const struct iovec *v, int n, off_t at), (fd, v, n, at))
    COUNTED(ssize_t, preadv2, (int fd, const struct iovec *v, int n, off_t at, int f),
            (fd, v, n, at, f))
    COUNTED(ssize_t, pwritev2, (int fd, const struct iovec *v, int n, off_t at, int f),
            (fd, v, n, at, f))
    COUNTED(int, fsync, (int fd), (fd))
    COUNTED(int, fdatasync, (int fd), (fd))

    __attribute__((destructor)) static void tell(void) {
        FILE *out = fopen("counts", "w");
        #define TELL(name) if (count_##name) fprintf(out, "%s %lu\n", #name, count_##name);
        TELL(lseek) TELL(read) TELL(write) TELL(readv) TELL(writev) TELL(pread) TELL(pwrite)
        TELL(preadv) TELL(pwritev) TELL(preadv2) TELL(pwritev2) TELL(fsync) TELL(fdatasync)
        fclose(out);
    }
"#;

#[test]
fn a_preloaded_library_sees_each_operation_of_the_synchronous_engines() {
    let name = "a_preloaded_library_sees_each_operation_of_the_synchronous_engines";
    if !has("cc") {
        return skip(name, "no C compiler");
    }
    let stage = Stage::new();
    stage.file("shim.c", SHIM);
    let mut cc = stage.command("cc");
    cc.args(["-shared", "-fPIC", "-O", "-o", "shim.so", "shim.c", "-ldl"]);
    said(cc).code(0);
    stage.file("f", vec![1_u8; 65_536]);
    let counts = |words: &[&str]| {
        let mut weir = stage.command(peer("fio"));
        weir.env("LD_PRELOAD", stage.path("shim.so"));
        weir.args(["--name=a", "--filename=f", "--size=64k", "--bs=4k"]);
        weir.args(["--overwrite=1", "--output=report"]).args(words);
        said(weir).code(0);
        stage.read("counts")
    };
    for (engine, read, write) in [
        ("psync", "pread 16\n", "pwrite 16\n"),
        ("pvsync", "preadv 16\n", "pwritev 16\n"),
        ("pvsync2", "preadv2 16\n", "pwritev2 16\n"),
        ("sync", "read 16\n", "write 16\n"),
        ("vsync", "readv 16\n", "writev 16\n"),
    ] {
        let engine = format!("--ioengine={engine}");
        assert_eq!(counts(&[&engine, "--rw=read"]), read, "{engine}");
        assert_eq!(counts(&[&engine, "--rw=write"]), write, "{engine}");
    }
    let seeks = counts(&["--ioengine=sync", "--rw=randread"]);
    assert!(
        seeks.starts_with("lseek ") && seeks.ends_with("\nread 16\n"),
        "{seeks}"
    );
    // None after the last write.
    let flushes = ["--ioengine=psync", "--rw=write", "--fsync=4"];
    assert_eq!(counts(&flushes), "pwrite 16\nfsync 3\n");
    let flushes = ["--ioengine=psync", "--rw=write", "--fdatasync=8"];
    assert_eq!(counts(&flushes), "pwrite 16\nfdatasync 1\n");
}
