# shellcheck shell=bash
# The mini-cluster's network: a bridge inside `control`, a link from it to each node, and one link to the machine, which is
# the cluster's login host. That link is all that the machine sees, and it vanishes with the bridge's namespace.

# shellcheck disable=SC2154 # set by scripts/minicluster or by settings
# Reads cluster_folder, cluster_nodes, cluster_network (the first three numbers of the addresses) and cluster_link (the name
# of the machine's end).

cluster_login_address() { printf '%s.1' "$cluster_network"; }
cluster_control_address() { printf '%s.2' "$cluster_network"; }
cluster_node_address() { printf '%s.%d' "$cluster_network" "$((10 + ${1#n}))"; }

# A /24 that the machine has no route into, the same for a folder as long as it is free.
cluster_choose_network() {
    local start=$1 routes try
    routes=$(ip -4 route show table all; ip -4 -o address show)
    for ((try = 0; try < 256; try++)); do
        cluster_network=10.77.$(((start + try) % 256))
        grep -qF " $cluster_network." <<<" $routes" || return 0
    done
    cluster_refuse "all of 10.77.0.0/16 is in use on this machine"
}

cluster_hosts_file() {
    local host
    printf '127.0.0.1 localhost\n%s %s\n%s control\n' \
        "$(cluster_login_address)" "$(uname -n)" "$(cluster_control_address)"
    for host in $(cluster_node_names); do
        printf '%s %s\n' "$(cluster_node_address "$host")" "$host"
    done
}

cluster_connect_control() {
    ip link add "$cluster_link" type veth peer name login netns "$(cluster_keeper control)"
    ip address add "$(cluster_login_address)/24" dev "$cluster_link"
    ip link set "$cluster_link" up
    cluster_network_of control ip -batch - <<TEXT
link set lo up
link add nodes type bridge
address add $(cluster_control_address)/24 dev nodes
link set nodes up
link set login master nodes
link set login up
TEXT
}

cluster_connect_node() {
    cluster_network_of control ip -batch - <<TEXT
link add $1 type veth peer name eth0 netns $(cluster_keeper "$1")
link set $1 master nodes
link set $1 up
TEXT
    cluster_network_of "$1" ip -batch - <<TEXT
link set lo up
address add $(cluster_node_address "$1")/24 dev eth0
link set eth0 up
TEXT
}

# As if somebody pulled the cable at the switch, or put it back.
cluster_set_link() {
    cluster_network_of control ip link set "$1" "$2"
}

cluster_link_is_up() {
    cluster_network_of control ip -o link show "$1" 2>/dev/null | grep -q '[<,]UP[,>]'
}
