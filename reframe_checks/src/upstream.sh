# shellcheck shell=bash
# Sourced by the jobs of upstream benchmarks: runs their launches, and keeps what each leaves, to be judged afterwards.
#
#   iogauge_launch NUMBER SECONDS RESULTS COMMAND...   runs COMMAND in the case's folder, for SECONDS at the most; RESULTS are
#                                                      the files that it writes for us, separated by colons
#   iogauge_look NUMBER COMMAND...                     keeps what COMMAND says of the page cache beside launch NUMBER
#
# After a launch that failed there are no more. In the stage folder, of each: launch-NUMBER.out, .err, .code, .files (size and
# name of all it left in the case's folder), .cached, and the RESULTS as launch-NUMBER.RESULT, without their folder.

# Configurations are written there before the job begins.
export IOGAUGE_STAGE=$PWD

iogauge_launch() {
    local number=$1 limit=$2 result code
    local -a results
    IFS=: read -r -a results <<<"$3"
    shift 3
    [ ! -e launch_failed ] || return 0
    # --foreground: the launcher stays in the job's process group, and ends with the job.
    (cd -- "$IOGAUGE_CASE_DIR" && exec timeout --foreground --kill-after=10 "$limit" "$@") \
        </dev/null >"launch-$number.out" 2>"launch-$number.err"
    code=$?
    printf '%s\n' "$code" >"launch-$number.code"
    for result in "${results[@]}"; do
        [ ! -e "$IOGAUGE_CASE_DIR/$result" ] || mv -- "$IOGAUGE_CASE_DIR/$result" "launch-$number.${result##*/}"
    done
    find "$IOGAUGE_CASE_DIR" -xdev -type f ! -name .iogauge-case -printf '%s %P\n' >"launch-$number.files"
    [ "$code" -eq 0 ] || : >launch_failed
}

iogauge_look() {
    local number=$1
    shift
    [ -e launch_failed ] || "$@" </dev/null >>"launch-$number.cached" 2>>"launch-$number.cached_err"
}
