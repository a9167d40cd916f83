# SPDX-License-Identifier: GPL-2.0-or-later
# Shared by apply, export, check and build: where things are, and the map of files into QEMU's tree.

patches_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
top=$(dirname "$patches_dir")
base_tag=vpmu-base

# One identity and one date, so that the same series gives the same commits and files everywhere.
export GIT_AUTHOR_NAME=vpmu GIT_AUTHOR_EMAIL=vpmu@invalid GIT_AUTHOR_DATE='2000-01-01T00:00:00Z'
export GIT_COMMITTER_NAME=vpmu GIT_COMMITTER_EMAIL=vpmu@invalid GIT_COMMITTER_DATE='2000-01-01T00:00:00Z'
# The user's git configuration must not change what is written here.
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1

die() {
    echo "qemu-patches/$(basename "$0"): $*" >&2
    exit 1
}

# The patches of the series, as paths.
series() {
    sed 's/[[:space:]]*#.*//; /^$/d' "$patches_dir/series" | sed "s|^|$patches_dir/patches/|"
}

# The new files of the patched tree: "SOURCE<tab>PATH-IN-QEMU" for each. The pure libraries that QEMU
# uses are built as part of it: their headers keep their names ("vpmu/model.h"), the rest lies flat in
# target/i386/vpmu.
libraries='model filter validity wire transport client'
new_files() {
    local f library
    while IFS= read -r -d '' f; do
        printf '%s\t%s\n' "$f" "${f#"$patches_dir/files/"}"
    done < <(find "$patches_dir/files" -type f -print0 | sort -z)
    for f in "$top"/hv/include/vpmu/*.h "$top"/hv/include/vpmu/*.def; do
        [ ! -e "$f" ] || printf '%s\tinclude/vpmu/%s\n' "$f" "${f##*/}"
    done
    for library in $libraries; do
        for f in "$top/hv/$library"/*.[ch] "$top/hv/$library"/*.def; do
            [ ! -e "$f" ] || printf '%s\ttarget/i386/vpmu/%s\n' "$f" "${f##*/}"
        done
    done
}
