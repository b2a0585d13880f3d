#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
#
# make/deps.sh against a recorded system: dpkg-query, apt-get and id are replaced
# by scripts, so nothing is installed and root is not needed.
set -u
cd "$(dirname "$0")/../../.." || exit 1
dir=${TMPDIR:?}/fake
mkdir -p "$dir"
# Besides the replaced commands the script may use the shell alone.
ln -s "$(command -v sh)" "$dir/sh"
failures=0
fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

cat >"$dir/dpkg-query" <<'EOF'
#!/bin/sh
status=0
shift 3
for name in "$@"; do
    case " $FAKE_MISSING " in
    *" $name "*) status=1 ;;
    *) echo "$name ${FAKE_STATUS:-installed}" ;;
    esac
done
exit $status
EOF
cat >"$dir/apt-get" <<'EOF'
#!/bin/sh
case "$*" in *--simulate*) exit ${FAKE_SIMULATE:-0} ;; esac
echo "$*" >>"$FAKE_LOG"
case "$1 ${FAKE_BROKEN-}" in "install yes") exit 100 ;; esac
EOF
printf '#!/bin/sh\necho %s\n' "\$FAKE_UID" >"$dir/id"
chmod +x "$dir"/*

# run UID MISSING ARGS... -> $status, $output, $log (the apt-get calls)
run() {
    local uid=$1 missing=$2
    shift 2
    : >"$dir/log"
    output=$(PATH=$dir FAKE_LOG=$dir/log FAKE_UID=$uid FAKE_MISSING=$missing "$dir/sh" make/deps.sh "$@" 2>&1)
    status=$?
    log=$(<"$dir/log")
}

run 0 "" --install build lint
[ $status = 0 ] && [ -z "$output$log" ] || fail "nothing missing: status $status, output '$output', apt-get '$log'"

run 1000 "spin libuv1-dev" --install build
[ $status = 1 ] && [ -z "$log" ] || fail "not root: status $status, apt-get '$log'"
line="apt-get update && apt-get install -y --no-install-recommends libuv1-dev spin"
[ "$(grep -cxF "$line" <<<"$output")" = 1 ] || fail "not root: no line to run in '$output'"

run 0 "spin" --announce build
[ $status = 1 ] && [ -z "$log" ] || fail "announce as root changed the system: $log"

run 0 "spin" --install build
[ $status = 0 ] && [ "$log" = "install -y --no-install-recommends spin" ] || fail "root: status $status, apt-get '$log'"

run 0 "clang-tidy" --install build
[ $status = 0 ] && [ -z "$log" ] || fail "a package of another set was asked for: $log"
run 0 "clang-tidy" --install build lint
[ "$log" = "install -y --no-install-recommends clang-tidy" ] || fail "lint: apt-get '$log'"

# No package lists yet: the lists come first.
FAKE_SIMULATE=100 run 0 "spin" --install build
[ "$log" = $'update\ninstall -y --no-install-recommends spin' ] || fail "no lists: apt-get '$log'"

# Stale lists: the download fails once, then again after an update: that is an error.
FAKE_BROKEN=yes run 0 "spin" --install build
[ $status != 0 ] && [ "$(grep -c ^install <<<"$log")" = 2 ] && grep -qx update <<<"$log" ||
    fail "stale lists: status $status, apt-get '$log'"

# A package that was removed but whose configuration stayed is not installed.
FAKE_STATUS=config-files run 1000 "" --announce lint
[ $status = 1 ] && grep -q clang-tidy <<<"$output" || fail "config-files counted as installed: '$output'"

# A name that is the start of another's (g++ and g++-12, clang and clang-tidy).
run 1000 "clang" --announce lint
[ $status = 1 ] && grep -q 'recommends clang$' <<<"$output" || fail "prefix: '$output'"

run 0 "" --install nosuchset
[ $status = 2 ] || fail "unknown set: status $status"
run 0 "" --install
[ $status = 2 ] || fail "no set: status $status"

[ $failures = 0 ] && echo "12 cases passed"
exit $((failures != 0))
