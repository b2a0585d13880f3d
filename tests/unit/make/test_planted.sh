#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
#
# make/planted.sh tells an analyser that looks from one that only runs.
set -u
cd "$(dirname "$0")/../../.." || exit 1
dir=${TMPDIR:?}/planted
failures=0

# expect STATUS WORD ANALYSER: the analyser is shell text, with the planted file as $1.
expect() {
    local text status
    text=$(make/planted.sh "$dir" 'zero.*division\|\[zerodiv\]' sh -c "$3" analyser @ 2>&1)
    status=$?
    if [ $status -ne "$1" ] || ! grep -q -- "$2" <<<"$text"; then
        echo "FAILED: '$3' gave $status, '$text'; not $1 and '$2'"
        failures=$((failures + 1))
    fi
}

# Looks, names it, and fails.
expect 0 '' 'grep -q "number / nothing" "$1" && echo "$1:4: division by zero [zerodiv]" && exit 1'
# Names it, yet lint would go on.
expect 1 'exits with success' 'echo "$1:4: [zerodiv]"'
# Our cppcheck once did this: nothing, with success.
expect 1 'looks at nothing' 'true'
# Fails, but of something else.
expect 1 'does not name the planted fault' 'echo "unknown option"; exit 1'
expect 1 'unknown option' 'echo "unknown option"; exit 1'

# The scripts' analyser is given a script.
if ! make/planted.sh "$dir" SC2154 sh -c 'head -1 "$1" | grep "^#!" && echo SC2154; exit 1' analyser @; then
    echo "FAILED: the planted script is none"
    failures=$((failures + 1))
fi

# Every analyser that lint runs is asked.
for target in lint-format lint-shell lint-tidy-planted lint-cppcheck; do
    if ! sed -n "/^$target:/,/^\$/p" make/lint.mk | grep -q 'PLANTED'; then
        echo "FAILED: $target plants nothing"
        failures=$((failures + 1))
    fi
done
exit $((failures > 0))
