# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# What comes from PyPI: LibTorch, unpacked from pinned wheels into .deps/libtorch, and the Python stack of the peer
# tests in .deps/peers. Both are made aside and renamed, so an interrupted run leaves nothing half done; both hold a
# copy of their pins, so the next run knows at once whether they are current. Needs steps.sh.

# Debian's own interpreter: python3-pip and python3-venv belong to it, whatever else PATH holds.
PYTHON=/usr/bin/python3
LIBTORCH=.deps/libtorch
PEERS=.deps/peers
LIBTORCH_FILES=(
  torch/lib/libtorch_cpu.so torch/lib/libc10.so torch/lib/libgomp.so.1
  torch/version.py torch/include/ATen/core/Tensor.h
  nvidia/cu13/lib/libcudart.so.13 nvidia/cu13/lib/libcupti.so.13)

# make_scratch: a fresh folder in SCRATCH, beside its final place so that a rename is enough. pip's own temporary
# files go there too: /tmp may be a small memory disk.
make_scratch() {
  mkdir -p .deps
  rm -rf .deps/partial.*  # left by a killed run; tools/setup holds the lock
  SCRATCH=$(mktemp -d .deps/partial.XXXXXX)
  trap 'rm -rf "$SCRATCH"' EXIT
  mkdir "$SCRATCH/tmp"
}

# need_free_megabytes MB WHAT
need_free_megabytes() {
  local free
  free=$(df -Pm .deps | awk 'NR == 2 { print $4 }')
  [[ $free -ge $1 ]] || fail "too little disk for $2" where "$PWD/.deps" got "$free MB free" \
    expected "$1 MB during setup" remedy "free some space, or make .deps a link to a larger disk"
}

pip_() { TMPDIR=$PWD/$SCRATCH/tmp "$1" -m pip --disable-pip-version-check --no-cache-dir --no-input "${@:2}"; }

# explain_pip_failure WHAT
explain_pip_failure() {
  local output
  output=$(last_output)
  if [[ $output == *"DO NOT MATCH THE HASHES"* ]]; then
    fail "$1: a downloaded file is not the pinned one, and was thrown away" \
      where "$(grep -m1 -o '^ *[A-Za-z0-9_.-]*==[^ ]*' <<<"$output" | tr -d ' ')" \
      got "sha256 $(sed -n 's/^ *Got *//p' <<<"$output" | head -1)" \
      expected "sha256 $(sed -n 's/^ *Expected sha256 *//p' <<<"$output" | head -1)" \
      remedy "run this again; if it repeats, something between here and PyPI alters files: use another network"
  fi
  show_log_tail
  case $output in
    *"No space left"*)
      fail "$1" where "$PWD/.deps" got "the disk is full" remedy "free some space and run this again" ;;
    *"CERTIFICATE_VERIFY_FAILED"*)
      fail "$1" where "$LOG_FILE" got "the package index shows a certificate that this machine does not trust" \
        remedy "behind a proxy that opens TLS, give pip its authority: export PIP_CERT=FILE.crt" ;;
    *"NewConnectionError"* | *"Temporary failure"* | *"timed out"* | *"ConnectionError"* | *"ConnectTimeout"* | *"SSLError"* | \
    *"ProxyError"* | *"IncompleteRead"* | *"Connection broken"* | *"ReadTimeout"*)
      fail "$1" where "$LOG_FILE" got "PyPI was not reached" \
        remedy "check the network and the proxy; on a machine without network give pip the wheels: PIP_NO_INDEX=1 PIP_FIND_LINKS=FOLDER" ;;
    *"No matching distribution"*)
      fail "$1" where "$LOG_FILE" got "the package index that pip uses here lacks a pinned version" \
        remedy "use PyPI or a full mirror of it (pip config list shows which index is used)" ;;
    *) fail "$1" where "$LOG_FILE" remedy "the lines above are pip's" ;;
  esac
}

# own_libtorch: prints the folder of CMAKE_PREFIX_PATH that holds the user's LibTorch, else fails
own_libtorch() {
  local folder
  local -a folders
  IFS=':;' read -ra folders <<<"${CMAKE_PREFIX_PATH:-}"
  for folder in "${folders[@]}"; do
    if [[ -f $folder/include/ATen/core/Tensor.h && -f $folder/lib/libtorch_cpu.so ]]; then
      echo "$folder"
      return 0
    fi
  done
  return 1
}

has_libtorch() {
  local file
  cmp -s tools/packages/libtorch.txt "$LIBTORCH/pins.txt" || return 1
  for file in "${LIBTORCH_FILES[@]}"; do [[ -f $LIBTORCH/$file ]] || return 1; done
}

download_libtorch() {
  # The wheels are chosen for the pins' Python, not for the one that runs pip: only their C++ side is used.
  run_logged pip_ "$PYTHON" download --no-deps --only-binary=:all: --require-hashes \
    --implementation cp --python-version 3.11 --abi cp311 --abi abi3 --abi none \
    --platform manylinux_2_28_x86_64 --platform manylinux_2_25_x86_64 --platform manylinux2014_x86_64 \
    --dest "$SCRATCH/wheels" -r tools/packages/libtorch.txt ||
    explain_pip_failure "pip could not fetch LibTorch"
}

unpack_libtorch() {
  local wheel
  for wheel in "$SCRATCH"/wheels/*.whl; do
    # unzip's 11 means that none of the names is in this wheel: each wheel has only its own.
    run_logged unzip -q -o "$wheel" -d "$SCRATCH/libtorch" \
      'torch/include/*' torch/lib/libtorch_cpu.so torch/lib/libc10.so torch/lib/libgomp.so.1 torch/version.py \
      nvidia/cu13/lib/libcudart.so.13 nvidia/cu13/lib/libcupti.so.13 || [[ $? == 11 ]] || {
      show_log_tail
      fail "could not unpack ${wheel##*/}" where "$PWD/$SCRATCH" got "$(df -Pm .deps | awk 'NR == 2 { print $4 }') MB free" \
        remedy "free some space and run this again"
    }
    rm "$wheel" # before the next one: keeps the peak of disk use low
  done
}

