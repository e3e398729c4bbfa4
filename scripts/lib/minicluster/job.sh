# shellcheck shell=bash
# What Slurm runs on a node before and after each job: there the file system that `#SBATCH --beeond` asks for is made over the
# job's nodes, and removed. The hooks in the cluster's folder set the variables of settings and call job_prolog and job_epilog.
#
# With GlusterFS every node of the job serves a folder of its own disk and mounts them all as one. No management daemon is
# needed: server and client read what they are to do from a file, so that a job touches its own nodes only, as with BeeOND.

# shellcheck disable=SC2154 # set by settings
# Reads cluster_folder, cluster_beeond (gluster or folder) and what Slurm sets in a prolog and epilog, which is no PATH.

PATH=/usr/sbin:/usr/bin:/sbin:/bin

job_set_names() {
    job_mount=$cluster_folder/fs/beeond/$SLURM_JOB_ID
    job_brick=$cluster_folder/fs/node/beeond-$SLURM_JOB_ID
    job_run=$cluster_folder/run/$SLURMD_NODENAME/beeond-$SLURM_JOB_ID
    job_log=$cluster_folder/log/glusterfs-$SLURMD_NODENAME.log
    job_port=$((20000 + SLURM_JOB_ID % 20000))
}

job_say() {
    printf '%(%FT%T)T job %s: %s\n' -1 "$SLURM_JOB_ID" "$*"
}

# A prolog that fails: Slurm drains the node and requeues the job.
job_fail() {
    job_say "$*"
    exit 1
}

job_prolog() {
    job_set_names
    exec >>"$cluster_folder/log/jobs-$SLURMD_NODENAME.log" 2>&1
    [ ! -e "$cluster_folder/faults/prolog-$SLURMD_NODENAME" ] || job_fail "the prolog fails, as asked for"
    [ -n "${SPANK_BEEOND:-}" ] || return 0
    mountpoint -q "$cluster_folder/fs/node" || job_fail "the disk of the node is not mounted"
    mkdir -p "$job_brick" "$job_mount" || job_fail "no folders"
    "job_mount_$cluster_beeond"
    mountpoint -q "$job_mount" || job_fail "$job_mount is not mounted"
    chown "$SLURM_JOB_UID" "$job_mount"
    job_say "$job_mount is mounted"
}

# Without GlusterFS: a folder of the machine that all nodes see, mounted where the job expects its file system.
job_mount_folder() {
    mkdir -p "$cluster_folder/disks/beeond-$SLURM_JOB_ID"
    mount --bind "$cluster_folder/disks/beeond-$SLURM_JOB_ID" "$job_mount"
}

job_mount_gluster() {
    local nodes node try
    nodes=$(scontrol show hostnames "${SLURM_JOB_NODELIST:-$SLURM_NODELIST}") || job_fail "its nodes are not known"
    mkdir -p "$job_run"
    # shellcheck disable=SC2086 # one word a node
    job_server_file $nodes >"$job_run/server.vol"
    # shellcheck disable=SC2086
    job_client_file $nodes >"$job_run/client.vol"
    glusterfsd -f "$job_run/server.vol" -p "$job_run/server.pid" -l "$job_log" || job_fail "glusterfsd does not start"
    for node in $nodes; do
        for ((try = 0; try < 400; try++)); do
            (: >"/dev/tcp/$node/$job_port") 2>/dev/null && continue 2
            sleep 0.05
        done
        job_fail "$node does not serve its part"
    done
    # The nodes see each other's writes at once, as MPI-IO needs: nothing is cached on the client's side.
    glusterfs -f "$job_run/client.vol" -p "$job_run/client.pid" -l "$job_log" \
        --attribute-timeout=0 --entry-timeout=0 --direct-io-mode=enable "$job_mount" || job_fail "glusterfs does not mount"
}

# The nodes' disks lie on one disk of the machine, so each is a part of its free space.
job_server_file() {
    cat <<TEXT
volume disk
    type storage/posix
    option directory $job_brick
    option shared-brick-count $#
end-volume
volume locks
    type features/locks
    subvolumes disk
end-volume
volume part
    type performance/io-threads
    subvolumes locks
end-volume
volume server
    type protocol/server
    option transport-type tcp
    option transport.address-family inet
    option transport.socket.listen-port $job_port
    option auth.addr.part.allow *
    option rpc-auth-allow-insecure on
    subvolumes part
end-volume
TEXT
}

job_client_file() {
    local node
    for node in "$@"; do
        cat <<TEXT
volume $node
    type protocol/client
    option transport-type tcp
    option remote-host $node
    option remote-port $job_port
    option remote-subvolume part
end-volume
TEXT
    done
    cat <<TEXT
volume job
    type cluster/distribute
    subvolumes $*
end-volume
TEXT
}

# Does what it can and never fails: a failing epilog would drain the node. What is left over `heal` removes.
job_epilog() {
    job_set_names
    exec >>"$cluster_folder/log/jobs-$SLURMD_NODENAME.log" 2>&1
    [ -d "$job_brick" ] || return 0
    job_remove_file_system
    job_say "$job_mount is removed"
}

job_remove_file_system() {
    local server
    if mountpoint -q "$job_mount" || [ "$(stat -f -c %T "$job_mount" 2>&1)" = "" ]; then
        umount "$job_mount" || umount --lazy "$job_mount"
    fi
    if [ -s "$job_run/server.pid" ]; then
        read -r server <"$job_run/server.pid"
        kill -KILL "$server"
    fi
    rm -rf --one-file-system -- "$job_brick" "$job_run"
    # The last node of the job puts out the light.
    if ! compgen -G "$cluster_folder/disks/*/beeond-$SLURM_JOB_ID" >/dev/null; then
        rm -rf --one-file-system -- "$cluster_folder/disks/beeond-$SLURM_JOB_ID"
        rmdir -- "$job_mount"
    fi
    return 0
}

# Variables of every task and batch script: what it prints as `export NAME=VALUE`.
job_task_prolog() {
    # Temporary files stay on the nodes, and within the cluster's folder.
    printf 'export TMPDIR=%s/fs/node/tmp\n' "$cluster_folder"
    # Open MPI over UCX where it is there: over its own TCP transport one run in ten of eight ranks on four nodes crashed in
    # MPI_Init, by a message to a rank that was not ready (Open MPI 4.1.4, Slurm 22.05.8; open-mpi/ompi#12495). UCX keeps it.
    [ -n "${OMPI_MCA_pml:-}" ] ||
        printf 'export OMPI_MCA_%s\n' pml=ucx,ob1 pml_ucx_tls=any pml_ucx_devices=any
}
