#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
#
# make install into a root of the test's own: a program is built against what was
# installed with nothing but pkg-config's word, in C and in C++; the header needs
# nothing of the source tree; uninstall leaves no file. README's client and the one of
# docs/programming.md are built and run as these pages say, against an installed server.
set -u
shopt -s extglob
cd "$(dirname "$0")/../.." || exit 1
# The build folder as make was given it, relative: another spelling would change the flags, and build all again.
build=$(realpath --relative-to=. "${BUILD:?}")
root=${TMPDIR:?}/root
failures=0
fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}
# Without the jobs of the make that runs this test, and without its caller's variables for clients and servers. The
# software GPU stays the one that tests/run has chosen.
# shellcheck disable=SC2046 # one word a variable
unset $(env | sed -n "s/^\(\(GPUSHARE\|CUDA\|LISTEN\|NOTIFY\)_[A-Z_]*\|RUNTIME_DIRECTORY\)=.*/\1/p")
MAKEFLAGS=${MAKEFLAGS-}
export MAKEFLAGS=${MAKEFLAGS//--jobserver-auth=*([^ ])/}
# install TARGET VARIABLE=VALUE...
install() {
    make --no-print-directory -j1 "$1" BUILD="$build" "${@:2}" >"$TMPDIR/$1.log" 2>&1 || {
        fail "make $1: exit status $?"
        cat "$TMPDIR/$1.log"
    }
}
# README's first block that begins with this line, under "A client".
readme() {
    awk -v fence="$1" '$0 == "## A client" { under = 1 } !under { next }
        /^```/ { if (inside) exit; open = !open; inside = open && $0 == fence; next } inside { print }' README.md
}
# The lines of README, and as many more as make them a program that prints a sum.
client() {
    printf '#include <gpushare.h>\n#include <stdio.h>\nint main(void)\n{\n'
    readme '```c'
    cat <<'EOF'
    float a = 40, b = 2, c = 0;
    unsigned count = 1;
    gpushare_address in_a, in_b, out;
    gpushare_memory_alloc(gpu, sizeof a, &in_a);
    gpushare_memory_alloc(gpu, sizeof b, &in_b);
    gpushare_memory_alloc(gpu, sizeof c, &out);
    gpushare_copy_to_device(gpu, in_a, &a, sizeof a);
    gpushare_copy_to_device(gpu, in_b, &b, sizeof b);
    struct gpushare_dim one = {1, 1, 1};
    void *parameters[] = {&in_a, &in_b, &out, &count};
    gpushare_launch(add, one, one, 0, NULL, parameters);
    gpushare_copy_from_device(gpu, &c, out, sizeof c);
    printf("%g\n", c);
    gpushare_close(&gpu);
}
EOF
}

