#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
# The demo does what README says: it runs six clients and a seventh, of which two fail on purpose, then two beside a
# neighbour whose kernels fault and under a server that is replaced, and leaves nothing.
set -eu
# The demo makes its folder where every user's demo does; count what is there before and after.
export TMPDIR="$TMPDIR/demo"
mkdir "$TMPDIR"
# With a sanitizer, and others on the machine, it may take as long as a test may.
status=0
examples/demo.py --build "$BUILD" --seconds "${TEST_LIMIT:-180}" >"$TMPDIR.out" || status=$?
cat "$TMPDIR.out"
[ "$status" -eq 0 ] || exit "$status"
for line in '^vector-add +[0-9]+ sums verified' '^sgemm .*verified' '^kmeans .*verified' '^mandelbrot .*verified' \
    '^greedy +refused: out of memory' '^doomed +killed after round' 'steps of .* days verified' \
    '^  stray-1: illegal_address, fault [12], by stray<<<' '^  stray-3: illegal_address' \
    '^  server [0-9]+ handed over to server [0-9]+, which served after [0-9]+ ms; worker [0-9]+ ran on' \
    '^  resilient-1: [0-9]+ steps verified, [0-9]+ times interrupted' '^  resilient-2: [0-9]+ steps verified' \
    '^Everything was verified'; do
    grep -qE "$line" "$TMPDIR.out" || { echo "the demo did not print: $line"; exit 1; }
done
# Where the object of a CUDA program is for this machine's processor, and the build has no sanitizer.
if [ -x "$BUILD/examples/unmodified/heat" ]; then
    for line in '^  heat-3: step 200 of 400: cudaErrorIllegalAddress$' '^  heat-1: 400 steps on [0-9]+ multiprocessors, 512 MiB: verified$' \
        '^  heat-2: 400 steps on [0-9]+ multiprocessors, 256 MiB: verified$'; do
        grep -qE "$line" "$TMPDIR.out" || { echo "the demo did not print: $line"; exit 1; }
    done
fi
if [ -e "$BUILD/examples/unmodified/heat.py" ]; then
    for line in '^  heat.py-3: step 20 of 40: CUDA_ERROR_ILLEGAL_ADDRESS$' '^  heat.py-1: 40 steps on [0-9]+ multiprocessors, 512 MiB: verified$' \
        '^  heat.py-2: 40 steps on [0-9]+ multiprocessors, 256 MiB: verified$'; do
        grep -qE "$line" "$TMPDIR.out" || { echo "the demo did not print: $line"; exit 1; }
    done
fi
# The limits of each of the six, asked and granted, and what it used.
for row in '^vector-add .* 25 % / [0-9]+ SMs +[0-9]+ / 64 +[0-9.]+ +[1-9][0-9]*$' \
    '^sgemm .* 50 % / [0-9]+ SMs +[0-9]+ / 256 +[0-9.]+ +[1-9][0-9]*$' \
    '^kmeans .* 10 % / [0-9]+ SMs +[0-9]+ / 32 +[0-9.]+ +[1-9][0-9]*$' \
    '^mandelbrot .* - / [0-9]+ SMs +[0-9]+ / 128 +[0-9.]+ +[1-9][0-9]*$' \
    '^doomed .* 30 % / [0-9]+ SMs +[0-9]+ / 64 +[0-9.]+ +[1-9][0-9]*$'; do
    grep -qE "$row" "$TMPDIR.out" || { echo "no row of the table is like: $row"; exit 1; }
done
[ -z "$(ls -A "$TMPDIR")" ] || { echo "left behind:"; ls -A "$TMPDIR"; exit 1; }

# If one client misbehaves, the demo fails and names it. Scripts stand in for the clients, for speed: the
# demo judges clients by their output and exit status alone.
mkdir "$TMPDIR.stand-in" "$TMPDIR.stand-in/examples"
ln -s "$BUILD/bin" "$BUILD/lib" "$BUILD/libexec" "$TMPDIR.stand-in"
cat >"$TMPDIR.stand-in/examples/any" <<'END'
#!/bin/sh
"${0%/*}/../bin/gpushare" info >/dev/null || exit 1
case $GPUSHARE_CLIENT_NAME/$LIAR in
greedy/greedy | doomed/doomed) echo "$GPUSHARE_CLIENT_NAME: verified" ;;
greedy/*) echo "out_of_memory" && exit 1 ;;
doomed/*) echo "round 8 of 16" && exec sleep 60 ;;
stray-*/*)
    if [ "$LIAR" = "$GPUSHARE_CLIENT_NAME" ]; then echo "the kernel did not fault" && exit 1; fi
    echo "stray: illegal_address after 1: it (unfinished: stray<<<1>>>): lost" ;;
resilient-*/*)
    trap 'told=1' TERM
    round=0
    while [ -z "${told:-}" ]; do round=$((round + 1)) && echo "round $round of 1000000" && sleep 0.05; done
    if [ "$LIAR" = "$GPUSHARE_CLIENT_NAME" ]; then echo "element 0 is 1, not 2" && exit 1; fi
    echo "$GPUSHARE_CLIENT_NAME: verified" ;;
"$LIAR"/*) echo "row 0 is 1, not 2" ;;
*) echo "$GPUSHARE_CLIENT_NAME: verified" ;;
esac
END
chmod +x "$TMPDIR.stand-in/examples/any"
for example in vector-add sgemm kmeans mandelbrot nbody resilient stray; do
    ln -s any "$TMPDIR.stand-in/examples/$example"
done
for liar in nobody vector-add sgemm kmeans mandelbrot greedy doomed seventh resilient-2 stray-1; do
    status=0
    LIAR=$liar examples/demo.py --build "$TMPDIR.stand-in" >"$TMPDIR.out" || status=$?
    case $liar/$status in
    nobody/0) said='^Everything was verified' ;;
    nobody/* | */0) said='neither status is right' ;;
    *) said='^The demo FAILED' ;;
    esac
    grep -q "$said" "$TMPDIR.out" || { cat "$TMPDIR.out"; echo "exit status $status with a false $liar"; exit 1; }
    [ -z "$(ls -A "$TMPDIR")" ] || { echo "left behind:"; ls -A "$TMPDIR"; exit 1; }
done
