#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
#
# make install into a root of the test's own: a program is built against what was
# installed with nothing but pkg-config's word, in C and in C++; the header needs
# nothing of the source tree; uninstall leaves no file.
set -u
shopt -s extglob
cd "$(dirname "$0")/../.." || exit 1
# As make was called, and relative: another spelling of the folder would be other flags.
build=$(realpath --relative-to=. "${BUILD:?}")
root=${TMPDIR:?}/root
failures=0
fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}
# The tests' make is not waiting for jobs of ours.
MAKEFLAGS=${MAKEFLAGS-}
export MAKEFLAGS=${MAKEFLAGS//--jobserver-auth=*([^ ])/}
install() {
    make --no-print-directory -j1 "$1" BUILD="$build" DESTDIR="$root" PREFIX=/usr >"$TMPDIR/$1.log" 2>&1 || {
        cat "$TMPDIR/$1.log"
        fail "make $1: exit status $?"
    }
}


install install
cd "$TMPDIR" || exit 1
for file in bin/gpushared bin/gpusharectl bin/gpushare libexec/gpushare-worker; do
    [ -x "root/usr/$file" ] || fail "no program $file"
done
for file in lib/gpushare/softgpu/libcuda.so.1 lib/systemd/system/gpushared.service \
    lib/systemd/system/gpushared.socket lib/systemd/system/gpushared-admin.socket \
    lib/sysusers.d/gpushare.conf lib/libgpushare-client.a lib/libgpushare-client.so; do
    [ -s "root/usr/$file" ] || fail "no file $file"
done
grep -qx 'ExecStart=/usr/bin/gpushared' root/usr/lib/systemd/system/gpushared.service ||
    fail "the unit does not start the installed program"
grep -rn "@[A-Z]*@" root/usr/lib/systemd root/usr/lib/pkgconfig && fail "a variable was not filled in"

PKG_CONFIG_LIBDIR=$TMPDIR/root/usr/lib/pkgconfig:/usr/lib/$(gcc -print-multiarch)/pkgconfig:/usr/lib/pkgconfig
export PKG_CONFIG_LIBDIR PKG_CONFIG_SYSROOT_DIR=$TMPDIR/root
pkg-config --validate gpushare-client || fail "gpushare-client.pc"
cat >program.c <<'EOF'
#include <gpushare.h>
#include <stdio.h>

int main(void)
{
    return puts(gpushare_error_name(GPUSHARE_SUCCESS)) < 0;
}
EOF
cp program.c program.cc
# Sanitizers of the tree would have to be linked in; the installed library is tried plain.
if [ -z "$(nm -D "root/usr/lib/libgpushare-client.so.0" | grep -E '__(asan|tsan|ubsan)_')" ]; then
    # shellcheck disable=SC2046
    {
        gcc -std=c17 -Wall -Wextra -Wpedantic -Werror -o shared program.c $(pkg-config --cflags --libs gpushare-client) ||
            fail "does not link with the shared library"
        g++ -std=c++17 -Wall -Wextra -Wpedantic -Werror -o cxx program.cc $(pkg-config --cflags --libs gpushare-client) ||
            fail "does not link as C++"
        gcc -std=c17 -o static program.c $(pkg-config --cflags gpushare-client) \
            root/usr/lib/libgpushare-client.a $(PKG_CONFIG_SYSROOT_DIR='' pkg-config --static --libs-only-other gpushare-client) -lzstd -llz4 ||
            fail "does not link with the static library"
    }
    for program in shared cxx static; do
        output=$(LD_LIBRARY_PATH=root/usr/lib ./$program) || fail "$program: exit status $?"
        [ -n "$output" ] || fail "$program printed nothing"
    done
    readelf -d shared | grep -q 'NEEDED.*libgpushare-client\.so\.0\]' || fail "the soname is not libgpushare-client.so.0"
    # Nothing but the interface is exported, and each name with its version.
    exported=$(nm -D --defined-only root/usr/lib/libgpushare-client.so.0 | awk '$2 != "A" { print $3 }' |
        grep -vE '^gpushare_[a-z0-9_]+@@GPUSHARE_[0-9.]+$')
    [ -z "$exported" ] || fail "exported besides the interface: $exported"
    # Every function that the header declares is there.
    for name in $(grep -oE '\bgpushare_[a-z0-9_]+\(' root/usr/include/gpushare.h | tr -d '(' | sort -u); do
        nm -D root/usr/lib/libgpushare-client.so.0 | grep -q " T $name@@" || fail "declared but not exported: $name"
    done
fi

cd "$OLDPWD" || exit 1
install uninstall
left=$(find "$root" -not -type d)
[ -z "$left" ] || fail "uninstall left: $left"
exit $((failures != 0))
