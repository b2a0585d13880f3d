#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
#
# usage: make/deps.sh --install|--announce SET...     (SET: programs, build, lint, clang, packages, deb, guest, site)
#
# Looks up which packages of the named sets are missing on this Debian system.
# None missing: prints nothing, exits 0. --install as root installs them; in any
# other case the one line that would install them is printed and the exit
# status is 1. POSIX sh and dpkg alone, since Python itself may be missing.

# Package lists are words to be split.
# shellcheck disable=SC2086
set -eu

usage() {
    echo "usage: make/deps.sh --install|--announce programs|build|lint|clang|packages|deb|guest|site..." >&2
    exit 2
}

mode=${1-}
case $mode in --install | --announce) shift ;; *) usage ;; esac
[ $# -gt 0 ] || usage

wanted=
for set_name in "$@"; do
    case $set_name in
    # All that is installed; debian/control names the same. An example writes PNG. libc6-dev is named because gcc only
    # recommends it.
    programs | build)
        wanted="$wanted binutils gcc libc6-dev make pkg-config python3
            libjansson-dev libmicrohttpd-dev libuv1-dev libyaml-dev liblz4-dev libzstd-dev libpng-dev" ;;
    esac
    case $set_name in
    programs) ;;
    # The tests besides: g++ compiles the test corpus as host code, spin checks the models, systemd
    # brings systemd-analyze for the unit files' test and procps the kill that they name, mandoc reads the manual pages.
    build) wanted="$wanted g++ mandoc procps spin systemd libcmocka-dev zlib1g-dev" ;;
    # Tests of what is installed, skipped without them: packages, and a project of CMake's.
    packages) wanted="$wanted cmake debhelper dpkg-dev" ;;
    # Packages of a release are looked at by lintian, and tried in a system that debootstrap makes.
    deb) wanted="$wanted build-essential debhelper debootstrap dpkg-dev lintian" ;;
    # The packages under a real systemd: qemu boots a machine from a disk that mke2fs makes.
    guest) wanted="$wanted e2fsprogs qemu-system-x86" ;;
    # libclang-rt carries clang's sanitizer runtimes, which clang only recommends.
    clang) wanted="$wanted clang libclang-rt-dev" ;;
    # The documentation as a site. The theme brings the search, and fetches nothing from elsewhere.
    site) wanted="$wanted mandoc mkdocs mkdocs-material python3" ;;
    # The cross compiler shows that everything compiles for aarch64; it links nothing.
    lint) wanted="$wanted clang clang-format clang-tidy cppcheck shellcheck gcc-aarch64-linux-gnu libc6-dev-arm64-cross" ;;
    *) usage ;;
    esac
done

if ! command -v dpkg-query >/dev/null; then
    # Not Debian: package names mean nothing here, so look for what they bring.
    absent=
    for tool in gcc g++ mandoc objcopy pkg-config python3 spin; do
        command -v $tool >/dev/null || absent="$absent $tool"
    done
    for module in libuv jansson yaml-0.1 libzstd liblz4 libmicrohttpd cmocka libpng zlib; do
        pkg-config --exists $module 2>/dev/null || absent="$absent $module"
    done
    [ -n "$absent" ] || exit 0
    echo "gpushare: missing here:$absent" >&2
    echo "gpushare: this is not a Debian system; install what corresponds to Debian's: $(printf "%s " $wanted)" >&2
    exit 1
fi

# dpkg-query exits 1 for a name it has never heard of, which only means missing.
installed=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' $wanted 2>/dev/null || true)
missing=
for package in $wanted; do
    case "
$installed
" in
    *"
$package installed
"*) ;;
    *) missing="$missing $package" ;;
    esac
done
[ -n "$missing" ] || exit 0

line="apt-get install -y --no-install-recommends$missing"
if [ "$mode" = --announce ] || [ "$(id -u)" != 0 ]; then
    echo "gpushare: packages are missing; as root run:" >&2
    echo "apt-get update && $line" >&2
    exit 1
fi

export DEBIAN_FRONTEND=noninteractive
echo "gpushare: installing missing packages: $line"
# A fresh image has no package lists, a stale one has lists whose files are gone:
# the first shows in the simulation, the second in the download.
if ! apt-get install --simulate --no-install-recommends $missing >/dev/null 2>&1 || ! $line; then
    apt-get update
    $line
fi
