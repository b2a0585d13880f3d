#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
#
# usage: run-checks.sh [--driver nvidia|softgpu|/path/of/libcuda.so.1] [--questions-only]
#
# Runs what lies beside it on this machine's GPU: the kernel corpus against its host
# oracle, the integration tests and the examples through a private server, and the
# programs that put questions to the device. One verdict line each; the last line is
# "N passed, N failed". Nothing is installed and nothing outside a temporary folder
# is written.
set -u
here=$(cd "$(dirname "$0")" && pwd)
driver=nvidia
questions_only=
while [ $# -gt 0 ]; do
    case $1 in
    --driver) driver=${2:?--driver needs a value}; shift 2 ;;
    --questions-only) questions_only=1; shift ;;
    *) echo "usage: run-checks.sh [--driver nvidia|softgpu|/path] [--questions-only]" >&2; exit 2 ;;
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

echo "driver: $library"
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
    for test in "$here"/tests/integration/test_*; do
        check "integration/$(basename "$test")" 180 "$test"
    done
fi
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
