# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# How the scripts in tools/ talk: numbered steps with seconds, sub-commands that stay silent unless they fail,
# and errors that say what, where, what was found and what to do. Sourced with the working directory at the root.

STEP_NUMBER=0
STEP_TOTAL=0 # set by the script before its first step
LOG_FILE=.deps/log/$(basename "$0").log

if [[ -t 1 && -z ${NO_COLOR:-} && ${TERM:-dumb} != dumb ]]; then
  BOLD=$'\e[1m' RED=$'\e[31m' PLAIN=$'\e[0m'
else
  BOLD='' RED='' PLAIN=''
fi

now_ms() { echo $((${EPOCHREALTIME//[!0-9]/} / 1000)); }

# seconds_since MS -> "12.3"
seconds_since() {
  local tenths=$((($(now_ms) - $1 + 50) / 100))
  echo "$((tenths / 10)).$((tenths % 10))"
}

# step_begin NAME: the name is shown with the result, by step_end
step_begin() {
  STEP_NUMBER=$((STEP_NUMBER + 1))
  STEP_NAME=$1
  STEP_START=$(now_ms)
}

# step_note TEXT: what a long step does now
step_note() { echo "      $STEP_NAME: $1 ..."; }

step_end() {
  echo "${BOLD}[$STEP_NUMBER/$STEP_TOTAL]${PLAIN} $STEP_NAME: $1 ($(seconds_since "$STEP_START") s)"
}

# run_logged COMMAND...: its output goes to the log file only
run_logged() {
  mkdir -p "${LOG_FILE%/*}"
  printf '\n$ %s\n' "$*" >>"$LOG_FILE"
  LOG_MARK=$(wc -l <"$LOG_FILE") # where this command's output begins
  "$@" >>"$LOG_FILE" 2>&1 </dev/null
}

# last_output: what the last run_logged command printed
last_output() { tail -n +"$((LOG_MARK + 1))" "$LOG_FILE"; }

show_log_tail() {
  echo "----- the last lines of $LOG_FILE" >&2
  last_output | tail -n 25 >&2
  echo "-----" >&2
}

# error WHAT [FIELD VALUE]...: prints, does not exit
error() {
  echo "${RED}tools/$(basename "$0"): error: $1${PLAIN}" >&2
  shift
  while [[ $# -ge 2 ]]; do
    printf '  %-9s %s\n' "$1:" "$2" >&2
    shift 2
  done
}

fail() {
  error "$@"
  exit 1
}

# usage_error WHAT
usage_error() {
  error "$1" remedy "see tools/$(basename "$0") --help"
  exit 2
}

# print_help FILE: the comment on top of the script is its help
print_help() { awk 'NR > 2 && !/^#/ { exit } NR > 2 { sub(/^# ?/, ""); print }' "$1"; }
