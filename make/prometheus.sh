#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
#
# usage: make/prometheus.sh FOLDER
#
# Puts Debian's prometheus and promtool into FOLDER/bin, for the test that has a
# real Prometheus scrape. The package is unpacked there and not installed, since
# an installed one starts a service. It is fetched by apt-get, which root lets
# look for newer lists. Those that are installed are used as they are.
set -eu
folder=$1
mkdir -p "$folder/bin"
[ ! -x "$folder/bin/prometheus" ] || exit 0

if command -v prometheus >/dev/null && command -v promtool >/dev/null; then
    ln -sf "$(command -v prometheus)" "$(command -v promtool)" "$folder/bin/"
    exit 0
fi
if ! command -v apt-get >/dev/null || ! command -v dpkg-deb >/dev/null; then
    echo "gpushare: install Prometheus, with promtool: this is not a Debian system" >&2
    exit 1
fi
cd "$folder"
# A fresh image has no package lists, a stale one has lists whose files are gone.
if ! apt-get download prometheus; then
    [ "$(id -u)" = 0 ] || exit 1
    apt-get update
    apt-get download prometheus
fi
dpkg-deb --extract prometheus_*.deb package
rm -f prometheus_*.deb
mv package/usr/bin/promtool bin/
mv package/usr/bin/prometheus bin/
rm -rf package
