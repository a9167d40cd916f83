# SPDX-License-Identifier: BSD-3-Clause
# Completion of vpmuctl in bash: commands and options are what --help lists, leases what vpmud has.

_vpmuctl_leases() { # _vpmuctl_leases VPMUCTL: numbers, and names of one word
    local control=() i
    for ((i = 2; i + 1 < COMP_CWORD; i++)); do
        [[ ${COMP_WORDS[i]} != --control ]] || control=(--control "${COMP_WORDS[i + 1]}")
    done
    "$1" leases "${control[@]}" 2>/dev/null | awk 'NR > 1 { print $1; if (NF == 7) print $7 }'
}

_vpmuctl_options() { # _vpmuctl_options VPMUCTL COMMAND
    "$1" "$2" --help 2>/dev/null | grep -oE -- '--[a-z]+(-[a-z]+)*' | sort -u
}

_vpmuctl() {
    local command=${COMP_WORDS[1]:-} word=$2 before=$3 i
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        mapfile -t COMPREPLY < <(compgen -W "$("$1" --help 2>/dev/null | awk '/^  [a-z]/ { print $1 }')" -- "$word")
        return
    fi
    if [ "$command" = run ]; then
        for ((i = 2; i < COMP_CWORD; i++)); do
            [ "${COMP_WORDS[i]}" = -- ] || continue
            mapfile -t COMPREPLY < <(compgen -c -f -- "$word")
            return
        done
    fi
    case $before in
        --control | --socket | --host) mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
        -n | --counters | --least | -f | --fixed | -C | --cpus | --name | -d | --delay) ;;
        *)
            case $command,$word in
                *,-*) mapfile -t COMPREPLY < <(compgen -W "$(_vpmuctl_options "$1" "$command")" -- "$word") ;;
                explain,* | revoke,*) mapfile -t COMPREPLY < <(compgen -W "$(_vpmuctl_leases "$1")" -- "$word") ;;
                fleet,*) mapfile -t COMPREPLY < <(compgen -W 'nova labels resources' -- "$word") ;;
            esac
            ;;
    esac
}

complete -F _vpmuctl vpmuctl
