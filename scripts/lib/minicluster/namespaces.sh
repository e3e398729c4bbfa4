# shellcheck shell=bash
# The mini-cluster's own namespaces. `control`, the host where the daemons of the centre run, has namespaces for processes, shared
# memory, mounts, host name and network. Within them each node (n1, n2, ...) has those for mounts, host name and network. They
# live as long as their keeper, a sleeping process; that of `control` is the first of its process namespace. When it is
# killed, the kernel ends every process, mount and network device of the cluster; what else there is on the machine is one
# link and the mounts below the cluster's folder.
#
# The nodes share process ids and shared memory since MPICH over UCX takes all processes of one kernel for one host (it compares
# the kernel's boot id) and hangs in MPI_Finalize now and then when they are not (MPICH 4.0.2, UCX 1.13.1, over TCP).

# shellcheck disable=SC2154 # set by scripts/minicluster or by settings
# Reads cluster_folder. All commands run without descriptor 8, the cluster's lock.

# The process id of HOST's keeper, as the machine counts; fails when there is none. It is found by its name in the process
# list, which no other process has among its arguments.
cluster_keeper() {
    local found
    # shellcheck disable=SC2062 # the pattern is on standard input
    # Its exit code tells also of processes that ended meanwhile.
    found=$(grep --files-with-matches -szxF -f - /proc/[0-9]*/cmdline <<<"iogauge-minicluster:$cluster_folder:$1") ||
        [ -n "$found" ] || return 1
    found=${found#/proc/}
    printf '%s\n' "${found%%/*}"
}

# cluster_in HOST COMMAND...: run it there, in the folder where we are.
cluster_in() {
    local keeper
    keeper=$(cluster_keeper "$1") || {
        cluster_say "$1 does not run"
        return 1
    }
    # shellcheck disable=SC2016 # the inner shell expands it
    nsenter -t "$keeper" --mount --uts --ipc --net --pid -- bash -c 'cd -- "$0" 2>/dev/null || cd /; exec "$@"' "$PWD" "${@:2}" 8>&-
}

# In the network of HOST only, with the machine's files and process ids.
cluster_network_of() {
    nsenter -t "$(cluster_keeper "$1")" --net -- "${@:2}" 8>&-
}

# cluster_keep HOST COMMAND...: make HOST's namespaces; COMMAND unshares them. The keeper inherits the lock and drops it only when
# it can be found by its environment: whoever has the lock finds it.
cluster_keep() {
    local host=$1 try
    shift
    # shellcheck disable=SC2016 # the inner shells expand it
    env "IOGAUGE_MINICLUSTER_KEEPER_OF=$cluster_folder" "$@" --mount --uts --net --propagation slave -- bash -c '
        setsid env --ignore-signal=CHLD bash -c '\''
            set -e
            mount -t proc proc /proc
            mount -t tmpfs tmpfs /dev/shm
            mount -t tmpfs tmpfs /run
            printf "%s\n" "$0" >/proc/sys/kernel/hostname
            exec -a "iogauge-minicluster:$1:$0" sleep infinity 8>&-
        '\'' "$@" &
    ' keeper "$host" "$cluster_folder" </dev/null >/dev/null 2>>"$cluster_folder/log/start.log"
    for ((try = 0; try < 200; try++)); do
        cluster_keeper "$host" >/dev/null && return 0
        sleep 0.02
    done
    cluster_fail "the namespaces of $host were not made"
}

cluster_keep_control() {
    cluster_keep control unshare --pid --ipc
}

cluster_keep_node() {
    cluster_keep "$1" nsenter -t "$(cluster_keeper control)" --mount --uts --ipc --net --pid -- unshare
}

# Ends every process of the cluster and waits until the last one is gone.
cluster_end_processes() {
    local found try
    for ((try = 0; try < 500; try++)); do
        # The first process of a namespace takes all others with it, and is gone only after them.
        mapfile -t found < <(grep --files-with-matches -szxF "IOGAUGE_MINICLUSTER_KEEPER_OF=$cluster_folder" /proc/[0-9]*/environ)
        [ ${#found[@]} -gt 0 ] || return 0
        found=("${found[@]#/proc/}")
        kill -KILL "${found[@]%/environ}" 2>/dev/null || true
        sleep 0.02
    done
    cluster_say "still there after 10 s, probably waiting for a file system: processes ${found[*]%/environ}"
    return 1
}

# What a machine has to permit, tried in namespaces that vanish with the trial; says what is missing.
cluster_permitted() {
    local said
    # shellcheck disable=SC2016 # the inner shell expands it
    said=$(unshare --mount --uts --ipc --net --pid --fork -- bash -c '
        mount -t proc proc /proc 2>/dev/null || { echo "mounts are not permitted"; exit 1; }
        echo n1 2>/dev/null >/proc/sys/kernel/hostname || { echo "setting a host name is not permitted"; exit 1; }
        ip link add bridge1 type bridge 2>/dev/null || { echo "network bridges are not permitted, or the kernel has none"; exit 1; }
        ip link add veth1 type veth peer name veth2 2>/dev/null || { echo "veth links are not permitted, or the kernel has none"; exit 1; }
    ' 2>/dev/null) || {
        printf '%s\n' "${said:-namespaces (mount, UTS, network, process) are not permitted}"
        return 1
    }
    losetup --find >/dev/null 2>&1 || {
        echo "there is no free loop device"
        return 1
    }
}
