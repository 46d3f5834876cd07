#!/bin/sh
# Writes reports/report.rpt beside this script, by `weir monitor`.
#
# Variables: dur, seconds of the measurement; pid, a process in place of the whole machine; WEIR, the
# program where it is not on the PATH. Variables that chose between metrics (cpu_util, pcm_pcie, pcm_mem,
# llc, pcm_iio, iio_occ, pfc, intf, type, cores) have no effect: all that this machine counts is
# measured at once, and what it does not count stands in the report with its reason.

set -eu

dur=${dur:-3}
pid=${pid:-}
weir=${WEIR:-weir}

usage() {
    echo "usage: [dur=SECONDS] [pid=P] $0 [-d SECONDS | --dur SECONDS]"
}

while [ $# -gt 0 ]; do
    case $1 in
    -d | --dur)
        [ $# -gt 1 ] || { usage >&2; exit 2; }
        dur=$2
        shift 2
        ;;
    -h | --help)
        usage
        exit 0
        ;;
    *)
        echo "$0: no option $1; all metrics are measured at once" >&2
        usage >&2
        exit 2
        ;;
    esac
done

reports=$(dirname "$0")/reports
mkdir -p "$reports"
exec "$weir" monitor --duration "$dur" ${pid:+--pid "$pid"} --output "$reports/report.rpt"
