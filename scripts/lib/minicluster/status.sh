# shellcheck shell=bash
# What of the mini-cluster is up: a table for people and an exit code.

# shellcheck disable=SC2154 # set by scripts/minicluster or by settings
# Reads cluster_folder and the settings.

cluster_status() {
    local down=0 faults
    if ! cluster_is_up; then
        printf 'minicluster in %s: down\n' "$cluster_folder"
        return 1
    fi
    cluster_read_settings
    printf 'minicluster in %s\n' "$cluster_folder"
    cluster_status_of_daemons || down=1
    cluster_status_of_nodes || down=1
    cluster_status_of_file_systems || down=1
    faults=$(ls "$cluster_folder/faults")
    if [ -n "$faults" ]; then
        printf '\nfaults: %s\n' "${faults//$'\n'/ }"
        down=1
    fi
    return "$down"
}

cluster_status_of_daemons() {
    local daemon state code=0
    printf '\n%-12s %s\n' daemon state
    for daemon in munged mariadbd slurmdbd slurmctld; do
        state=$(cluster_up_or_down cluster_runs "$daemon") || code=1
        printf '%-12s %s\n' "$daemon" "$state"
    done
    return "$code"
}

cluster_status_of_nodes() {
    local node state slurmd link code=0
    local -A states=()
    if cluster_runs slurmctld; then # else sinfo would wait for it
        while read -r node state; do
            states[$node]=$state
        done < <(cluster_node_states 2>/dev/null)
    fi
    printf '\n%-12s %-12s %-7s %s\n' node Slurm slurmd link
    for node in $(cluster_node_names); do
        slurmd=$(cluster_up_or_down cluster_runs slurmd "$node") || code=1
        link=$(cluster_up_or_down cluster_link_is_up "$node") || code=1
        [[ ${states[$node]:-} =~ ^($cluster_ready_states)$ ]] || code=1
        printf '%-12s %-12s %-7s %s\n' "$node" "${states[$node]:-unknown}" "$slurmd" "$link"
    done
    return "$code"
}

cluster_status_of_file_systems() {
    local disk values path=$cluster_folder/fs format='%-12s %-10s %6s %6s  %s\n' code=0
    # shellcheck disable=SC2059 # one format for all rows
    printf "\n$format" 'file system' type size free path
    for disk in shared small; do
        if cluster_is_mounted "$disk"; then
            values=$(df --output=fstype,size,avail -h "$path/$disk" | tail -n 1)
        else
            values='gone - -' code=1
        fi
        # shellcheck disable=SC2059,SC2086 # three values
        printf "$format" "$disk" $values "$path/$disk"
    done
    # shellcheck disable=SC2059
    printf "$format" node "one a node" - - "$path/node"
    # shellcheck disable=SC2059
    printf "$format" beeond "$cluster_beeond" - - "$path/beeond/JOBID, for a job with --beeond"
    return "$code"
}

cluster_up_or_down() {
    if "$@"; then
        echo up
    else
        echo down
        return 1
    fi
}
