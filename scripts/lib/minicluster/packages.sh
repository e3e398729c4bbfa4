# shellcheck shell=bash
# What the mini-cluster needs on the machine: looked for, installed as root on Debian, and named where it cannot be had.

cluster_packages=(slurmctld slurmd slurm-client slurmdbd slurm-wlm-basic-plugins slurm-wlm-mysql-plugin libslurm-dev munge
    mariadb-server-core iproute2 e2fsprogs openmpi-bin libopenmpi-dev mpich gcc libc6-dev)
cluster_commands=(slurmctld slurmd sbatch srun sacct slurmdbd munged mariadbd ip mkfs.ext4 losetup fsfreeze nsenter unshare
    setsid cc)

cluster_missing_packages() {
    local there
    # It fails when it does not know one of them.
    there=$(dpkg-query -W -f '${Package}:${Status}\n' "$@" 2>/dev/null | sed -n 's/:install ok installed$//p') || true
    printf '%s\n' "$@" | grep -vxF -f <(printf '%s\n' "$there") || true
}

cluster_find_packages() {
    local missing=() command
    if iogauge_can_install; then
        mapfile -t missing < <(cluster_missing_packages "${cluster_packages[@]}")
        # An installation goes on to its end when start is killed; the cluster's lock must not wait for it.
        [ ${#missing[@]} -eq 0 ] || iogauge_apt_install "${missing[@]}" 8>&-
        missing=()
    fi
    for command in "${cluster_commands[@]}"; do
        command -v "$command" >/dev/null || missing+=("$command")
    done
    [ ${#missing[@]} -eq 0 ] || cluster_refuse "missing: ${missing[*]}; on Debian: apt-get install ${cluster_packages[*]}"
}

# GlusterFS is wanted, not needed.
cluster_find_glusterfs() {
    ! command -v glusterfsd >/dev/null || return 0
    iogauge_can_install || return 1
    (iogauge_apt_install glusterfs-server 8>&-) && command -v glusterfsd >/dev/null
}
