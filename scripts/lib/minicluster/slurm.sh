# shellcheck shell=bash
# The mini-cluster's Slurm: its configuration and its daemons. munged, MariaDB, slurmdbd and slurmctld run on `control`, a
# slurmd on each node.

# shellcheck disable=SC2154 # set by scripts/minicluster or by settings
# Reads cluster_folder, cluster_nodes, cluster_cpus and the network's addresses.

cluster_write_configuration() {
    local etc=$cluster_folder/etc hook
    (umask 077 && head -c 1024 /dev/urandom >"$etc/munge.key")
    cluster_hosts_file >"$etc/hosts"
    cluster_slurm_conf >"$etc/slurm.conf"
    (umask 077 && cluster_slurmdbd_conf >"$etc/slurmdbd.conf")
    printf 'CgroupPlugin=cgroup/v1\n' >"$etc/cgroup.conf" # named so that slurmd does not look for another one; none is used
    # Where PMIx makes the folders of a step: their names are the same on all nodes, so it has to be a disk of the node's own.
    printf 'PMIxCliTmpDirBase=%s/fs/node/tmp\n' "$cluster_folder" >"$etc/mpi.conf"
    printf 'required %s/lib/beeond.so %s/fs/beeond\n' "$cluster_folder" "$cluster_folder" >"$etc/plugstack.conf"
    cp "$cluster_library/job.sh" "$cluster_folder/lib/job.sh" # the checkout may change while it runs
    for hook in prolog epilog task_prolog; do
        printf '#!/bin/bash\n. %q\n. %q\njob_%s\n' "$etc/settings" "$cluster_folder/lib/job.sh" "$hook" >"$etc/$hook"
        chmod 755 "$etc/$hook"
    done
}

cluster_slurm_conf() {
    local host topology
    # What slurmd finds here, in its words: task affinity binds ranks to real cores, so no core may be invented. A smaller
    # number of CPUs is a node with fewer single-threaded cores.
    topology=$(slurmd -C | sed -n 's/.*\(CPUs=.*\) RealMemory=.*/\1/p')
    [ "$cluster_cpus" = "$(nproc)" ] && [ -n "$topology" ] ||
        topology="CPUs=$cluster_cpus Boards=1 SocketsPerBoard=1 CoresPerSocket=$cluster_cpus ThreadsPerCore=1"
    cat <<TEXT
ClusterName=minicluster
SlurmctldHost=control($(cluster_control_address))
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$cluster_folder/run/munge.socket
StateSaveLocation=$cluster_folder/spool/control
SlurmdSpoolDir=$cluster_folder/spool/%n
SlurmctldPidFile=$cluster_folder/run/slurmctld.pid
SlurmdPidFile=$cluster_folder/run/%n/slurmd.pid
SlurmctldLogFile=$cluster_folder/log/slurmctld.log
SlurmdLogFile=$cluster_folder/log/slurmd-%n.log
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=$(cluster_control_address)
AccountingStoragePass=$cluster_folder/run/munge.socket
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=5
MpiDefault=pmix
ProctrackType=proctrack/linuxproc
TaskPlugin=task/affinity
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=2,bf_interval=2,bf_continue
CompleteWait=0
KillWait=3
MinJobAge=600
SlurmdTimeout=10
SlurmctldTimeout=10
ReturnToService=1
PrologFlags=Alloc
Prolog=$cluster_folder/etc/prolog
Epilog=$cluster_folder/etc/epilog
TaskProlog=$cluster_folder/etc/task_prolog
PrologEpilogTimeout=60
PlugStackConfig=$cluster_folder/etc/plugstack.conf
TEXT
    for host in $(cluster_node_names); do
        printf 'NodeName=%s NodeAddr=%s %s RealMemory=%d State=UNKNOWN\n' \
            "$host" "$(cluster_node_address "$host")" "$topology" "$(cluster_node_memory)"
    done
    printf 'PartitionName=batch Nodes=n[1-%d] Default=YES MaxTime=1:00:00 State=UP OverSubscribe=NO\n' "$cluster_nodes"
    printf 'PartitionName=whole Nodes=n[1-%d] MaxTime=1:00:00 State=UP OverSubscribe=EXCLUSIVE\n' "$cluster_nodes"
}

# MiB: the nodes share the machine's memory.
cluster_node_memory() {
    awk -v nodes="$cluster_nodes" '/^MemTotal:/ { print int($2 / 1024 / nodes) }' /proc/meminfo
}

cluster_slurmdbd_conf() {
    cat <<TEXT
AuthType=auth/munge
AuthInfo=socket=$cluster_folder/run/munge.socket
DbdHost=control
DbdAddr=$(cluster_control_address)
SlurmUser=root
LogFile=$cluster_folder/log/slurmdbd.log
PidFile=$cluster_folder/run/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=root
StorageLoc=slurm
CommitDelay=1
TEXT
}

# A database for as long as the cluster runs: nothing is synchronised to the disk, and who can open the socket may do all.
cluster_mariadbd=(mariadbd --no-defaults --user=root --skip-grant-tables --skip-networking --performance-schema=OFF
    --innodb-log-file-size=8M --innodb-buffer-pool-size=32M --innodb-flush-method=nosync --innodb-doublewrite=0
    --innodb-lock-wait-timeout=900)

