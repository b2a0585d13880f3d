#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
#
# usage: make/deb.sh TARBALL FOLDER
#
# Builds Debian's packages of a tarball into FOLDER, and has lintian look at
# them: an error or a warning of its fails. Root is not needed.
set -eu
tarball=$1
folder=$2
name=$(basename "$tarball" .tar.gz)
version=${name#gpushare-}

rm -rf "$folder"
mkdir -p "$folder"
cp "$tarball" "$folder/gpushare_$version.orig.tar.gz"
tar --extract --file "$tarball" --directory "$folder"
cd "$folder/$name"
# The jobs and variables of the make that runs this are not for the packages; their own come from debian/rules.
unset MAKEFLAGS MAKELEVEL MFLAGS MAKEOVERRIDES BUILD
DEB_BUILD_OPTIONS="parallel=${JOBS:-$(nproc)} ${DEB_BUILD_OPTIONS-}"
export DEB_BUILD_OPTIONS
dpkg-buildpackage --build=binary --no-sign >../build.log 2>&1 || {
    tail -n 40 ../build.log >&2
    echo "gpushare: dpkg-buildpackage failed: $folder/build.log" >&2
    exit 1
}
cd ..
rm -rf "$name"
# Pages of the manual are found in docs/man. A tree without them has commands without a page, and no other fault.
suppress=$(tar --list --file "gpushare_$version.orig.tar.gz" | grep -q '/docs/man/.' || echo --suppress-tags=no-manual-page)
# shellcheck disable=SC2086 # one word, or none
lintian --fail-on error,warning --allow-root $suppress gpushare_*.changes
ls -- *.deb
