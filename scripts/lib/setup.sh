# shellcheck shell=bash
# Sourced by the scripts: everything that the project needs on a machine, found or installed, once.
#
#   iogauge_setup          compiler, MPI, parallel HDF5, CMake, Python; then .venv from requirements.lock
#   iogauge_root           the checkout
#   iogauge_work           where everything generated goes: IOGAUGE_HOME, else .iogauge in the checkout
#
# As root on Debian or Ubuntu what is missing is installed; elsewhere its names are said and the exit code is 2.

iogauge_root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd -P)
# The project's environment is its own: neither the shell's Python nor pip settings that install elsewhere reach into it.
unset PYTHONPATH PYTHONHOME VIRTUAL_ENV PIP_USER PIP_TARGET PIP_PREFIX PIP_REQUIRE_VIRTUALENV

iogauge_say() {
    printf 'iogauge: %s\n' "$*" >&2
}

iogauge_stop() {
    printf 'iogauge: error: %s\n' "$*" >&2
    exit 2
}

# HDF5's compiler wrapper cannot work below a path with a blank: what is generated then goes to the user's cache instead.
iogauge_choose_work() {
    iogauge_work=${IOGAUGE_HOME:-$iogauge_root/.iogauge}
    if [[ -z ${IOGAUGE_HOME:-} && $iogauge_work == *[[:space:]]* ]]; then
        iogauge_work=${XDG_CACHE_HOME:-~/.cache}/iogauge/$(printf '%s' "$iogauge_root" | sha256sum | cut -c1-12)
        export IOGAUGE_HOME=$iogauge_work
        iogauge_say "the checkout's path has a blank, which HDF5's compiler wrapper cannot take: working in $iogauge_work"
    fi
    if [[ $iogauge_work == *[[:space:]]* ]]; then
        iogauge_stop "IOGAUGE_HOME: $iogauge_work has a blank; HDF5's compiler wrapper cannot work there, name another folder"
    fi
}

