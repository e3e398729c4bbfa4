# shellcheck shell=bash
# Faults of the mini-cluster, each really produced, and healing: everything is put back and started that does not run.

# shellcheck disable=SC2154 # set by scripts/minicluster or by settings
# Reads cluster_folder.

cluster_fault_names='prolog slurmd link node small-full shared-gone shared-hangs controller controller-restart'
cluster_faults_of_nodes='prolog slurmd link node'

cluster_fault() {
    local name=${1:-} node=${2:-}
    case " $cluster_fault_names " in
        *" $name "*) ;;
        *) cluster_refuse "fault: '$name' is none; there are: $cluster_fault_names" ;;
    esac
    case " $cluster_faults_of_nodes " in
        *" $name "*) cluster_check_node "$node" ;;
        *) [ -z "$node" ] || cluster_refuse "fault $name: it concerns no single node" ;;
    esac
    "cluster_fault_${name//-/_}" "$node" || cluster_fail "fault $name: it could not be produced"
    [ "$name" = controller-restart ] || : >"$cluster_folder/faults/$name${node:+-$node}"
    cluster_say "fault $name${node:+ on $node}: done"
}

# From now on each job's prolog on that node fails, since it finds the fault on record: Slurm drains the node and requeues the
# job, held.
cluster_fault_prolog() { :; }

cluster_fault_slurmd() { cluster_kill slurmd "$1"; }

cluster_fault_link() { cluster_set_link "$1" down; }

cluster_fault_node() { cluster_kill slurmd "$1" && cluster_set_link "$1" down; }

cluster_filling() { printf '%s/fs/small/.minicluster-filling' "$cluster_folder"; }

# A target that is not mounted would fill the machine's disk; nor is more written than the small one has, 128 MiB.
cluster_fault_small_full() {
    cluster_is_mounted small || cluster_refuse "fault small-full: $cluster_folder/fs/small is not mounted"
    # A job at work there gives its space back when it fails for want of more.
    cluster_wait_for 20 "it does not get full" cluster_fill_small
}

cluster_fill_small() {
    dd if=/dev/zero of="$(cluster_filling)" bs=4K count=32K oflag=append conv=notrunc,fsync 2>/dev/null || true
    [ "$(df --output=avail "$cluster_folder/fs/small" | tail -n 1)" -lt 64 ] # KiB; a few blocks serve none but the metadata
}

# For all hosts at once and for good, as when the server has died: each access is an I/O error until it is mounted anew.
cluster_fault_shared_gone() {
    cluster_is_mounted shared && "$cluster_folder/lib/shut_down_file_system" "$cluster_folder/fs/shared"
}

# Who writes waits, as on a file system that is mounted to wait for its server. Not even SIGKILL ends it before it is back.
cluster_fault_shared_hangs() {
    cluster_is_mounted shared && fsfreeze --freeze "$cluster_folder/fs/shared"
}

# What it knew of the last seconds is lost: it saves its state now and then.
cluster_fault_controller() { cluster_kill slurmctld; }

# In an orderly way, as an update does it; afterwards all is well.
cluster_fault_controller_restart() {
    scontrol shutdown slurmctld
    cluster_wait_for 20 "slurmctld does not end" cluster_has_ended slurmctld
    cluster_start_slurmctld
}

cluster_heal() {
    local disk node
    cluster_thaw
    for disk in shared small; do
        if ! cluster_is_mounted "$disk" || [ -e "$cluster_folder/faults/$disk-gone" ]; then
            cluster_give_back "$disk"
        fi
    done
    rm -f -- "$(cluster_filling)" "$cluster_folder"/faults/*
    for node in $(cluster_node_names); do
        cluster_keeper "$node" >/dev/null || cluster_make_node "$node"
        cluster_set_link "$node" up
    done
    cluster_start_daemons
    cluster_resume_nodes
    cluster_wait_for 30 "not all nodes are ready" cluster_all_nodes_ready
    cluster_remove_left_job_file_systems
}

# A process that has a file open keeps what was taken away busy; it gets a while to die of its errors.
cluster_give_back() {
    local try
    for ((try = 0; try < 50; try++)); do
        if ! cluster_is_mounted "$1" || umount "$cluster_folder/fs/$1" 2>/dev/null; then
            break
        fi
        sleep 0.1
    done
    ! cluster_is_mounted "$1" || umount --lazy "$cluster_folder/fs/$1"
    cluster_mount_disk "$1" || cluster_fail "$cluster_folder/fs/$1 could not be mounted again"
}

# Of jobs that ended while a node of theirs could not run its epilog.
cluster_remove_left_job_file_systems() {
    local brick node job
    for brick in "$cluster_folder"/disks/n*/beeond-*; do
        [ -d "$brick" ] || continue
        node=$(basename "$(dirname "$brick")")
        job=${brick##*-}
        [ -n "$(squeue --noheader --jobs="$job" --states=running,completing,configuring --format=%i 2>/dev/null)" ] ||
            cluster_in "$node" env SLURM_JOB_ID="$job" SLURMD_NODENAME="$node" "$cluster_folder/etc/epilog"
    done
}
