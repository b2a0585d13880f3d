#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
# The part of the client library that programs see: a header that compiles as C99 and as C++,
# and no symbol but gpushare_*.
set -eu

build=${BUILD:-build}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cat >"$work/user.c" <<'END'
#include "gpushare.h"
#include "gpushare.h"
int main(void)
{
    struct gpushare_dim grid = {1, 1, 1};
    gpushare_connection *gpu = 0;
    gpushare_close(&gpu);
    return grid.x == 1 && gpushare_version() == GPUSHARE_VERSION_NUMBER ? 0 : 1;
}
END
cp "$work/user.c" "$work/user.cpp"

# Not -Wshadow: struct gpushare_limits and gpushare_limits() share a name, as stat(2)'s do.
strict='-pedantic -Wall -Wextra -Werror -Iclient'
for compiler in "${CC:-cc} -std=c99" "${CC:-cc} -std=c17" "${CXX:-c++} -std=c++11" "${CXX:-c++} -std=c++20"; do
    case $compiler in *++*) source=user.cpp ;; *) source=user.c ;; esac
    if ! command -v "${compiler%% *}" >/dev/null; then
        echo "SKIP: no ${compiler%% *}"
        continue
    fi
    # shellcheck disable=SC2086 # words are meant
    $compiler $strict -fsyntax-only "$work/$source"
    echo "compiles with $compiler"
done

# Both libraries define the same names, and every one that the header declares.
nm -D --defined-only "$build/lib/libgpushare-client.so.0" | awk '$2 != "A" {print $3}' | sed 's/@.*//' | sort >"$work/shared"
nm -g --defined-only "$build/lib/libgpushare-client.a" | awk 'NF == 3 {print $3}' | sort >"$work/static"
sed -n 's/^GPUSHARE_API.*[ *]\(gpushare_[a-z_]*\)(.*/\1/p' client/gpushare.h | sort >"$work/declared"

[ "$(wc -l <"$work/declared")" -ge 50 ] || { echo "only $(wc -l <"$work/declared") functions found in the header"; exit 1; }
diff "$work/declared" "$work/shared" || { echo "the shared library exports other names than the header declares"; exit 1; }
diff "$work/declared" "$work/static" || { echo "the static library exports other names than the header declares"; exit 1; }

# Every one carries the version.
unversioned=$(readelf -W --dyn-syms "$build/lib/libgpushare-client.so.0" | grep ' gpushare_' | grep -vc '@@GPUSHARE_0\.1' || true)
[ "$unversioned" = 0 ] || { echo "$unversioned symbols carry no version"; exit 1; }
echo "$(wc -l <"$work/shared") functions exported, all declared and versioned"