iogauge_can_install() {
    [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null && [ -z "${IOGAUGE_NO_INSTALL:-}" ]
}

# apt_install PACKAGE...: no daemon is started; another apt is waited for; one broken download is tried again.
iogauge_apt_install() {
    local try
    export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1
    iogauge_say "installing $* (a few minutes)"
    for try in 1 2 3; do
        if apt-get -qq -o DPkg::Lock::Timeout=300 update >&2 &&
            apt-get -qq -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "$@" >/dev/null; then
            return 0
        fi
        sleep $((try * 5))
    done
    iogauge_stop "apt-get could not install: $*"
}

# The newest python3 that can make an environment: 3.10 or later, with venv and ensurepip.
iogauge_python() {
    local name
    for name in python3 python3.13 python3.12 python3.11 python3.10; do
        if command -v "$name" >/dev/null &&
            "$name" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
            command -v "$name"
            return 0
        fi
    done
    return 1
}

# Does the project's own CMake configuration find MPI and a parallel HDF5? What it says goes to LOG.
iogauge_kernels_configure() {
    local build=$1 log=$2
    rm -rf -- "$build"
    cmake -S "$iogauge_root/kernels" -B "$build" -DBUILD_TESTING=OFF -DCMAKE_C_COMPILER=mpicc >"$log" 2>&1
}

iogauge_missing_tools() {
    local tool
    for tool in cc mpicc mpirun cmake make; do
        command -v "$tool" >/dev/null || printf '%s ' "$tool"
    done
    iogauge_python >/dev/null || printf 'python3(>=3.10,venv) '
}

iogauge_say_names() {
    cat >&2 <<'TEXT'
Install these, or load them as modules, and start again:
  Debian, Ubuntu      apt-get install build-essential cmake openmpi-bin libopenmpi-dev libhdf5-openmpi-dev python3-venv
  RHEL, Rocky, Alma   dnf install epel-release && dnf install gcc make cmake openmpi-devel hdf5-openmpi-devel python3.11
                      module load mpi/openmpi-x86_64
  modules at a centre gcc, openmpi (or intel-mpi, mpich), hdf5 built with MPI (often hdf5-parallel or hdf5/...-mpi),
                      cmake 3.16 or later, python 3.10 or later
  for netCDF-4 too    libnetcdf-mpi-dev; netcdf-openmpi-devel; netcdf built with the same MPI and HDF5
TEXT
}

iogauge_find_tools() {
    local missing work=$iogauge_work
    missing=$(iogauge_missing_tools)
    if [ -z "$missing" ] && iogauge_kernels_configure "$work/probe" "$work/probe.log"; then
        rm -rf -- "$work/probe"
        return 0
    fi
    if iogauge_can_install; then
        iogauge_apt_install build-essential cmake openmpi-bin libopenmpi-dev libhdf5-openmpi-dev libnetcdf-mpi-dev python3-venv
        missing=$(iogauge_missing_tools)
    fi
    if [ -n "$missing" ]; then
        iogauge_say "missing: $missing"
        iogauge_say_names
        exit 2
    fi
    if ! iogauge_kernels_configure "$work/probe" "$work/probe.log"; then
        iogauge_say "the kernels cannot be configured; MPI or a parallel HDF5 is missing:"
        grep -A4 -m1 'CMake Error' "$work/probe.log" >&2 || tail -n 5 "$work/probe.log" >&2
        iogauge_say_names
        exit 2
    fi
    rm -rf -- "$work/probe"
}

# What the environment was made from; a change of any of it makes it anew.
iogauge_stamp() {
    {
        cat "$iogauge_root/requirements.lock" "$iogauge_root/pyproject.toml"
        printf '%s\n' "$iogauge_root"
        "$(iogauge_python || echo false)" --version 2>&1 || true
    } | sha256sum | cut -d' ' -f1
}

iogauge_make_environment() {
    local venv=$iogauge_root/.venv python
    python=$(iogauge_python)
    iogauge_say "making the Python environment .venv with $("$python" --version) (about a minute)"
    "$python" -m venv --clear "$venv" >&2 || iogauge_stop "$venv could not be made"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes \
        -r "$iogauge_root/requirements.lock" >&2 || iogauge_stop "the locked packages could not be installed"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation \
        -e "$iogauge_root" >&2 || iogauge_stop "iogauge could not be installed into $venv"
    printf '%s\n' "$1" >"$venv/.iogauge-stamp"
}

# Is there an environment made from what lies here now, with a Python that still starts?
iogauge_environment_fits() {
    [ "$(cat "$iogauge_root/.venv/.iogauge-stamp" 2>/dev/null)" = "$1" ] && "$iogauge_root/.venv/bin/python" -c '' 2>/dev/null
}

# The lock is shared by all who use the environment, for as long as they run, and held alone to make it: a night is never
# left without the packages that it runs from. Descriptor 9 stays open over exec.
iogauge_setup() {
    local stamp folder lock=$iogauge_root/.iogauge/setup.lock waiting=''
    iogauge_choose_work
    stamp=$(iogauge_stamp)
    if iogauge_environment_fits "$stamp" && [ -z "$(iogauge_missing_tools)" ] && { exec 9<"$lock"; } 2>/dev/null &&
        flock --shared --nonblock 9 && iogauge_environment_fits "$stamp"; then # once more, now that nobody changes it
        return 0
    fi
    for folder in "$iogauge_root/.iogauge" "$iogauge_work"; do
        mkdir -p "$folder" 2>/dev/null && [ -w "$folder" ] ||
            iogauge_stop "$folder cannot be written; clone the project to where you can write"
    done
    exec 9>>"$lock" || iogauge_stop "$lock cannot be written"
    until flock --nonblock 9; do
        [ -n "$waiting" ] || iogauge_say "another start sets this checkout up, or runs from what has to be set up anew; waiting"
        waiting=yes
        flock --shared 9 ||
            iogauge_stop "$lock cannot be locked (Lustre without flock?); put the checkout on another file system"
        ! iogauge_environment_fits "$stamp" || return 0
        flock --unlock 9
        sleep 1
    done
    iogauge_find_tools
    stamp=$(iogauge_stamp) # Python may have been installed just now
    iogauge_environment_fits "$stamp" || iogauge_make_environment "$stamp"
    flock --shared 9
}
