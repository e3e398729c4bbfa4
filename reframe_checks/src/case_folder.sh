# shellcheck shell=bash
# Sourced by every job: a folder of the case's own on the file system under test, and nothing else.
#
#   iogauge_case_folder NAME PATH BYTES [MOUNT_TYPE...]
#
# Refuses (exit 2, before anything is made) a PATH that is empty, relative, the root folder, missing, read-only, mounted as
# something else than the MOUNT_TYPEs, or with less than BYTES free. Then makes PATH/iogauge-case.XXXXXXXX, exports it as
# IOGAUGE_CASE_DIR, and removes it when the job ends, however it ends. The folder's name is in case_folder.txt before the
# folder exists, and in the folder's marker file, so that what a killed job leaves can be found and known for ours.

iogauge_refuse() {
    printf 'iogauge: guard: %s\n' "$*" >&2
    exit 2
}

iogauge_case_folder() {
    local name=$1 path=$2 bytes=$3 mounted free type fits
    shift 3
    [ -n "$path" ] || iogauge_refuse "file system $name: its path is empty here; was it requested from the scheduler?"
    case $path in
        /) iogauge_refuse "file system $name: its path is the root folder" ;;
        /*) ;;
        *) iogauge_refuse "file system $name: its path $path is not absolute" ;;
    esac
    [ -d "$path" ] || iogauge_refuse "file system $name: $path is not a folder here"
    [ -w "$path" ] || iogauge_refuse "file system $name: $path cannot be written"
    mounted=$(df --output=fstype -- "$path" | tail -n 1) || iogauge_refuse "file system $name: df $path failed"
    if [ $# -gt 0 ]; then
        fits=no
        for type in "$@"; do
            [ "$mounted" = "$type" ] && fits=yes
        done
        [ "$fits" = yes ] || iogauge_refuse "file system $name: $path is mounted as $mounted, not as $*"
    fi
    free=$(df --output=avail -B1 -- "$path" | tail -n 1) || iogauge_refuse "file system $name: df $path failed"
    [ "$free" -ge "$bytes" ] ||
        iogauge_refuse "file system $name: ${free// /} bytes are free in $path, the case writes $bytes"

    IOGAUGE_CASE_DIR=$(mktemp -u "$path/iogauge-case.XXXXXXXX")
    export IOGAUGE_CASE_DIR
    printf '%s\n' "$IOGAUGE_CASE_DIR" >case_folder.txt || iogauge_refuse "the stage folder $PWD cannot be written"
    trap iogauge_remove_case_folder EXIT
    trap 'exit 129' HUP
    trap 'exit 130' INT
    trap 'exit 143' TERM
    mkdir -- "$IOGAUGE_CASE_DIR" || iogauge_refuse "file system $name: $IOGAUGE_CASE_DIR cannot be made"
    printf '%s\n' "$IOGAUGE_CASE_DIR" >"$IOGAUGE_CASE_DIR/.iogauge-case" ||
        iogauge_refuse "file system $name: $IOGAUGE_CASE_DIR cannot be written"
    df --output=source,fstype,target -- "$path" | tail -n 1 >file_system.txt
}

# Ranks that are still being killed may write once more: try again for a second.
iogauge_remove_case_folder() {
    local try
    for try in 1 2 3 4 5; do
        [ -n "$IOGAUGE_CASE_DIR" ] && [ -d "$IOGAUGE_CASE_DIR" ] || return 0
        if [ -e "$IOGAUGE_CASE_DIR/.iogauge-case" ]; then
            find "$IOGAUGE_CASE_DIR" -xdev -mindepth 1 ! -name .iogauge-case -delete 2>/dev/null &&
                rm -f -- "$IOGAUGE_CASE_DIR/.iogauge-case" && rmdir -- "$IOGAUGE_CASE_DIR" && return 0
        else
            rmdir -- "$IOGAUGE_CASE_DIR" && return 0
        fi
        sleep "0.$try"
    done
    printf 'iogauge: %s could not be removed\n' "$IOGAUGE_CASE_DIR" >&2
}