check_unpacked_libtorch() {
  local file missing
  for file in "${LIBTORCH_FILES[@]}"; do
    [[ -f $SCRATCH/libtorch/$file ]] || fail "the wheels lack a file" got "no $file" \
      remedy "tools/packages/libtorch.txt and tools/lib/wheels.sh do not fit together: please report this"
  done
  missing=$(ldd "$SCRATCH/libtorch/torch/lib/libtorch_cpu.so" | awk '/not found/ { print $1 }' | tr '\n' ' ')
  [[ -z $missing ]] || fail "LibTorch does not load here" got "libraries not found: $missing" \
    expected "Debian 12 or another x86-64 Linux with glibc 2.28 or newer" remedy "install what is missing"
}

# put_in_place NAME: .deps/partial.X/NAME becomes .deps/NAME
put_in_place() {
  [[ ! -e .deps/$1 ]] || mv ".deps/$1" "$SCRATCH/old-$1"
  mv "$SCRATCH/$1" ".deps/$1"
  rm -rf "$SCRATCH"
}

setup_libtorch() {
  local own version
  step_begin "LibTorch"
  version=$(sed -n 's/^torch==\([^ ]*\).*/\1/p' tools/packages/libtorch.txt)
  if own=$(own_libtorch); then
    step_end "yours, from CMAKE_PREFIX_PATH: $own"
  elif has_libtorch; then
    step_end "$version present in $LIBTORCH"
  else
    make_scratch
    need_free_megabytes 1500 "LibTorch"
    step_note "fetching the wheel of torch $version, about 530 MB"
    download_libtorch
    step_note "unpacking"
    unpack_libtorch
    check_unpacked_libtorch
    cp tools/packages/libtorch.txt "$SCRATCH/libtorch/pins.txt"
    put_in_place libtorch
    step_end "$version unpacked in $LIBTORCH, $(du -sm $LIBTORCH | cut -f1) MB"
  fi
}

has_peers() { cmp -s tools/packages/peers.txt "$PEERS/pins.txt" && [[ -x $PEERS/bin/python ]]; }

check_peers_python() {
  local got
  got=$("$PYTHON" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  [[ $got == 3.11 ]] || fail "the peer tests' packages are pinned for another Python" where "$PYTHON" \
    got "Python $got" expected "3.11, as in Debian 12" remedy "run tools/test without --all"
}

setup_peers() {
  step_begin "Python peers"
  if has_peers; then
    step_end "$(grep -c == tools/packages/peers.txt) packages present in $PEERS"
    return
  fi
  check_peers_python
  make_scratch
  need_free_megabytes 9000 "the Python peers"
  # A virtual environment knows its own path and cannot be renamed: it is made in place, and the copy of the pins,
  # written last, says that it is whole.
  rm -rf "$PEERS"
  step_note "installing PyTorch and transformers from PyPI, about 3 GB to fetch, once"
  run_logged "$PYTHON" -m venv "$PEERS" || fail "python3 -m venv failed" where "$LOG_FILE" remedy "apt-get install python3-venv"
  run_logged pip_ "$PEERS/bin/python" install --no-deps --only-binary=:all: --require-hashes -r tools/packages/peers.txt || {
    rm -rf "$PEERS"
    explain_pip_failure "pip could not install the Python peers"
  }
  cp tools/packages/peers.txt "$PEERS/pins.txt"
  rm -rf "$SCRATCH"
  step_end "$(grep -c == tools/packages/peers.txt) packages installed in $PEERS"
}

has_deepspeed() { cmp -s tools/packages/deepspeed.txt "$PEERS/deepspeed.txt"; }

# Into the same environment; the copy of its pins goes with that when setup_peers makes it anew.
setup_deepspeed() {
  step_begin "DeepSpeed"
  if has_deepspeed; then
    step_end "$(grep -c == tools/packages/deepspeed.txt) packages present in $PEERS"
    return
  fi
  make_scratch
  need_free_megabytes 200 "DeepSpeed"
  # Its build asks for the torch of the environment, and need not compile operators for processors that it guesses.
  export DS_BUILD_OPS=0 DS_ACCELERATOR=cpu
  run_logged pip_ "$PEERS/bin/python" install --no-deps --no-build-isolation --require-hashes \
    -r tools/packages/deepspeed.txt || explain_pip_failure "pip could not install DeepSpeed"
  # Its all-reduce among processes of a host is compiled at first use: here, not within a time limit. A compilation
  # that was cut short leaves a lock which later ones wait for without end.
  step_note "compiling its communication"
  rm -rf "$PEERS/torch_extensions"
  PATH=$PWD/$PEERS/bin:$PATH TORCH_EXTENSIONS_DIR=$PWD/$PEERS/torch_extensions run_logged "$PEERS/bin/python" -c \
    'from deepspeed.ops.op_builder.cpu import ShareMemCommBuilder; ShareMemCommBuilder().load()' || {
    show_log_tail
    fail "DeepSpeed's communication could not be compiled" where "$LOG_FILE" remedy "look at the end of that file"
  }
  cp tools/packages/deepspeed.txt "$PEERS/deepspeed.txt"
  rm -rf "$SCRATCH"
  step_end "$(grep -c == tools/packages/deepspeed.txt) packages installed in $PEERS"
}
