#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
#
# usage: run-checks.sh [--driver nvidia|softgpu|/path/of/libcuda.so.1] [--questions-only | --bench]
#
# Runs what lies beside it on this machine's GPU: the kernel corpus against its host
# oracle, the integration tests and the examples through a private server, and the
# programs that put questions to the device, and a short form of the bench. One verdict
# line each; the last line is "N passed, N failed". --bench: the whole bench of shares,
# modes and limits instead, as README's table has it, in about three minutes. Nothing is
# installed and nothing outside a temporary folder is written.
set -u
here=$(cd "$(dirname "$0")" && pwd)
driver=nvidia
questions_only=
bench_only=
while [ $# -gt 0 ]; do
    case $1 in
    --driver) driver=${2:?--driver needs a value}; shift 2 ;;
    --questions-only) questions_only=1; shift ;;
    --bench) bench_only=1; shift ;;
    *) echo "usage: run-checks.sh [--driver nvidia|softgpu|/path] [--questions-only | --bench]" >&2; exit 2 ;;
    esac
done

case $driver in
softgpu) library=$here/lib/softgpu/libcuda.so.1 ;;
/*) library=$driver ;;
nvidia)
    library=$(ldconfig -p 2>/dev/null | sed -n 's/.*libcuda\.so\.1 .*x86-64.* => //p' | head -n 1)
    for path in /usr/lib/x86_64-linux-gnu/libcuda.so.1 /usr/lib64/libcuda.so.1 /usr/local/nvidia/lib64/libcuda.so.1; do
        [ -n "$library" ] || { [ -e $path ] && library=$path; }
    done
    [ -n "$library" ] || { echo "run-checks.sh: no libcuda.so.1 here: install NVIDIA's driver, or name it with --driver" >&2; exit 1; }
    driver=$library ;;
*) echo "run-checks.sh: --driver takes nvidia, softgpu or an absolute path, not '$driver'" >&2; exit 2 ;;
esac

work=$(mktemp -d)
server=
finish() {
    [ -z "$server" ] || kill "$server" 2>/dev/null
    [ -z "$server" ] || wait "$server" 2>/dev/null
    rm -rf "$work"
}
trap finish EXIT
export LD_LIBRARY_PATH="$here/lib/needed${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export BUILD="$here" TEST_DRIVER="$driver" TMPDIR="$work"
passed=0 failed=0

# check NAME SECONDS COMMAND...: one verdict line; exit status 77 is a skip, said aloud.
check() {
    name=$1 limit=$2
    shift 2
    begin=$(date +%s)
    timeout -k 5 "$limit" "$@" >"$work/output" 2>&1 </dev/null
    status=$?
    took=$(($(date +%s) - begin))
    if [ $status -eq 0 ]; then
        passed=$((passed + 1))
        echo "ok     $name ($took s): $(tail -n 1 "$work/output")"
    elif [ $status -eq 77 ]; then
        echo "skip   $name: $(tail -n 1 "$work/output")"
    else
        failed=$((failed + 1))
        echo "FAILED $name ($took s, exit status $status):"
        tail -n 25 "$work/output" | sed 's/^/       | /'
    fi
}

# Rows that run on any device: clients are processes, and their kernels say when and where they ran.
rows="threads_25_alone strict_share_error_points fair_busy_ratio fair_idle_split_error_points lease_5ms_loss \
    threads_30_70_error share_change_ms reclaim_ms_p99 priority_p99 memory_exact_bytes accounting_error"

echo "driver: $library"
if [ -n "$bench_only" ]; then
    # shellcheck disable=SC2086 # one word a row
    "$here/bench/bench" "$work/results.json" $rows
    exit
fi
for question in "$here"/gpu/question_*; do
    check "gpu/$(basename "$question")" 240 "$question" "$library"
done

if [ -z "$questions_only" ]; then
    check corpus 300 "$here/tests/corpus/corpus" --oracle "$here/tests/corpus/liboracle.so" \
        --ptx "$here/tests/corpus" --driver "$library"

    "$here/bin/gpushared" --driver "$driver" --socket "$work/gpushare.sock" --admin-socket "$work/admin.sock" >"$work/server.log" 2>&1 &
    server=$!
    export GPUSHARE_SOCKET="$work/gpushare.sock"
    tries=0
    until "$here/bin/gpushare" info >/dev/null 2>&1 || [ $tries -ge 300 ] || ! kill -0 $server 2>/dev/null; do
        tries=$((tries + 1))
        sleep 0.1
    done
    check gpushare-info 20 "$here/bin/gpushare" info
    check examples/vector-add 120 "$here/examples/vector-add"
    check examples/sgemm 120 "$here/examples/sgemm"
    check examples/histogram 120 "$here/examples/histogram" "$here/bin/gpushared" "$here/bin/gpushare"
    check examples/kmeans 120 "$here/examples/kmeans" -k 3 "$here/examples/data/iris.csv"
    check examples/nbody 120 "$here/examples/nbody"
    check examples/mandelbrot 120 "$here/examples/mandelbrot" -o "$work/out.png"
    unset GPUSHARE_SOCKET
    kill $server
    wait $server
    status=$?
    server=
    check "server's exit status ($status)" 5 test $status -eq 0
    # shellcheck disable=SC2086
    check bench 300 "$here/bench/bench" --short "$work/results.json" $rows
    for test in "$here"/tests/integration/test_*; do
        check "integration/$(basename "$test")" 180 "$test"
    done
fi
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
