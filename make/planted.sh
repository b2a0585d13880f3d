#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
#
# planted.sh FOLDER FINDING COMMAND...: gives an analyser a file with a known fault (at
# the place of @ in the command) and fails unless it exits with an error and names it.
# An option that an analyser misreads can make it pass over every file in silence;
# clean must mean that it looked.
set -u
folder=$1 finding=$2
shift 2
mkdir -p "$folder" || exit 1
cat >"$folder/planted.c" <<'C'
int planted(int number);
int planted(int number) {
    int nothing = 0, unused;
    return number / nothing;
}
C
cat >"$folder/planted.sh" <<'SH'
#!/bin/sh
read -r name
[ $name = planted ] && echo "$nam"
SH
case $finding in
SC*) file=$folder/planted.sh ;;
*) file=$folder/planted.c ;;
esac
for argument; do
    shift
    [ "$argument" = @ ] && argument=$file
    set -- "$@" "$argument"
done
if "$@" >"$folder/said" 2>&1; then
    echo "lint: $1 exits with success on a file with a planted fault ($finding): with these options it looks at nothing" >&2
    exit 1
fi
grep -q -e "$finding" "$folder/said" && exit 0
echo "lint: $1 does not name the planted fault ($finding), but says:" >&2
cat "$folder/said" >&2
exit 1
