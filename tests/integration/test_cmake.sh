#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
#
# A project of CMake's finds what make install wrote, links both libraries, and is refused a version that is not there.
# Then the whole installation is moved, and found again.
set -u
shopt -s extglob
cd "$(dirname "$0")/../.." || exit 1
if ! command -v cmake >/dev/null; then
    echo "cmake is not installed: make deps-packages"
    exit 77
fi
build=$(realpath --relative-to=. "${BUILD:?}")
failures=0
fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}
MAKEFLAGS=${MAKEFLAGS-}
export MAKEFLAGS=${MAKEFLAGS//--jobserver-auth=*([^ ])/}
# The library below a folder of its machine, as Debian has it, and in one that is reached by a link.
make --no-print-directory -j1 install-built BUILD="$build" DESTDIR="$TMPDIR/one" PREFIX=/usr LIBDIR=/usr/lib/machine \
    >"$TMPDIR/install.log" 2>&1 || { cat "$TMPDIR/install.log"; exit 1; }
ln -s usr/lib "$TMPDIR/one/lib" || exit 1
cd "$TMPDIR" || exit 1
mkdir project || exit 1
cat >project/program.c <<'END'
#include <gpushare.h>
#include <stdio.h>

int main(void)
{
    return puts(gpushare_error_name(GPUSHARE_SUCCESS)) < 0;
}
END
cat >project/CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.13)
project(program LANGUAGES C)
find_package(gpushare-client ${WANTED} REQUIRED CONFIG)
add_executable(shared program.c)
target_link_libraries(shared PRIVATE gpushare::client)
add_executable(static program.c)
target_link_libraries(static PRIVATE gpushare::client-static)
END

# configure FOLDER VERSION FOUND_IN: the exit status is CMake's.
configure() {
    rm -rf built
    cmake -S project -B built -DWANTED="$2" "-Dgpushare-client_DIR=$TMPDIR/$1/$3/cmake/gpushare-client" >configure.log 2>&1
}
works() {
    configure "$1" "$2" "$3" || { fail "$1, version $2: $(cat configure.log)"; return; }
    cmake --build built >built.log 2>&1 || { fail "$1 does not link: $(cat built.log)"; return; }
    for program in shared static; do
        [ "$(built/$program)" = success ] || fail "$1: $program says something else"
    done
    readelf -d built/shared | grep -q 'NEEDED.*libgpushare-client\.so\.0\]' || fail "$1: the program needs another name than the soname"
    readelf -d built/static | grep -q 'NEEDED.*libgpushare' && fail "$1: the static program needs the shared library"
}
works one 0.1 lib/machine
configure one 7.0 usr/lib/machine && fail "a version of another soname was found"
configure one 0.9999 usr/lib/machine && fail "a version newer than the installed one was found"
mv one two || exit 1
works two "" usr/lib/machine
rm two/usr/lib/machine/libgpushare-client.so
configure two "" usr/lib/machine && fail "the package was found without its library"
# CMake breaks its lines where it likes.
tr -s '[:space:]' ' ' <configure.log | grep -q "libgpushare-client.so is missing: install gpushare again" || fail "nothing says what is missing: $(cat configure.log)"
exit $((failures != 0))
