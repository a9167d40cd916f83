# SPDX-License-Identifier: BSD-3-Clause
# What setup and suite share: messages, the release of this machine, and apt's options.

release= # codename of the machine's Debian release, set by need_debian

die() {
    echo "${0##*/}: $*" >&2
    exit 1
}

say() {
    echo "== $*"
}

need_debian() {
    local id name
    id=$(. /etc/os-release && echo "${ID:-}")
    name=$(. /etc/os-release && echo "${PRETTY_NAME:-this system}")
    release=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
    case $id/$release in
    debian/bookworm | debian/trixie) ;;
    *) die "$name is not Debian 12 or 13: install what build-aux/packages lists by hand, then use make SETUP=no" ;;
    esac
}

need_root() { # need_root WHAT
    [ "$(id -u)" = 0 ] || die "not root: run this as root once to install: $1"
}

apt_get() {
    DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=600 -o Acquire::Retries=3 \
        -o Dpkg::Use-Pty=0 "$@" </dev/null
}

# Run a command quietly; its output is shown only if it fails.
quietly() {
    local out status=0
    out=$("$@" 2>&1) || status=$?
    [ $status = 0 ] || echo "$out" | tail -n 15 >&2
    return $status
}
