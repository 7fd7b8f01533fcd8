# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Debian packages from the lists in tools/packages: found without network in milliseconds, installed only when one
# is missing. Needs steps.sh.

declare -A PACKAGE_MINIMUM=() # name -> oldest version, or ""
PACKAGES_WANTED=()            # names still to be installed

# read_package_lists GROUP...: build, test, check
read_package_lists() {
  local group line name operator minimum
  for group in "$@"; do
    while IFS= read -r line; do
      read -r name operator minimum <<<"${line%%#*}"
      [[ -z $name ]] || PACKAGE_MINIMUM[$name]=${operator:+$minimum}
    done <"tools/packages/$group.txt"
  done
}

# find_missing_packages: one dpkg-query for all of them
find_missing_packages() {
  local name status version
  declare -A installed=()
  while read -r name status version; do
    [[ $status != installed ]] || installed[$name]=$version
  done < <(dpkg-query -W -f='${Package} ${db:Status-Status} ${Version}\n' "${!PACKAGE_MINIMUM[@]}" 2>/dev/null)
  PACKAGES_WANTED=()
  for name in "${!PACKAGE_MINIMUM[@]}"; do
    version=${installed[$name]:-}
    if [[ -z $version ]] || ! is_new_enough "$version" "${PACKAGE_MINIMUM[$name]}"; then
      PACKAGES_WANTED+=("$name")
    fi
  done
}

is_new_enough() { [[ -z $2 ]] || dpkg --compare-versions "$1" ge "$2"; }

# as_root COMMAND...
as_root() {
  if [[ $(id -u) == 0 ]]; then
    "$@"
  else
    sudo "$@"
  fi
}

check_that_apt_can_run() {
  local apt_line="apt-get install ${PACKAGES_WANTED[*]}"
  command -v apt-get >/dev/null || fail "this system has no apt-get" \
    expected "Debian 12" \
    remedy "install what tools/packages/*.txt lists in your system's way, then build with cmake --preset release"
  if [[ $(id -u) != 0 ]]; then
    command -v sudo >/dev/null || fail "Debian packages are missing, and only root may install them" \
      got "user $(id -un), and no sudo" remedy "as root: $apt_line"
    # Asks for the password here: apt-get itself runs with its output in the log file.
    sudo -v || fail "sudo was refused" got "user $(id -un)" remedy "as root: $apt_line"
  fi
}

apt_get() {
  # Another apt (unattended upgrades on a fresh machine) holds the lock for minutes at most: wait for it.
  as_root env DEBIAN_FRONTEND=noninteractive NEEDRESTART_MODE=a apt-get -y -q \
    -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 "$@"
}

# explain_apt_failure: one cause and one remedy for what the log says
explain_apt_failure() {
  local output cause remedy
  output=$(last_output)
  case $output in
    *"dpkg was interrupted"*)
      cause="an earlier dpkg run was cut short" remedy="dpkg --configure -a" ;;
    *"Could not get lock"* | *"Unable to acquire"* | *"Unable to lock"*)
      cause="another apt or dpkg is running" remedy="wait until it ends, then run this again" ;;
    *"No space left"* | *"enough free space"*)
      cause="the disk is full" remedy="free about 2 GB below / and run this again" ;;
    *"Temporary failure"* | *"Could not resolve"* | *"Could not connect"* | *"Connection"* | *"Failed to fetch"*)
      cause="Debian's package server was not reached" remedy="check the network, the proxy and /etc/apt/sources.list" ;;
    *"Unable to locate package"* | *"no installation candidate"*)
      cause="a package is unknown here" remedy="use Debian 12 with its main section in /etc/apt/sources.list" ;;
    *"unmet dependencies"* | *"held broken packages"*)
      cause="apt's own state is broken" remedy="apt-get --fix-broken install" ;;
    *) cause="see above" remedy="the whole output is in $LOG_FILE" ;;
  esac
  show_log_tail
  fail "apt-get could not install: ${PACKAGES_WANTED[*]}" where "$LOG_FILE" got "$cause" remedy "$remedy"
}

install_packages() {
  check_that_apt_can_run
  step_note "installing ${#PACKAGES_WANTED[@]} of ${#PACKAGE_MINIMUM[@]}: ${PACKAGES_WANTED[*]}"
  # A failing update is no error yet: one broken source must not stop packages that another one has.
  run_logged apt_get update || step_note "apt-get update failed, trying with the lists at hand"
  run_logged apt_get install --no-install-recommends "${PACKAGES_WANTED[@]}" || explain_apt_failure
  find_missing_packages
  [[ ${#PACKAGES_WANTED[@]} == 0 ]] || fail "Debian's packages are older than ciuic needs" \
    got "$(dpkg-query -W -f='${Package} ${Version}; ' "${PACKAGES_WANTED[@]}" 2>&1)" \
    expected "$(describe_minimums)" remedy "use Debian 12 or newer"
}

describe_minimums() {
  local name
  for name in "${PACKAGES_WANTED[@]}"; do echo -n "$name ${PACKAGE_MINIMUM[$name]}; "; done
}

# setup_packages GROUP...: the whole step
setup_packages() {
  step_begin "Debian packages"
  read_package_lists "$@"
  command -v dpkg-query >/dev/null || check_that_apt_can_run
  find_missing_packages
  if [[ ${#PACKAGES_WANTED[@]} == 0 ]]; then
    step_end "all ${#PACKAGE_MINIMUM[@]} present"
  else
    local count=${#PACKAGES_WANTED[@]}
    install_packages
    step_end "$count installed, all ${#PACKAGE_MINIMUM[@]} present"
  fi
}
