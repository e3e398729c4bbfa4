# shellcheck shell=bash
# What of the mini-cluster is up: a table for people and an exit code.

# Reads cluster_folder, cluster_beeond and the settings.

cluster_status() {
    local down=0 daemon node state path disk
    cluster_is_up || {
        printf 'minicluster in %s: down\n' "$cluster_folder"
        return 1
    }
    printf 'minicluster in %s\n\n%-12s %s\n' "$cluster_folder" daemon state
    for daemon in munged mariadbd slurmdbd slurmctld; do
        cluster_status_row "$daemon" cluster_runs "$daemon" || down=1
    done
    declare -A states=()
    while read -r node state; do
        states[$node]=$state
    done < <(cluster_node_states 2>/dev/null)
    printf '\n%-12s %-12s %-7s %-5s %s\n' node state slurmd link faults
    for node in $(cluster_node_names); do
        state=${states[$node]:-unknown}
        printf '%-12s %-12s %-7s %-5s %s\n' "$node" "$state" "$(cluster_up_or_down cluster_runs slurmd "$node")" \
            "$(cluster_up_or_down cluster_link_is_up "$node")" "$(compgen -G "$cluster_folder/faults/prolog-$node" >/dev/null && echo prolog)"
    done
    cluster_all_nodes_ready 2>/dev/null || down=1
    printf '\n%-12s %-9s %7s %7s  %s\n' 'file system' type size free path
    for disk in shared small; do
        path=$cluster_folder/fs/$disk
        if cluster_disk_works "$disk"; then
            read -r state < <(df --output=fstype,size,avail -h "$path" | tail -n 1)
            # shellcheck disable=SC2086 # three words
            printf '%-12s %-9s %7s %7s  %s\n' "$disk" $state "$path"
        else
            printf '%-12s %-9s %7s %7s  %s\n' "$disk" gone - - "$path"
            down=1
        fi
    done
    printf "%-12s %-9s %7s %7s  %s\n" node "each node" - - "$cluster_folder/fs/node"
    printf "%-12s %-9s %7s %7s  %s\n" beeond "$cluster_beeond" - - "$cluster_folder/fs/beeond/JOBID, for jobs with --beeond"
    return "$down"
}

cluster_up_or_down() {
    if "$@"; then echo up; else echo down; fi
}

cluster_status_row() {
    local name=$1 state
    shift
    state=$(cluster_up_or_down "$@")
    printf '%-12s %s\n' "$name" "$state"
    [ "$state" = up ]
}
