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

# ninja_steps: how many steps all builds in this folder took together, without those that only look whether cmake must run again
ninja_steps() {
  if [[ -f $BUILD/.ninja_log ]]; then grep -cv 'cmake\.verify_globs\|build\.ninja' "$BUILD/.ninja_log" || true; else echo 0; fi
}

# report_progress: how far ninja is, twice a minute, by what it writes to the log; for those who see no terminal
report_progress() {
  while kill -0 $$ 2>/dev/null && sleep 30 >/dev/null 2>&1; do
    tail -c 4096 "$LOG_FILE" | grep -o '^\[[0-9]*/[0-9]*\]' | tail -n 1 || true
  done
}

# ccache_hits: how many compilations ccache spared, ever; 0 without ccache
ccache_hits() {
  { ccache --print-stats 2>/dev/null || true; } | awk '/^(direct|preprocessed)_cache_hit/ { sum += $2 } END { print sum + 0 }'
}

# run_build COMMAND...: on a terminal ninja shows one line of progress, and errors as they come; else all goes to the log
run_build() {
  if [[ -t 1 ]]; then
    "$@" </dev/null || fail "the build failed" where "$PWD/$BUILD" remedy "see above"
    return
  fi
  local reporter code=0
  report_progress &
  reporter=$!
  run_logged "$@" || code=$?
  kill "$reporter" 2>/dev/null || true
  [[ $code == 0 ]] || {
    # With several jobs the error may stand far above the end.
    last_output | grep -E '(error:|FAILED:|undefined reference)' | head -n 20 >&2 || true
    show_log_tail
    fail "the build failed" where "$PWD/$BUILD" got "the lines above; all of them are in $LOG_FILE" \
      remedy "tools/setup when a library is missing"
  }
}

# build_targets TARGET...: "all" for everything
build_targets() {
  local jobs kind="changes" steps hits
  jobs=$(build_jobs)
  step_begin "Build"
  steps=$(ninja_steps)
  hits=$(ccache_hits)
  if [[ $steps == 0 ]]; then
    kind="clean build"
    step_note "$* with $jobs jobs"
  fi
  run_build cmake --build "$BUILD" --parallel "$jobs" --target "$@"
  steps=$(($(ninja_steps) - steps))
  if [[ $steps == 0 ]]; then
    step_end "up to date"
  else
    step_end "$kind, $steps steps, $jobs jobs, $(($(ccache_hits) - hits)) files from ccache"
  fi
}
