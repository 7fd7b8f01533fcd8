# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Configures and builds the release tree in build/. Needs steps.sh.

BUILD=build

cache_has() { grep -qs -- "^$1\$" "$BUILD/CMakeCache.txt"; }

# configure [CMAKE OPTION]...: the release preset, from scratch when build/ belongs to another place
configure() {
  local fresh=()
  [[ ! -f $BUILD/CMakeCache.txt ]] || cache_has "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD" || fresh=(--fresh)
  run_logged cmake "${fresh[@]}" --preset release "$@" || {
    show_log_tail
    fail "cmake could not configure" where "$PWD/$BUILD" got "the lines above; all of them are in $LOG_FILE" \
      remedy "tools/setup installs what the build needs; rm -rf $BUILD starts over"
  }
}

# is_configured: ninja itself runs cmake again when a CMakeLists.txt changed
is_configured() { [[ -f $BUILD/build.ninja ]] && cache_has "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD"; }

# configure_for_tests: builds the tests too, whatever an earlier quickstart chose
configure_for_tests() {
  step_begin "Configure"
  if is_configured && cache_has "CIUIC_BUILD_TESTS:BOOL=ON"; then
    step_end "$BUILD is configured"
  else
    configure -DCIUIC_BUILD_TESTS=ON
    step_end "$BUILD, release, with tests"
  fi
}

# configure_for_use: without tests on a machine that lacks GoogleTest; else as it was
configure_for_use() {
  local options=()
  step_begin "Configure"
  if is_configured; then
    step_end "$BUILD is configured"
    return
  fi
  dpkg-query -W -f='${db:Status-Status}' libgtest-dev 2>/dev/null | grep -qx installed || options=(-DCIUIC_BUILD_TESTS=OFF)
  configure "${options[@]}"
  step_end "$BUILD, release"
}

# build_jobs: one a core, but not more than memory allows: a file that includes LibTorch takes about 1 GB
build_jobs() {
  local cores gigabytes
  cores=$(nproc)
  gigabytes=$(awk '/^MemAvailable/ { print int($2 / 1048576) }' /proc/meminfo)
  [[ $gigabytes -ge 1 ]] || gigabytes=1
  echo $((cores < gigabytes ? cores : gigabytes))
}

# Compilations that ccache did not spare, so far; empty without ccache.
ccache_misses() {
  command -v ccache >/dev/null || return 0
  ccache --print-stats 2>/dev/null | awk '$1 == "cache_miss" { print $2 }'
}

# build_targets TARGET...: "all" for everything
build_targets() {
  local jobs kind="up to date" misses_before misses_after
  jobs=$(build_jobs)
  step_begin "Build"
  [[ -f $BUILD/.ninja_log ]] || kind="clean build"
  misses_before=$(ccache_misses)
  [[ $kind != "clean build" ]] || step_note "$* with $jobs jobs"
  if [[ -t 1 ]]; then
    # On a terminal ninja shows one line of progress, and errors as they come.
    cmake --build "$BUILD" --parallel "$jobs" --target "$@" </dev/null ||
      fail "the build failed" where "$PWD/$BUILD" remedy "see above"
  else
    run_logged cmake --build "$BUILD" --parallel "$jobs" --target "$@" || {
      grep -E '(error|FAILED|undefined reference)' "$LOG_FILE" | head -n 20 >&2 || true
      show_log_tail
      fail "the build failed" where "$PWD/$BUILD" got "the lines above; all of them are in $LOG_FILE" \
        remedy "tools/setup when a library is missing"
    }
  fi
  misses_after=$(ccache_misses)
  [[ $kind == "clean build" || ${misses_after:-0} == "${misses_before:-0}" ]] || kind="changes built"
  step_end "$kind, $jobs jobs${misses_after:+, $((misses_after - misses_before)) files not from ccache}"
}