# The file NAME of docs/programming.md: the block after the first line that ends with its name and a colon, or a full stop.
programming() {
    awk -v name="$1" 'index($0, "`" name "`") && /[:.]$/ { named = 1; next } !named { next }
        /^```/ { if (inside) exit; inside = 1; next } inside { print }' docs/programming.md
}

client >"$TMPDIR/mine.c"
mkdir "$TMPDIR/add" || exit 1
for file in add.cu add_ptx.S add.c Makefile; do
    programming $file >"$TMPDIR/add/$file"
    [ -s "$TMPDIR/add/$file" ] || fail "docs/programming.md has no $file"
done
# Without nvcc the PTX of the same kernel is there already, as on a machine to which somebody copied it.
nvcc=$(command -v nvcc || command -v /usr/local/cuda/bin/nvcc) || cp examples/kernels/vector-add.ptx "$TMPDIR/add/add.ptx" || exit 1
grep -v '^//' examples/kernels/vector-add.cu | sed '/./,$!d' | diff - "$TMPDIR/add/add.cu" ||
    fail "docs/programming.md's kernel is not that of examples/kernels/vector-add.cu"
cc=$(readme '```' | sed -n 's/ *#.*//; /^cc /p')
copy=$(readme '```' | sed -n '/^cp /p')
[ -n "$copy" ] || fail "README does not say where its example is"
[ -n "$cc" ] || fail "README does not say how to compile a client"
cp examples/kernels/vector-add.ptx "$TMPDIR/" || exit 1

install install DESTDIR="$root" PREFIX=/usr
cd "$TMPDIR" || exit 1
grep "systemd does not read" "$TMPDIR/install.log" && fail "install takes systemd's own folder for another"
for file in bin/gpushared bin/gpusharectl bin/gpushare bin/gpushare-exporter libexec/gpushare-worker libexec/gpushare-devices; do
    [ -x "root/usr/$file" ] || fail "no program $file"
done
for file in lib/gpushare/softgpu/libcuda.so.1 lib/gpushare/libcuda.so.1 lib/gpushare/libcudart.so.12 \
    lib/gpushare/libcudart.so.13 lib/gpushare/libgpushare-audit.so lib/systemd/system/gpushared.service \
    lib/systemd/system/gpushared.socket lib/systemd/system/gpushared-admin.socket \
    lib/systemd/system/gpushare-devices.service lib/systemd/system/gpushare-exporter.service share/doc/gpushare/gpushare-exporter.env \
    share/doc/gpushare/monitoring/alerts.yaml share/doc/gpushare/gpushared.env \
    lib/systemd/user/gpushared.service lib/tmpfiles.d/gpushare.conf share/doc/gpushare/softgpu.conf \
    lib/sysusers.d/gpushare.conf lib/libgpushare-client.a lib/libgpushare-client.so \
    share/man/man1/gpushare.1 share/man/man3/gpushare.3 share/man/man3/gpushare_copy_async.3 share/man/man5/gpushared.yaml.5 \
    share/man/man7/gpushare.7 share/man/man8/gpushared.8 share/doc/gpushare/gpushared.yaml share/doc/gpushare/gpushared-config.schema.json; do
    [ -s "root/usr/$file" ] || fail "no file $file"
done
# Each page leads to files that are installed too.
pages=root/usr/share/doc/gpushare
links=$(grep -oE '\]\([^)#]+' "$pages"/*.md | sed 's/^.*\](//' | grep -v '^https\?:' | sort -u)
[ "$(wc -w <<<"$links")" -gt 10 ] || fail "the installed pages have hardly a link: $links"
for link in $links; do
    [ -e "$pages/$link" ] || fail "an installed page has a link to $link, which is not there"
done
# A page that is installed names the folders of its installation.
grep -rn "/usr/local" "$pages" && fail "an installed page names a folder of another installation"
grep -q "^systemd-sysusers /usr/lib/sysusers.d/gpushare.conf" "$pages/operators.md" || fail "operators.md does not name the installed sysusers.d"
grep -rn "<!-- in the tree -->" "$pages" && fail "an installed page has a remark for readers of the tree"
grep -qx 'ExecStart=/usr/bin/gpushared .GPUSHARED_OPTIONS' root/usr/lib/systemd/system/gpushared.service ||
    fail "the unit does not start the installed program"
grep -qx 'ExecStart=/usr/libexec/gpushare-devices' root/usr/lib/systemd/system/gpushare-devices.service ||
    fail "the unit does not start the installed script"
grep -rn "@[A-Z]*@" root/usr/lib/systemd root/usr/lib/pkgconfig root/usr/share/doc/gpushare/softgpu.conf && fail "a variable was not filled in"

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
# The program would have to link the tree's sanitizers, so the installed library is tried without.
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
    # A client needs no driver, nor anything of CUDA.
    readelf -d root/usr/lib/libgpushare-client.so.0 | grep -i 'NEEDED.*\(cuda\|nvidia\)' && fail "the library needs a driver"
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
# While systemd has a unit enabled, uninstall removes nothing, and names the command that disables it.
wants=$root/etc/systemd/system/sockets.target.wants
mkdir -p "$wants" || exit 1
ln -s /lib/systemd/system/gpushared.socket "$wants/" || exit 1
ln -s /opt/lib/systemd/system/gpushared.service "$wants/" || exit 1
said=$(make --no-print-directory -j1 uninstall BUILD="$build" DESTDIR="$root" PREFIX=/usr 2>&1) && fail "uninstall removed an enabled unit"
grep -qx '  systemctl disable --now gpushared.socket' <<<"$said" || fail "uninstall does not name the enabled unit: $said"
[ -s "$root/usr/lib/systemd/system/gpushared.socket" ] || fail "uninstall removed something before it failed"
rm "$wants/gpushared.socket" || exit 1
# Another installation's unit of the same name is none of ours.
install uninstall DESTDIR="$root" PREFIX=/usr
rm "$wants/gpushared.service" || exit 1
left=$(find "$root" -not -type d)
[ -z "$left" ] || fail "uninstall left: $left"

# Installed elsewhere by PREFIX alone, with README's command and the two variables that it names.
prefix=$TMPDIR/opt
unset PKG_CONFIG_LIBDIR PKG_CONFIG_SYSROOT_DIR
install install PREFIX="$prefix"
grep -qxF "systemd does not read $prefix/lib/systemd/system: for a service, install with UNITDIR=/etc/systemd/system." "$TMPDIR/install.log" ||
    fail "install does not say that systemd will not find the units"
# A user's own file in one of the installed folders stays.
echo "mine" >"$prefix/share/doc/gpushare/notes" || exit 1
cd "$TMPDIR" || exit 1
export XDG_RUNTIME_DIR=$TMPDIR/run
mkdir -m 700 run || exit 1
opt/bin/gpushared --driver softgpu >server.log 2>&1 &
server=$!
trap 'kill $server 2>/dev/null' EXIT
for ((i = 0; i < 1200; i++)); do
    grep -q "ready: clients connect" server.log && break
    kill -0 $server 2>/dev/null || break
    sleep 0.05
done
opt/bin/gpusharectl ping >/dev/null || fail "the installed server does not answer: $(cat server.log)"
if [ -z "$(nm -D opt/lib/libgpushare-client.so.0 | grep -E '__(asan|tsan|ubsan)_')" ]; then
    # The example as it is installed, in a folder of its own; then README's lines of C.
    mkdir example || exit 1
    (cd example && eval "${copy//\/usr\/local/$prefix}" && export PKG_CONFIG_PATH="$prefix/lib/pkgconfig" &&
        eval "$cc -Wall -Wextra -Werror") || fail "README's example: $cc"
    said=$(LD_LIBRARY_PATH=$prefix/lib example/vector-add -r 1)
    [[ $said == *"vector-add: 1048576 sums verified" ]] || fail "README's example says \"$said\""
    for example in resilient stray; do
        (cd "$prefix/share/doc/gpushare/examples" && export PKG_CONFIG_PATH="$prefix/lib/pkgconfig" &&
            eval "${cc//-o vector-add vector-add.c/-o $TMPDIR/example/$example $example.c} -Wall -Wextra -Werror") ||
            fail "the installed example $example does not compile"
    done
    (export PKG_CONFIG_PATH="$prefix/lib/pkgconfig" && eval "${cc//vector-add/mine} -Wall -Wextra -Werror") || fail "README's client: $cc"
    sum=$(LD_LIBRARY_PATH=$prefix/lib ./mine)
    [ "$sum" = 42 ] || fail "README's client says \"$sum\", not 42"
    PKG_CONFIG_PATH=$prefix/lib/pkgconfig CFLAGS=-Werror make -C add NVCC="$nvcc" >add.log 2>&1 ||
        fail "docs/programming.md's client: $(cat add.log)"
    said=$(LD_LIBRARY_PATH=$prefix/lib add/add)
    [[ $said =~ ^"1048576 sums verified, "[0-9.]+" ms for each launch"$ ]] || fail "docs/programming.md's client says \"$said\""
fi
kill $server
wait $server || fail "the installed server: exit status $?: $(cat server.log)"
trap - EXIT
cd "$OLDPWD" || exit 1
install uninstall PREFIX="$prefix"
left=$(find "$prefix" -not -type d)
[ "$left" = "$prefix/share/doc/gpushare/notes" ] || fail "uninstall elsewhere left: $left"

# The machine's own folders stay, even if they are empty.
mkdir -p "$TMPDIR/etc/sysusers.d" || exit 1
install install PREFIX="$prefix" SYSUSERSDIR="$TMPDIR/etc/sysusers.d"
[ -s "$TMPDIR/etc/sysusers.d/gpushare.conf" ] || fail "SYSUSERSDIR is not used"
install uninstall PREFIX="$prefix" SYSUSERSDIR="$TMPDIR/etc/sysusers.d"
[ -d "$TMPDIR/etc/sysusers.d" ] || fail "uninstall removed a folder outside the prefix"
[ -z "$(ls -A "$TMPDIR/etc/sysusers.d")" ] || fail "uninstall left files outside the prefix"
exit $((failures != 0))
