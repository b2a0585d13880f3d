#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
# long: a minute of proofs, where a model has changed
#
# The models, checked exhaustively by spin: as they are they hold; with any one
# fence or step removed they fail, or they would prove nothing. The functions that
# they mirror must still exist under those names.
#
# A proof takes a minute and holds until a model or this script changes. Their hash at the last proof is in
# tests/model/proved, beside them; `make models` proves them anew, whatever it says, and notes it there.
set -u
cd "$(dirname "$0")" || exit 1
root=$(cd ../.. && pwd)
work=${TMPDIR:?}/models
mkdir -p "$work" && cp ./*.pml "$work" || exit 1
for tool in spin gcc; do
    command -v $tool >/dev/null || { echo "$tool is not installed; run: make deps"; exit 1; }
done
failures=0
proved=$root/tests/model/proved
# Without comments: a function that is mirrored may get another name.
content=$(python3 -c '
import glob, hashlib, re
texts = [re.sub(r"/\*.*?\*/|\s+", " ", open(path, encoding="utf-8").read(), flags=re.S) for path in sorted(glob.glob("*.pml"))]
print(hashlib.sha256("".join(texts).encode() + open("test_models.sh", "rb").read()).hexdigest())')

# check holds|fails MODEL OPTIONS...
check() {
    local expected=$1 model=$2 found states optimise=-O0 start=${EPOCHREALTIME/./}
    shift 2
    # A failure is found at once; a proof is worth a slower compilation.
    [ "$expected" = holds ] && optimise=-O2
    (
        cd "$work" && rm -f pan* && spin -a "${@/#/-D}" "$model.pml" >spin.log 2>&1 &&
            gcc $optimise -w -DSAFETY -DMEMLIM=2500 -o pan pan.c >gcc.log 2>&1
    ) || {
        cat "$work"/*.log
        echo "FAILED $model $*: does not compile"
        failures=$((failures + 1))
        return
    }
    # -E: each model says itself, in watch(), what must hold when nothing moves any more.
    (cd "$work" && ./pan -E -m1000000 -w22) >"$work/pan.log" 2>&1
    states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' "$work/pan.log")
    # A search that was cut short (depth, memory) has proved nothing either way.
    found=unfinished
    if grep -q 'errors: [1-9]' "$work/pan.log" && grep -q 'assertion violated' "$work/pan.log"; then
        found=fails
    elif grep -q 'errors: 0' "$work/pan.log" &&
        ! grep -q 'not completed\|max search depth too small\|out of memory' "$work/pan.log"; then
        found=holds
    fi
    printf '%-10s %-44s %-6s %10s states %5d ms\n' "$model" "$*" "$found" "$states" \
        $(((${EPOCHREALTIME/./} - start) / 1000))
    if [ "$found" != "$expected" ]; then
        echo "FAILED $model $*: expected that it $expected"
        cat "$work/pan.log"
        (cd "$work" && [ -f "$model.pml.trail" ] && spin -t -p -g "${@/#/-D}" "$model.pml" | tail -60)
        failures=$((failures + 1))
    fi
}

check_all() {
    check holds doorbell
    check holds doorbell LEVEL2=2
    check holds doorbell CLIENTS=2 PUSHES=2
    check holds doorbell DYING PUSHES=2 ENTRIES=1
    check holds doorbell CLIENTS=2 DYING PUSHES=2 ENTRIES=1
    for removed in NO_FENCE_TAIL NO_FENCE_HEAD NO_FENCE_ASLEEP NO_FENCE_PUBLISH NO_FENCE_LEVELS \
        NO_FENCE_BITS NO_RELOAD NO_LOOK; do
        check fails doorbell $removed
    done
    check fails doorbell DYING NO_DETACH
    check fails doorbell CLIENTS=2 DYING NO_DETACH

    check holds waiter WAITS=1
    check holds waiter ONE
    check holds waiter ONE DYING WAITS=1
    for removed in NO_FENCE_ANNOUNCE NO_FENCE_SHADOW NO_FENCE_REST NO_LOOK NO_WAKE_AGAIN NO_FENCE_SLEEP \
        NO_FENCE_TAKE; do
        check fails waiter $removed
    done
    check fails waiter DYING NO_BOUND
    check fails waiter DYING NO_FAULT

    check holds room
    check holds room DYING
    check fails room NO_FENCE_WAITER
    check fails room NO_FENCE_HEAD
    check fails room DYING NO_BOUND

    check holds free
    check holds free DYING
    for removed in NO_LOCK NO_FENCE_PUBLISH NO_LOOKUP NO_COVERS NO_OTHERS NO_WAIT; do
        check fails free $removed
    done
    check fails free DYING NO_STOP
    check fails free DYING NO_DROP

    check holds journal
    check holds journal PUSHES=4 CRASHES=1
    check holds journal PUSHES=2 CRASHES=3
    check holds journal DYING
    for removed in NO_NOTE NO_LOSS NO_MARK NO_BARRIER NO_MIN NO_DROP NO_SHOW; do
        check fails journal $removed
    done

    check holds handover
    check holds handover CLIENTS=2 DEATHS=1
    check holds handover DEATHS=1 ENDS=2
    for removed in NO_PIPE NO_REAP NO_HOLD NO_STEPS NO_RECORD NO_ANEW NO_LEAVE; do
        check fails handover $removed
    done
    for removed in NO_STORE NO_KEEP NO_WHOLE NO_RESUME NO_UNDO; do
        check fails handover ENDS=1 $removed
    done

    check holds keep
    check holds keep CLIENTS=2 REQUESTS=1 DEATHS=1
    check holds keep DEATHS=1 LEAVING
    check holds keep DEATHS=1 ENDS=1
    check holds keep DEATHS=1 ENDS=1 LEAVING GIVES_UP
    for removed in NO_STORE NO_COMMIT NO_DROP NO_DRAIN NO_PEEK NO_SEEN NO_FIRST NO_HOLD NO_AGAIN NO_FENCE \
        NO_UNDO NO_BASE; do
        check fails keep $removed
    done
    check fails keep DEATHS=1 ENDS=1 NO_WHOLE
    check fails keep GIVES_UP NO_ORPHAN
}

if [ -z "${MODELS_ANEW-}" ] && [ "$(tail -n 1 "$proved" 2>/dev/null)" = "$content" ]; then
    echo "the models are what they were when they were proved"
else
    check_all
    if [ $failures -eq 0 ] && [ -n "${MODELS_ANEW-}" ]; then
        printf '%s\n' '# SPDX-License-Identifier: Apache-2.0' '# SPDX-FileCopyrightText: The gpushare authors' \
            '# The models and test_models.sh when make models last proved them; that writes this file.' "$content" >"$proved" || failures=1
    elif [ $failures -eq 0 ]; then
        echo "FAILED the models hold, and tests/model/proved is of other ones: run make models, which notes it there"
        failures=1
    fi
fi

# Every removal that a model offers is tried above.
for model in doorbell waiter room free journal handover keep; do
    for removed in $(grep -oE '\bNO_[A-Z_]+' $model.pml | sort -u); do
        grep -qE "\b$removed\b" test_models.sh || {
            echo "FAILED $model: $removed is never tried"
            failures=$((failures + 1))
        }
    done
done

# Each model says which function it mirrors, and there is a function of that name.
for model in doorbell waiter room free journal handover keep; do
    mirrored=$(grep -oE '[a-z_/]+\.c:[a-z_]+' $model.pml | sort -u)
    [ -n "$mirrored" ] || { echo "FAILED $model: mirrors nothing"; failures=$((failures + 1)); }
    for name in $mirrored; do
        if ! grep -qsE "\b${name#*:}\(" "$root/${name%%:*}"; then
            echo "FAILED $model: there is no $name"
            failures=$((failures + 1))
        fi
    done
done

exit $((failures != 0))
