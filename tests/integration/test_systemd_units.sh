#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
#
# The unit files as `make install` writes them: systemd warns of nothing in
# them, the service stays below an exposure threshold, and each socket has the
# type, path, mode and name that the server relies on. The same of a user's own
# unit, of the drop-in for the software GPU and of the folders of tmpfiles.d.
set -u
cd "$(dirname "$0")/../.." || exit 1
if ! command -v systemd-analyze >/dev/null; then
    echo "systemd-analyze is not installed"
    exit 77
fi
units=${TMPDIR:?}/units
mkdir -p "$units"
failures=0
fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

# A binary that exists, since verify looks for ExecStart=.
filled() {
    sed -e 's#@BINDIR@/gpushare\(-exporter\|d\|ctl\)#/bin/true#' -e 's|@LIBEXECDIR@/gpushare-devices|/bin/true|' -e 's|@DOCDIR@|/usr/share/doc/gpushare|g' "systemd/$1.in"
}
for unit in gpushared.service gpushared.socket gpushared-admin.socket gpushare-devices.service gpushare-exporter.service; do
    filled "$unit" >"$units/$unit"
done
mkdir "$TMPDIR/user" || exit 1
filled gpushared-user.service >"$TMPDIR/user/gpushared.service"
grep -n '@[A-Z]*@' "$units"/* "$TMPDIR/user"/* && fail "a variable that make install does not fill in"

# Unknown keys and values only warn, with exit status 0: demand silence. SYSTEMD_LOG
# variables of the caller could hide a warning.
unset SYSTEMD_LOG_LEVEL SYSTEMD_LOG_TARGET
verify() {
    (cd "$1" && systemd-analyze verify --man=no --recursive-errors=one \
        ./gpushared.service ./gpushared.socket ./gpushared-admin.socket ./gpushare-devices.service ./gpushare-exporter.service) 2>&1
}
output=$(verify "$units") || fail "systemd-analyze verify: exit status $?"
[ -z "$output" ] || fail "systemd-analyze verify says: $output"

# A user's own server, and both kinds of it with the drop-in.
verify_user() {
    (cd "$1" && systemd-analyze verify --user --man=no --recursive-errors=one ./gpushared.service) 2>&1
}
for kind in units user; do
    cp -r "$TMPDIR/$kind" "$TMPDIR/$kind-softgpu" && mkdir "$TMPDIR/$kind-softgpu/gpushared.service.d" || exit 1
    filled softgpu.conf >"$TMPDIR/$kind-softgpu/gpushared.service.d/softgpu.conf"
done
XDG_RUNTIME_DIR=$TMPDIR
export XDG_RUNTIME_DIR
for folder in user user-softgpu; do
    output=$(verify_user "$TMPDIR/$folder") || fail "systemd-analyze verify --user of $folder: exit status $?"
    [ -z "$output" ] || fail "systemd-analyze verify --user of $folder says: $output"
done
output=$(verify "$TMPDIR/units-softgpu") || fail "systemd-analyze verify with the drop-in: exit status $?"
[ -z "$output" ] || fail "systemd-analyze verify with the drop-in says: $output"
[ "$(grep -c '^ExecStart=' systemd/softgpu.conf.in)" = 2 ] && grep -qx 'ExecStart=' systemd/softgpu.conf.in ||
    fail "the drop-in does not take the unit's own command away"

# The check itself: a misspelt key must not go unnoticed.
mkdir "$TMPDIR/broken"
cp "$units"/* "$TMPDIR/broken/"
sed -i 's/^LimitNOFILE=/LimitNOFILES=/' "$TMPDIR/broken/gpushared.service"
[ -n "$(verify "$TMPDIR/broken")" ] || fail "a misspelt key was not reported"

# 0 is best, 10 worst, a bare unit 9.6; the threshold is in tenths.
threshold=15
(cd "$units" && systemd-analyze security --offline=true --threshold=$threshold ./gpushared.service) \
    >"$TMPDIR/security" 2>&1 || fail "exposure above $threshold tenths: $(tail -1 "$TMPDIR/security")"

# The exporter needs less than the server.
(cd "$units" && systemd-analyze security --offline=true --threshold=$threshold ./gpushare-exporter.service) \
    >"$TMPDIR/exporter" 2>&1 || fail "exposure of the exporter above $threshold tenths: $(tail -1 "$TMPDIR/exporter")"

# has UNIT LINE: the line stands in the unit exactly once.
has() {
    [ "$(grep -cxF -- "$2" "$units/$1")" = 1 ] || fail "$1: expected one line '$2'"
}
has gpushared.socket ListenSequentialPacket=/run/gpushare/gpushare.sock
has gpushared.socket SocketMode=0666
has gpushared.socket FileDescriptorName=client
has gpushared-admin.socket ListenStream=/run/gpushare/admin.sock
has gpushared-admin.socket SocketMode=0660
has gpushared-admin.socket SocketGroup=gpushare
has gpushared-admin.socket FileDescriptorName=admin
has gpushared.service Type=notify
has gpushared.service KillMode=process
has gpushared.service RestartKillSignal=SIGUSR2
has gpushared.service FileDescriptorStoreMax=16000
has gpushared.service LimitNOFILE=65536
has gpushared.service LimitMEMLOCK=infinity
has gpushared.service RuntimeDirectoryPreserve=yes
has gpushared.service EnvironmentFile=-/etc/default/gpushared
has gpushared.service Wants=gpushare-devices.service
has gpushared.service Nice=-10
has gpushare-devices.service Type=oneshot
# Nothing is served until somebody says where: the start fails then, with the remedy, and is not tried for ever.
grep -q '^Condition' "$units/gpushare-exporter.service" && fail "a condition hides that the exporter does not start"
has gpushare-exporter.service EnvironmentFile=-/etc/default/gpushare-exporter
has gpushare-exporter.service StartLimitBurst=5
check=$(sed -n "s/^ExecStartPre=.bin.sh -c '\(.*\)'\$/\1/p" "$units/gpushare-exporter.service" | sed 's/[$][$]/$/g')
[ -n "$check" ] || fail "the exporter's unit does not look whether it has an address"
for options in "" "--clients 5"; do
    said=$(GPUSHARE_EXPORTER_OPTIONS=$options sh -c "$check" 2>&1) && fail "the exporter would start with the options '$options'"
    case $said in
    "<3>"*"cp /usr/share/doc/gpushare/gpushare-exporter.env /etc/default/gpushare-exporter"*) ;;
    *) fail "an exporter without an address does not name the remedy: $said" ;;
    esac
done
for options in "--listen 127.0.0.1:9408" "--clients 5 --textfile /x.prom"; do
    said=$(GPUSHARE_EXPORTER_OPTIONS=$options sh -c "$check" 2>&1) || fail "the exporter would not start with the options '$options': $said"
done
# The exporter is a stranger but for the socket's group.
has gpushare-exporter.service 'ExecStart=/bin/true $GPUSHARE_EXPORTER_OPTIONS'
has gpushare-exporter.service DynamicUser=yes
has gpushare-exporter.service SupplementaryGroups=gpushare
has gpushare-exporter.service CapabilityBoundingSet=
has gpushare-exporter.service MemoryDenyWriteExecute=yes
has gpushare-exporter.service PrivateMounts=yes
# The driver's needs that hardening would take away: the exposure level rewards its loss.
for device in char-nvidia char-nvidia-frontend char-nvidiactl char-nvidia-uvm char-nvidia-caps; do
    has gpushared.service "DeviceAllow=$device rw"
done
has gpushared.service PrivateDevices=no
has gpushared.service MemoryDenyWriteExecute=no
has gpushared.service "RestrictAddressFamilies=AF_UNIX AF_NETLINK"
has gpushared.service ProcSubset=all
has gpushared.service ProtectProc=default
has gpushared.service PrivateUsers=no
has gpushared.service "Requires=gpushared.socket gpushared-admin.socket"
has gpushared.service "Also=gpushared.socket gpushared-admin.socket"
has gpushared.service NotifyAccess=main
has gpushared.service Restart=on-failure
has gpushared.service StartLimitIntervalSec=10
has gpushared.service StartLimitBurst=20
grep -q 'the unit fails after 20 attempts in ten seconds' docs/systemd.md || fail "docs/systemd.md names another number of attempts"
has gpushared.service 'RestartPreventExitStatus=1 2'
has gpushared.service TimeoutStartSec=120
has gpushared.service CPUWeight=1000
has gpushared.service OOMScoreAdjust=-500
has gpushared.service CacheDirectory=gpushare
has gpushared.service StateDirectory=gpushare
has gpushared.service 'ExecReload=+/bin/true --socket /run/gpushare/admin.sock reload'
has gpushared.service 'ExecStartPre=-/bin/true $GPUSHARED_OPTIONS --check-config'
# The service manager's time limit for the supervisor's loop, which feeds it (test_systemd_sockets.py).
has gpushared.service WatchdogSec=30
has gpushared.service Slice=system.slice
has gpushared.service PrivateMounts=yes
for unit in "$units"/*; do
    grep -q '^Documentation=man:.* file:/' "$unit" || fail "$unit names no documentation"
done
has gpushared.socket Backlog=1024
# The server gives up its privileges; the unit that makes the device nodes has them.
grep -q "^User=\|^NoNewPrivileges=\|^CapabilityBoundingSet=" "$units/gpushare-devices.service" &&
    fail "gpushare-devices.service gives up what it needs"
# after UNIT OTHER: UNIT is ordered after OTHER.
after() {
    grep '^After=' "$units/$1" | tr '= ' '\n\n' | grep -qxF "$2" || fail "$1 is not ordered after $2"
}
after gpushared.service gpushare-devices.service
for unit in nvidia-persistenced.service nvidia-fabricmanager.service; do
    after gpushared.service "$unit"
    after gpushare-devices.service "$unit"
done
# Options in the environment file reach the command line, as words and not as one.
grep -qx 'ExecStart=/bin/true $GPUSHARED_OPTIONS' "$units/gpushared.service" || fail "no options from the environment file"

# The group of the admin socket and the user of the service are created by name.
if command -v systemd-sysusers >/dev/null; then
    root=$TMPDIR/root
    mkdir -p "$root/etc"
    touch "$root/etc/passwd" "$root/etc/group"
    systemd-sysusers --root="$root" "$PWD/systemd/gpushare.sysusers" >"$TMPDIR/sysusers" 2>&1 ||
        fail "systemd-sysusers: $(<"$TMPDIR/sysusers")"
    grep -q '^gpushare:' "$root/etc/passwd" || fail "no user gpushare"
    grep -q '^gpushare:' "$root/etc/group" || fail "no group gpushare"
fi

# Owner and mode of the folder are those that the service gives it.
if command -v systemd-tmpfiles >/dev/null; then
    grep -qx 'd /run/gpushare 0755 gpushare gpushare -' systemd/gpushare.tmpfiles || fail "tmpfiles.d makes another /run/gpushare"
    has gpushared.service User=gpushare
    has gpushared.service RuntimeDirectoryMode=0755
    # The test may run as any user, whose folders it can give to nobody else.
    sed "s/ gpushare gpushare / $(id -un) $(id -gn) /; s/ root root / $(id -un) $(id -gn) /" systemd/gpushare.tmpfiles >"$TMPDIR/tmpfiles.conf"
    mkdir -p "$TMPDIR/tree/etc" && cp /etc/passwd /etc/group "$TMPDIR/tree/etc/" || exit 1
    systemd-tmpfiles --create --root="$TMPDIR/tree" "$TMPDIR/tmpfiles.conf" >"$TMPDIR/tmpfiles" 2>&1 || fail "systemd-tmpfiles: $(<"$TMPDIR/tmpfiles")"
    for folder in run/gpushare etc/gpushare; do
        [ "$(stat -c %a "$TMPDIR/tree/$folder")" = 755 ] || fail "systemd-tmpfiles does not make $folder"
    done
fi

tail -1 "$TMPDIR/security"
exit $((failures != 0))
