# shellcheck shell=bash
# Sourced by every job: a folder of the case's own on the file system under test, and nothing else.
#
#   iogauge_case_folder [--mountpoint PATH] [--quota PYTHON COMMAND] NAME PATH BYTES [MOUNT_TYPE...]
#
# Refuses (exit 2, before anything is made) a PATH that is empty, relative, the root folder, missing, read-only, mounted as
# something else than the MOUNT_TYPEs, with less than BYTES free or left of the quota; and a --mountpoint that is none. Then
# makes PATH/iogauge-case.XXXXXXXX, exports it as IOGAUGE_CASE_DIR, and removes it when the job ends, however it ends. The
# folder's name is in case_folder.txt before the folder exists, and in the folder's marker file, so that what a killed job
# leaves can be found and known for ours (iogauge/case_folders.py).
#
#   iogauge_layout FILE_SYSTEM_TYPE [ARGUMENT...]      sets the folder's layout as the site asks, and records what it is then
#   iogauge_data_file_layout FILE_SYSTEM_TYPE          records that of a data file that the kernel made
#   iogauge_ended CODE                                 records how the kernel ended; if badly, also what is free by then, and
#                                                      whether a quota has been used up
#   iogauge_darshan LIBRARY PROGRAM                    refuses what cannot be run under Darshan by preloading LIBRARY
#   iogauge_once_more NAME COMMAND...                  after a measured run that ended well, one more in the folder NAME of the
#                                                      case's; keeps NAME.out, and NAME_exit_code.txt if it ended badly

# How long the guard waits for space: what the case before removed may be freed late (Lustre, BeeGFS).
: "${IOGAUGE_GUARD_WAIT_SECONDS:=30}"

iogauge_refuse() {
    printf 'iogauge: guard: %s\n' "$*" >&2
    exit 2
}

