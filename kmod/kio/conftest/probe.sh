#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# probe.sh HEADER DIR -- FLAGS...: compiles every DIR/*.c with $CC and FLAGS and writes a line
# "#define KIO_HAVE_<NAME> 1" into HEADER for each that is good. DIR/baseline.c must be good: else
# nothing could be told from the others, and the compiler's words are printed.
set -u
header=$1
dir=$2
shift 3
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

compile() {
    $CC "$@" -Werror -c "$dir/$name.c" -o "$work/$name.o" 2>"$work/$name.err" &&
        : >"$work/$name.good"
}

for file in "$dir"/*.c; do
    name=$(basename "$file" .c)
    compile "$@" &
done
wait
if ! test -e "$work/baseline.good"; then
    echo "kio: the kernel's headers do not compile:" >&2
    cat "$work/baseline.err" >&2
    exit 1
fi
{
    echo "/* Made by conftest/probe.sh. */"
    for file in "$dir"/*.c; do
        name=$(basename "$file" .c)
        if test "$name" != baseline && test -e "$work/$name.good"; then
            echo "#define KIO_HAVE_$(echo "$name" | tr '[:lower:]' '[:upper:]') 1"
        fi
    done
} >"$header"