# The tables that MariaDB itself needs; slurmdbd keeps procedures in them.
cluster_make_database() {
    local tables=/usr/share/mysql/mysql_system_tables.sql
    [ -e "$tables" ] || tables=/usr/share/mariadb/mariadb_system_tables.sql
    mkdir -p "$cluster_folder/database/mysql"
    chmod 700 "$cluster_folder/database"
    { printf 'USE mysql;\n' && cat "$tables"; } | cluster_in control "${cluster_mariadbd[@]}" \
        --datadir="$cluster_folder/database" --bootstrap >"$cluster_folder/log/mariadbd.log" 2>&1 || cluster_fail "MariaDB's tables could not be made"
}

# cluster_wait_for SECONDS WHAT COMMAND...
cluster_wait_for() {
    local deadline=$((SECONDS + $1))
    until "${@:3}" >/dev/null 2>&1; do
        ((SECONDS < deadline)) || cluster_fail "$2 after $1 s; see $cluster_folder/log"
        sleep 0.05
    done
}

# cluster_pid_file DAEMON [NODE]
cluster_pid_file() {
    printf '%s/run/%s%s.pid' "$cluster_folder" "${2:+$2/}" "$1"
}

# cluster_runs DAEMON [NODE]: is it there and not a zombie?
cluster_runs() {
    # shellcheck disable=SC2016 # the inner shell expands it
    cluster_in "${2:-control}" bash -c 'read -r id <"$0" && read -r name <"/proc/$id/comm" && [ "$name" = "$1" ] &&
        ! grep -q "^State:.Z" "/proc/$id/status"' "$(cluster_pid_file "$@")" "$1" 2>/dev/null
}

cluster_has_ended() {
    ! cluster_runs "$@"
}

# cluster_kill DAEMON [NODE]: at once, without a chance to tidy up. Its pid file goes, so that a new process which happens
# to have the number is not taken for it.
cluster_kill() {
    # shellcheck disable=SC2016 # the inner shell expands it
    cluster_in "${2:-control}" bash -c 'read -r id <"$0" && kill -KILL "$id" && rm -f -- "$0"' "$(cluster_pid_file "$@")"
}

cluster_start_munged() {
    rm -f "$cluster_folder/run/munge.socket" "$cluster_folder/run/munge.socket.lock"
    cluster_in control munged --force --num-threads=2 --key-file="$cluster_folder/etc/munge.key" \
        --socket="$cluster_folder/run/munge.socket" --pid-file="$(cluster_pid_file munged)" \
        --log-file="$cluster_folder/log/munged.log" --seed-file="$cluster_folder/run/munged.seed" \
        </dev/null >>"$cluster_folder/log/start.log" 2>&1
}

cluster_start_mariadbd() {
    local socket=$cluster_folder/run/mariadbd.socket
    rm -f "$socket"
    # A shell of its own inside, so that the daemon's parent is the keeper.
    # shellcheck disable=SC2016 # the inner shell expands it
    cluster_in control bash -c 'setsid "$@" &' mariadbd "${cluster_mariadbd[@]}" \
        --datadir="$cluster_folder/database" --socket="$socket" --pid-file="$(cluster_pid_file mariadbd)" </dev/null >>"$cluster_folder/log/mariadbd.log" 2>&1
    cluster_wait_for 30 "MariaDB does not answer" test -S "$socket"
}

cluster_start_slurmdbd() {
    cluster_in control env MYSQL_UNIX_PORT="$cluster_folder/run/mariadbd.socket" slurmdbd \
        </dev/null >>"$cluster_folder/log/start.log" 2>&1
    cluster_wait_for 30 "slurmdbd does not answer" cluster_registered
}

# Without it in the database, no job is accounted.
cluster_registered() {
    local known
    known=$(sacctmgr --noheader --parsable2 list cluster format=cluster) || return 1
    [ "$known" = minicluster ] || sacctmgr --immediate add cluster minicluster
}

cluster_start_slurmctld() {
    cluster_in control slurmctld </dev/null >>"$cluster_folder/log/start.log" 2>&1
    cluster_wait_for 30 "slurmctld does not answer" cluster_controller_answers
}

cluster_controller_answers() {
    scontrol ping | grep -q 'UP$\|is UP'
}

cluster_start_slurmd() {
    cluster_in "$1" slurmd -N "$1" </dev/null >>"$cluster_folder/log/start.log" 2>&1
}

# Starts the daemons that do not run; says which.
cluster_start_daemons() {
    local daemon host
    for daemon in munged mariadbd slurmdbd slurmctld; do
        cluster_runs "$daemon" || "cluster_start_$daemon"
    done
    for host in $(cluster_node_names); do
        cluster_runs slurmd "$host" || cluster_start_slurmd "$host"
    done
}

# NODE STATE, a line each; a node that slurmctld cannot reach has a * behind its state.
cluster_node_states() {
    sinfo --noheader --Node --partition=batch --format='%N %T'
}

# Of a node that takes jobs.
cluster_ready_states='idle|mixed|allocated|completing'

cluster_all_nodes_ready() {
    [ "$(cluster_node_states | grep -cE "^\S+ ($cluster_ready_states)$")" -eq "$cluster_nodes" ]
}

cluster_resume_nodes() {
    local node state
    while read -r node state; do
        case $state in
            *down* | *drain* | *fail*) scontrol update nodename="$node" state=resume || true ;;
        esac
    done < <(cluster_node_states)
}
