# shellcheck shell=bash
# The mini-cluster's file systems, at the same paths on the nodes and, but for the nodes' own disks, on the machine:
#
#   fs/shared   shared by all, a mounted ext4 on a sparse file
#   fs/small    the same of limited size, to be filled
#   fs/node     each node's own disk: another folder on each
#   fs/beeond   per job with --beeond, made by the prolog on the job's nodes (job.sh)
#
# fs is a mount of its own from which the namespaces receive what is mounted later; what they mount stays theirs.

# shellcheck disable=SC2154 # set by scripts/minicluster or by settings
# Reads cluster_folder.

declare -A cluster_disk_sizes=([shared]=8G [small]=128M)

cluster_make_disks() {
    local disk
    mkdir -p "$cluster_folder/disks" "$cluster_folder/fs"
    mount --bind "$cluster_folder/fs" "$cluster_folder/fs"
    mount --make-private "$cluster_folder/fs"
    mount --make-shared "$cluster_folder/fs"
    mkdir "$cluster_folder/fs"/{shared,small,node,beeond}
    for disk in shared small; do
        truncate -s "${cluster_disk_sizes[$disk]}" "$cluster_folder/disks/$disk"
        mkfs.ext4 -q -F -m 0 -b 4096 "$cluster_folder/disks/$disk"
        cluster_mount_disk "$disk"
        rmdir "$cluster_folder/fs/$disk/lost+found"
    done
}

# A new loop device each time: mount would take up the one of a file system that was shut down and is still held by a process.
# It vanishes with the mount.
cluster_mount_disk() {
    local device
    device=$(losetup --find --show "$cluster_folder/disks/$1")
    mount -t ext4 -o discard "$device" "$cluster_folder/fs/$1" || {
        losetup --detach "$device"
        return 1
    }
    losetup --detach "$device"
}

# Inside the node.
cluster_mount_node_disk() {
    mkdir -p "$cluster_folder/disks/$1/tmp"
    cluster_in "$1" mount --bind "$cluster_folder/disks/$1" "$cluster_folder/fs/node"
}

cluster_is_mounted() {
    mountpoint -q "$cluster_folder/fs/$1"
}

# What is mounted below the cluster's folder on the machine, the last first.
cluster_mounts() {
    awk -v folder="$cluster_folder/" 'index($5 "/", folder) == 1 { print $5 }' /proc/self/mountinfo | tac
}

# Nothing may be frozen when processes are to end: they would wait for it.
cluster_thaw() {
    local mounted
    while read -r mounted; do
        fsfreeze --unfreeze "$mounted" 2>/dev/null || true
    done < <(cluster_mounts)
}

cluster_unmount_all() {
    local mounted disk device
    while read -r mounted; do
        umount "$mounted" 2>/dev/null || umount --lazy "$mounted" || return 1
    done < <(cluster_mounts)
    for disk in shared small; do # a start that was killed before the mount
        while read -r device; do
            losetup --detach "$device" || return 1
        done < <(losetup --noheadings --output NAME --associated "$cluster_folder/disks/$disk" 2>/dev/null)
    done
}