iogauge_case_folder() {
    local name path bytes mounted type fits mountpoint='' python='' quota='' has_mountpoint=''
    while :; do
        case $1 in
            --mountpoint)
                has_mountpoint=yes mountpoint=$2
                shift 2
                ;;
            --quota)
                python=$2 quota=$3
                shift 3
                ;;
            *) break ;;
        esac
    done
    name=$1 path=$2 bytes=$3
    shift 3
    [ -n "$path" ] || iogauge_refuse "file system $name: its path is empty here; was it requested from the scheduler?"
    case $path in
        /) iogauge_refuse "file system $name: its path is the root folder" ;;
        /*) ;;
        *) iogauge_refuse "file system $name: its path $path is not absolute" ;;
    esac
    [ -d "$path" ] || iogauge_refuse "file system $name: $path is not a folder here"
    [ -w "$path" ] || iogauge_refuse "file system $name: $path cannot be written"
    if [ -n "$has_mountpoint" ]; then
        [ -n "$mountpoint" ] || iogauge_refuse "file system $name: its mount point is empty here"
        mountpoint -q -- "$mountpoint" || iogauge_refuse "file system $name: $mountpoint is not a mount point here"
    fi
    mounted=$(df --output=fstype -- "$path" | tail -n 1) || iogauge_refuse "file system $name: df $path failed"
    if [ $# -gt 0 ]; then
        fits=no
        for type in "$@"; do
            [ "$mounted" = "$type" ] && fits=yes
        done
        [ "$fits" = yes ] || iogauge_refuse "file system $name: $path is mounted as $mounted, not as $*"
    fi
    iogauge_remove_orphans "$path"
    iogauge_space "$name" "$path" "$bytes"
    [ -z "$quota" ] || iogauge_quota "$name" "$bytes" "$python" "$quota"

    IOGAUGE_CASE_DIR=$(mktemp -u "$path/iogauge-case.XXXXXXXX")
    export IOGAUGE_CASE_DIR
    iogauge_bytes=$bytes
    iogauge_name_file=$PWD/case_folder.txt
    printf '%s\n' "$IOGAUGE_CASE_DIR" >"$iogauge_name_file" || iogauge_refuse "the stage folder $PWD cannot be written"
    # A second signal must not end the removal.
    trap 'trap "" HUP INT TERM; iogauge_remove_case_folder' EXIT
    trap 'exit 129' HUP
    trap 'exit 130' INT
    trap 'exit 143' TERM
    mkdir -- "$IOGAUGE_CASE_DIR" || iogauge_refuse "file system $name: $IOGAUGE_CASE_DIR cannot be made"
    printf '%s\n' "$IOGAUGE_CASE_DIR" "$(iogauge_job)" >"$IOGAUGE_CASE_DIR/.iogauge-case" ||
        iogauge_refuse "file system $name: $IOGAUGE_CASE_DIR cannot be written"
    df --output=source,fstype,target -- "$path" | tail -n 1 >file_system.txt
}

# Where this job began, and its number there; empty where there is no Slurm. ($HOSTNAME may be the login node's.)
iogauge_job() {
    printf '%s' "${SLURM_JOB_ID:+$SLURM_CLUSTER_NAME:$(uname -n):$SLURM_JOB_ID}"
}

# What a job has left on a disk of this node that was killed with the node, and nobody else can see: folders with our marker,
# of this user's jobs that began on this host and that Slurm no longer knows. Without Slurm's word none: another cluster's
# job may be at work on a file system that both see.
iogauge_remove_orphans() {
    local name job jobs='' here IOGAUGE_CASE_DIR iogauge_name_file=/dev/null
    here=${SLURM_CLUSTER_NAME:-}:$(uname -n)
    for IOGAUGE_CASE_DIR in "$1"/iogauge-case.*; do
        [ -O "$IOGAUGE_CASE_DIR" ] && [ ! -L "$IOGAUGE_CASE_DIR" ] || continue
        { read -r name && read -r job; } 2>/dev/null <"$IOGAUGE_CASE_DIR/.iogauge-case" || continue
        [ "$name" = "$IOGAUGE_CASE_DIR" ] && [ "${job%:*}" = "$here" ] || continue
        [ -n "$jobs" ] || jobs=$(timeout 60 squeue --me --noheader --format=%A) || return 0
        grep -qx -- "${job##*:}" <<<"$jobs" && continue
        printf 'iogauge: job %s is gone, and left %s: it is removed\n' "${job##*:}" "$IOGAUGE_CASE_DIR" >&2
        iogauge_remove_case_folder
    done
}

# Until SECONDS reaches $1, sleep a little; then fail.
iogauge_wait_until() {
    [ "$SECONDS" -lt "$1" ] && sleep 2
}

iogauge_space() {
    local name=$1 path=$2 bytes=$3 size free until=$((SECONDS + IOGAUGE_GUARD_WAIT_SECONDS))
    while :; do
        read -r size free < <(df --output=size,avail -B1 -- "$path" | tail -n 1)
        [ -n "$free" ] || iogauge_refuse "file system $name: df $path failed"
        [ "$free" -ge "$bytes" ] && return
        # No waiting for what can never be.
        [ "$size" -ge "$bytes" ] && iogauge_wait_until "$until" && continue
        iogauge_refuse "file system $name: $free bytes are free in $path, the case writes $bytes"
    done
}

# The site's quota command, read by iogauge/quota.py: it fits (0), not yet (10), never (11), or nobody knows.
iogauge_quota() {
    local name=$1 bytes=$2 python=$3 command=$4 said code until=$((SECONDS + IOGAUGE_GUARD_WAIT_SECONDS))
    while :; do
        said=$("$python" -I -m iogauge.quota "$name" "$bytes" "$command" 2>&1)
        code=$?
        printf '%s\n' "$said" >quota.txt
        case $code in
            0) return ;;
            10) iogauge_wait_until "$until" && continue ;;
            11) ;;
            *)
                printf 'iogauge: the quota of %s is not known in the job: %s\n' "$name" "$said" >&2
                return
                ;;
        esac
        iogauge_refuse "file system $name: the case writes $bytes bytes, $said"
    done
}

iogauge_ended() {
    local said
    printf '%s\n' "$1" >exit_code.txt
    [ "$1" -ne 0 ] || return 0
    said=$(LC_ALL=C timeout 20 df -h --output=avail,size -- "$IOGAUGE_CASE_DIR" 2>&1)
    case $? in
        0) said=$(printf '%s\n' "$said" | awk 'END { print $1 " of " $2 " are free there" }')$(iogauge_over_quota) ;;
        124) said="df gives no answer there" ;;
    esac
    printf 'afterwards %s\n' "$said" >free_afterwards.txt
}

# Free space says nothing of a quota, and MPI-IO does not pass on why a write failed. Nothing is written for this question; where
# a file system cannot reserve space it has no answer, and memory is not asked, as reserving it takes it from the node.
iogauge_over_quota() {
    local said room=$IOGAUGE_CASE_DIR/room
    [ "$(timeout 20 stat -f -c %T -- "$IOGAUGE_CASE_DIR")" != tmpfs ] || return 0
    said=$(LC_ALL=C timeout 20 fallocate -l "$iogauge_bytes" "$room" 2>&1)
    [[ $said != *'quota exceeded'* ]] || printf ', and %s bytes more are refused: %s' "$iogauge_bytes" "${said##*: }"
    rm -f -- "$room"
}

# Run it with a time limit: tools of file systems hang when their servers do. Its output is only shown when it fails.
iogauge_set() {
    local said
    command -v "$1" >/dev/null || iogauge_refuse "a layout was asked for, and $1 is not in PATH here"
    said=$(timeout 60 "$@" 2>&1) || iogauge_refuse "the layout could not be set: $*: ${said//$'\n'/ / }"
}

iogauge_mountpoint_of() {
    df --output=target -- "$1" | tail -n 1
}

iogauge_layout() {
    local type=$1 mount
    shift
    if [ $# -gt 0 ]; then
        case $type in
            lustre) iogauge_set lfs setstripe "$@" "$IOGAUGE_CASE_DIR" ;;
            beeond)
                mount=$(iogauge_mountpoint_of "$IOGAUGE_CASE_DIR")
                if command -v beegfs-ctl >/dev/null; then
                    iogauge_set beegfs-ctl --setpattern --mount="$mount" \
                        ${1:+"--numtargets=$1"} ${2:+"--chunksize=$2"} "$IOGAUGE_CASE_DIR"
                else # BeeGFS 8
                    iogauge_set beegfs entry set ${1:+"--num-targets=$1"} ${2:+"--chunk-size=$2"} "$IOGAUGE_CASE_DIR"
                fi
                ;;
        esac
    fi
    iogauge_read_layout "$type" "$IOGAUGE_CASE_DIR" >layout_folder.txt 2>&1
}

iogauge_data_file_layout() {
    local file
    file=$(find "$IOGAUGE_CASE_DIR" -xdev -type f ! -name .iogauge-case | sort | head -n 1)
    [ -z "$file" ] || iogauge_read_layout "$1" "$file" >layout_file.txt 2>&1
}

# What the tools say, for iogauge/layout.py to read.
iogauge_read_layout() {
    local type=$1 path=$2 PATH=$PATH:/usr/lpp/mmfs/bin
    case $type in
        lustre) iogauge_said_by lfs getstripe -d "$path" ;;
        beeond)
            if command -v beegfs-ctl >/dev/null; then
                iogauge_said_by beegfs-ctl --getentryinfo --mount="$(iogauge_mountpoint_of "$path")" "$path"
            else
                iogauge_said_by beegfs entry info --retro "$path"
            fi
            ;;
        gpfs)
            iogauge_said_by mmlsattr -L "$path"
            stat -c 'block size: %o' -- "$path"
            ;;
    esac
}

iogauge_said_by() {
    if command -v "$1" >/dev/null; then
        timeout 60 "$@"
    else
        printf 'no tool: %s is not in PATH here\n' "$1"
    fi
}

iogauge_darshan() {
    [ -n "$1" ] || iogauge_refuse "Darshan: the path of its library is empty here; is its module loaded?"
    [ -r "$1" ] || iogauge_refuse "Darshan: there is no library $1 here"
    # A script is none either, and what it starts inherits the preload.
    if [ "$(head -c 4 -- "$(command -v "$2")" | tail -c 3)" = ELF ] && command -v ldd >/dev/null &&
        LC_ALL=C ldd "$(command -v "$2")" 2>&1 | grep -qE 'not a dynamic executable|statically linked'; then
        iogauge_refuse "Darshan: $2 is linked statically, so that nothing can be preloaded; build it linked with Darshan" \
            "(the environment's extra darshan: linked)"
    fi
    iogauge_darshan_sees_hdf5 "$2"
    iogauge_darshan_fits "$1" "$2"
}

# A runtime brings the MPI (and, linked so, the HDF5) that it was built for. Beside another one a program hangs or crashes.
iogauge_darshan_fits() {
    local what pattern needs has library
    library=$(LC_ALL=C ldd "$1" 2>&1 | awk '/not found/ { print $1; exit }')
    [ -z "$library" ] || iogauge_refuse "Darshan: $1 needs $library, which is not found here; is its module loaded?"
    for what in MPI HDF5; do
        pattern='^libmpi(ch|_[a-z0-9_]+)?[.]so'
        [ "$what" = MPI ] || pattern='^libhdf5(_openmpi|_mpich|_serial)?[.]so'
        has=$(iogauge_libraries "$(command -v -- "$2")" "$pattern")
        needs=$(iogauge_libraries "$1" "$pattern" | grep -vxF -- "$has" | head -n 1)
        if [ -n "$has" ] && [ -n "$needs" ]; then
            iogauge_refuse "Darshan: $1 is built for another $what: it needs $needs, and $2 loads ${has//$'\n'/, }; a runtime" \
                "that is built for that one is needed"
        fi
    done
}

# The names of the libraries that $1 loads and that match $2.
iogauge_libraries() {
    LC_ALL=C ldd "$1" 2>/dev/null | awk -v pattern="$2" '$1 ~ pattern { print $1 }'
}

# HDF5's functions name themselves in its messages: a program that has those names, but not its library, has it inside.
iogauge_darshan_sees_hdf5() {
    local program libraries
    program=$(command -v -- "$1") && libraries=$(LC_ALL=C ldd "$program" 2>/dev/null) || return 0
    if [[ $libraries != *hdf5* ]] && grep -qa H5Fcreate -- "$program"; then
        iogauge_refuse "Darshan: $1 has HDF5 linked statically, so that its calls would be in no log; build it with HDF5's" \
            "shared library (h5pcc -shlib), link it with Darshan (the environment's extra darshan: linked), or run it without" \
            "(-S darshan=0)"
    fi
}

iogauge_once_more() {
    local name=$1
    shift
    [ "$(cat exit_code.txt)" = 0 ] || return 0
    mkdir -- "$IOGAUGE_CASE_DIR/$name" && "$@" >"$name.out" || echo $? >"${name}_exit_code.txt"
}

# Ranks that are still being killed may write once more: try again for some seconds.
iogauge_remove_case_folder() {
    local pause said
    for pause in 0.1 0.2 0.3 0.4 1 2 3 0; do
        if [ -e "$IOGAUGE_CASE_DIR/.iogauge-case" ]; then
            find "$IOGAUGE_CASE_DIR" -xdev -mindepth 1 ! -name .iogauge-case -delete 2>/dev/null &&
                rm -f -- "$IOGAUGE_CASE_DIR/.iogauge-case"
        fi
        if said=$(LC_ALL=C rmdir -- "$IOGAUGE_CASE_DIR" 2>&1) || [[ $said = *': No such file or directory' ]]; then
            printf 'removed\n' >>"$iogauge_name_file"
            return
        fi
        sleep "$pause"
    done
    printf 'iogauge: %s could not be removed: %s\n' "$IOGAUGE_CASE_DIR" "$said" >&2
}
