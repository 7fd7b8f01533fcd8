# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# What may stand where: the layering of the tree and its third-party fences, as tables. Sourced by tools/check.
#
# fences prints one line a finding, `file:line: [rule] why`, for the tree in the working directory. A new fence is a
# new row; give it a plant in self_test_fences too, which proves that the row finds something.

# our_files: what git knows or would add; without git (an unpacked archive) everything but build output
our_files() {
  if [[ -e .git ]]; then
    git -c safe.directory='*' ls-files --cached --others --exclude-standard | while IFS= read -r file; do
      [[ ! -f $file ]] || echo "$file"
    done
  else
    find . \( -name '.deps' -o -path './build*' -o -path ./runs -o -path ./data \) -prune -o -type f -printf '%P\n'
  fi | sort -u
}

# files_like REGEX: of the list in FENCE_FILES
files_like() { grep -E "$1" <<<"$FENCE_FILES" || true; }

# in_files COMMAND...: the file names on stdin become its last arguments; no file, no call
in_files() { tr '\n' '\0' | xargs -0 --no-run-if-empty "$@"; }

CODE_FILE='[.](h|hpp|c|cc|cpp|cu|cuh)$'

# Standard headers of C11 and C++20, as an include shows them.
STANDARD='<(algorithm|any|array|atomic|barrier|bit|bitset|cassert|cctype|cerrno|cfenv|cfloat|charconv|chrono|cinttypes'
STANDARD+='|climits|clocale|cmath|codecvt|compare|complex|concepts|condition_variable|coroutine|csetjmp|csignal|cstdarg'
STANDARD+='|cstddef|cstdint|cstdio|cstdlib|cstring|ctime|cuchar|cwchar|cwctype|deque|exception|execution|filesystem'
STANDARD+='|format|forward_list|fstream|functional|future|initializer_list|iomanip|ios|iosfwd|iostream|istream|iterator'
STANDARD+='|latch|limits|list|locale|map|memory|memory_resource|mutex|new|numbers|numeric|optional|ostream|queue|random'
STANDARD+='|ranges|ratio|regex|scoped_allocator|semaphore|set|shared_mutex|source_location|span|sstream|stack|stdexcept'
STANDARD+='|stop_token|streambuf|string|string_view|syncstream|system_error|thread|tuple|type_traits|typeindex|typeinfo'
STANDARD+='|unordered_map|unordered_set|utility|valarray|variant|vector|version'
STANDARD+='|(assert|complex|ctype|errno|fenv|float|inttypes|iso646|limits|locale|math|setjmp|signal|stdalign|stdarg'
STANDARD+='|stdatomic|stdbool|stddef|stdint|stdio|stdlib|stdnoreturn|string|tgmath|threads|time|uchar|wchar|wctype)[.]h)>'
# What the C library and Linux have beyond the standard.
POSIX='<((arpa|linux|net|netinet|sys)/.*|dirent|dlfcn|elf|fcntl|fnmatch|glob|grp|libgen|link|malloc|poll|pthread|pwd|sched'
POSIX+='|semaphore|spawn|strings|termios|ucontext|unistd|execinfo|cxxabi|xmmintrin|pmmintrin|immintrin)([.]h)?>'
TORCH='^["<](ATen|c10|torch)/'

# Columns: rule, files it holds for, include that is forbidden there (! in front: anything else is), files where it is
# allowed all the same, and why. Columns 2 to 4 are regular expressions; an include is matched with its quotes.
include_fences() {
  cat <<END
sdk-alone      ^sdk/include/                !^(<ciuic/.*>|".*"|$STANDARD)$                   -  the SDK needs the standard library and nothing else
sdk-alone      ^sdk/(example|scaffold)/     !^(<ciuic/.*>|$POSIX|".*"|$STANDARD)$            -  examples need the SDK and what Linux itself has
sdk-alone      ^sdk/testing/                !^(<ciuic/.*>|$POSIX|".*"|$STANDARD)$                 -  the conformance kit needs the standard library and what Linux itself has
core-plugins   ^core/                       ^["<]plugins/                                    -  core never names a plugin
core-tools     ^core/                       ^["<](tools|tests)/                              -  tools and tests use core, not the reverse
plugin-alone   ^plugins/                    ^["<](core|plugins|tools|tests)/                 ^plugins/.*_test[.]cpp$  a plugin uses the SDK and what it is about, never core or another plugin
plugin-alone   ^plugins/                    ^["<](.*/)?[.][.]/                               -  a plugin stays in its folder
torch-core     ^core/                       $TORCH                                           ^core/(bench/|memory/tensor_|model/|parallel/|train/)  the launcher's half of core loads no LibTorch
torch-plugin   ^plugins/                    $TORCH                                           ^plugins/(communicator/gloo|profiler/trace)/  only plugins about a LibTorch feature use LibTorch
torch-heavy    ^(core|plugins|sdk|tools)/   ^["<](torch/(torch|all|nn)|ATen/ATen)[.]h        -  costs 7 to 18 s a file: take <ATen/core/Tensor.h> and single <ATen/ops/...> headers
toml           .                            ^["<]toml([+][+]|plusplus)?(/|[.])               ^core/config/toml_reader[.]cpp$  toml++ is fenced to core/config/toml_reader.cpp
boost-dll      .                            ^["<]boost/dll                                   ^core/plugin/  Boost.DLL is fenced to one file of core/plugin
boost-options  .                            ^["<]boost/program_options                       ^tools/  Boost.Program_options is fenced to tools
sodium         .                            ^["<]sodium[.]h                                  ^core/plugin/sha256[.]cpp$  libsodium is fenced to core/plugin/sha256.cpp
pcre2          .                            ^["<]pcre2                                        ^core/data/tokenizer/pattern[.]cpp$  PCRE2 is fenced to core/data/tokenizer/pattern.cpp
highway        .                            ^["<]hwy/                                         ^(plugins/common/(communicator|optimizer)|tests/plugins/optimizer)/  Highway is fenced to the two folders of plugins/common that have kernels
spdlog         .                            ^["<]spdlog/                                     ^core/log/  spdlog is fenced to core/log
END
}

# Columns: rule, files it holds for, text that is forbidden there, and why. (To-dos: everywhere but in .md files.)
text_fences() {
  cat <<'END'
machine-path   .                   (^|[^A-Za-z0-9_.])/(work|farm)/                                         a path of one machine
todo-number    ^.*[^d]$|[^m]d$     (^|[^A-Za-z_])TOD[O]($|[^A-Za-z_(]|[(]($|[^#]|#[^0-9]))                 a to-do names its issue: (#12)
END
}

# Columns: rule, files that may not be, and why.
name_fences() {
  cat <<'END'
file-name      (^|/)(utils?|helpers?|common|misc|base|manager)([.][^/]*)?$   say what is inside
END
}

# all_includes: file, line and include of every #include, tab-separated
all_includes() {
  files_like "$CODE_FILE" | in_files grep -nHE '^[[:space:]]*#[[:space:]]*include[[:space:]]*[<"]' |
    sed -E 's/^([^:]*):([0-9]+):[[:space:]]*#[[:space:]]*include[[:space:]]*(<[^>]*>|"[^"]*").*/\1\t\2\t\3/'
}

check_includes() {
  awk -F '\t' '
    FILENAME == ARGV[1] {
      split($0, column, " ")
      rule[++rules] = column[1]; holds[rules] = column[2]; forbids[rules] = column[3]; allowed[rules] = column[4]
      why[rules] = $0
      sub(/^[^ ]+ +[^ ]+ +[^ ]+ +[^ ]+ +/, "", why[rules])
      inverted[rules] = sub(/^!/, "", forbids[rules])
      next
    }
    {
      for (i = 1; i <= rules; i++) {
        if ($1 !~ holds[i] || (allowed[i] != "-" && $1 ~ allowed[i])) continue
        if (inverted[i] ? $3 !~ forbids[i] : $3 ~ forbids[i]) {
          printf "%s:%s: [%s] %s: %s\n", $1, $2, rule[i], $3, why[i]
          break
        }
      }
    }' <(include_fences) <(all_includes)
}

# A quoted include of a plugin or of the SDK is a file of its own folder: nothing else is on its include path.
check_local_includes() {
  local file line target folder name
  while IFS=$'\t' read -r file line target; do
    [[ $file =~ ^(plugins/[^/]+/[^/]+|sdk/[^/]+)/ && $target == \"* ]] || continue
    folder=${BASH_REMATCH[1]}
    name=${target//\"/}
    # What the include table reports already is left to it.
    [[ -f ${file%/*}/$name || -f $folder/$name || ( $file == plugins/* && -f plugins/common/$name ) || $name =~ (^|/)\.\./ || $name =~ ^(core|plugins|tools|tests)/ ]] ||
      echo "$file:$line: [own-folder] $target: not in $folder"
  done < <(all_includes)
}

# Boost.DLL's fence is one file wide: a second one in core/plugin is reported.
check_boost_dll_once() {
  all_includes | awk -F '\t' '
    $1 ~ /^core\/plugin\// && $3 ~ /^["<]boost\/dll/ {
      if (first == "") first = $1
      if ($1 != first) printf "%s:%s: [boost-dll-once] %s: %s includes it already\n", $1, $2, $3, first
    }'
}

check_text() {
  local rule holds forbids why
  while read -r rule holds forbids why; do
    files_like "$holds" | in_files grep -nIHE -- "$forbids" | awk -F : -v rule="$rule" -v why="$why" '
      { text = $0; sub(/^[^:]*:[0-9]+:[ \t]*/, "", text); printf "%s:%s: [%s] %s: %s\n", $1, $2, rule, why, substr(text, 1, 80) }'
  done < <(text_fences)
}

check_names() {
  local rule holds why
  while read -r rule holds why; do
    files_like "$holds" | awk -v rule="$rule" -v why="$why" '{ printf "%s:1: [%s] %s\n", $0, rule, why }'
  done < <(name_fences)
}

# scripts: files that a shell or Python runs, with or without an ending
scripts() {
  files_like '(^|/)[^/.]+$|[.](sh|py)$|^[.]ci/' | in_files awk 'FNR == 1 && (/^#!/ || FILENAME ~ /[.](sh|py)$/) { print FILENAME }'
}

check_license_line() {
  { files_like "$CODE_FILE" && scripts; } | in_files awk '
    FNR == 1 { if (name != "" && !found) report(); name = FILENAME; found = 0 }
    FNR <= 3 && /SPDX-License-Identifier: / { found = 1 }
    END { if (name != "" && !found) report() }
    function report() { printf "%s:1: [license-line] no SPDX-License-Identifier in the first three lines\n", name }'
}

# markdown_links: file, line and target of every link outside code, tab-separated
markdown_links() {
  # shellcheck disable=SC2016 # backquotes are Markdown's
  files_like '[.]md$' | in_files awk '
    FNR == 1 { code = 0 }
    /^ *(```|~~~)/ { code = !code; next }
    code { next }
    {
      gsub(/`[^`]*`/, "")
      while (match($0, /\]\([^)]+\)/)) {
        printf "%s\t%d\t%s\n", FILENAME, FNR, substr($0, RSTART + 2, RLENGTH - 3)
        $0 = substr($0, RSTART + RLENGTH)
      }
    }'
}

check_markdown_links() {
  # shellcheck disable=SC2016 # backquotes are Markdown's
  local file line target folder
  while IFS=$'\t' read -r file line target; do
    target=${target%% *} # a title may follow
    target=${target%%#*}
    target=${target#<}
    target=${target%>}
    [[ -n $target && ! $target =~ ^[a-z]+: ]] || continue
    folder=.
    [[ $file != */* ]] || folder=${file%/*}
    [[ $target != /* ]] || folder=.
    [[ -e $folder/$target ]] || echo "$file:$line: [dead-link] $target does not exist"
  done < <(markdown_links)
}

# Files that are broken on purpose live in a folder that says so.
check_syntax() {
  files_like '[.](json|toml)$' | grep -vE '(^|/)(broken|hostile|fuzz)/' | in_files /usr/bin/python3 -c '
import json, re, sys, tomllib
for path in sys.argv[1:]:
    try:
        text = open(path, encoding="utf-8").read()
        tomllib.loads(text) if path.endswith(".toml") else json.loads(text)
    except ValueError as error:
        line = re.search(r"line (\d+)", str(error))
        kind = "toml" if path.endswith(".toml") else "json"
        print(f"{path}:{line.group(1) if line else 1}: [{kind}-syntax] {error}")' || true
}

# fences: all findings of the tree in the working directory; nothing when it is clean
fences() {
  FENCE_FILES=$(our_files)
  check_includes
  check_local_includes
  check_boost_dll_once
  check_text
  check_names
  check_license_line
  check_markdown_links
  check_syntax
}

fence_rules() { { include_fences && text_fences && name_fences; } | awk '{ print $1 }' | sort -u; }

# plants: rule, file and content of one violation each; rule "none" is a neighbour that must not be reported
plants() {
  local todo='TO''DO' # in two parts, or the fence would find it here
  cat <<END
sdk-alone       sdk/include/ciuic/a.hpp           #include <boost/variant.hpp>
sdk-alone       sdk/include/ciuic/b.hpp           #include <ATen/core/Tensor.h>
sdk-alone       sdk/testing/a.hpp                 #include <nlohmann/json.hpp>
own-folder      sdk/include/ciuic/c.hpp           #include "error.h"
none            sdk/include/ciuic/d.hpp           #include <ciuic/abi/types.h>
none            sdk/include/ciuic/e.hpp           #include <stdint.h>
sdk-alone       sdk/testing/b.hpp                 #include <gtest/gtest.h>
none            sdk/testing/c.hpp                 #include <sys/mman.h>
core-plugins    core/train/a.cpp                  #include "plugins/sharding/zero1/zero1.h"
core-tools      core/train/b.cpp                  #include "tools/ciuic/train.h"
plugin-alone    plugins/sharding/zero1/a.cpp      #include "core/train/trainer.h"
plugin-alone    plugins/sharding/zero1/b.cpp      #include "plugins/sharding/ddp/ddp.h"
plugin-alone    plugins/sharding/zero1/c.cpp      #include "../ddp/ddp.h"
own-folder      plugins/sharding/zero1/d.cpp      #include "ddp/ddp.h"
none            plugins/sharding/zero1/h.cpp      #include "buckets/flat.h"
none            plugins/common/buckets/flat.h     #include <vector>
own-folder      sdk/include/ciuic/f.hpp           #include "buckets/flat.h"
none            plugins/sharding/zero1/e.cpp      #include "f.h"
none            plugins/sharding/zero1/f.h        #include <vector>
torch-core      core/config/a.cpp                 #include <c10/util/Exception.h>
torch-plugin    plugins/sharding/zero1/g.cpp      #  include <ATen/core/Tensor.h>
none            plugins/communicator/gloo/a.cpp   #include <torch/csrc/distributed/c10d/TCPStore.hpp>
none            core/model/a.cpp                  #include <ATen/ops/mm.h>
torch-heavy     core/model/b.cpp                  #include <torch/torch.h>
torch-heavy     plugins/communicator/gloo/b.cpp   #include <ATen/ATen.h>
toml            core/config/b.cpp                 #include <toml++/toml.h>
none            core/config/toml_reader.cpp       #include <toml++/toml.h>
boost-dll       core/launch/a.cpp                 #include <boost/dll/shared_library.hpp>
boost-dll-once  core/plugin/b.cpp                 #include <boost/dll/shared_library.hpp>
none            core/plugin/a.cpp                 #include <boost/dll/shared_library.hpp>
boost-options   core/config/c.cpp                 #include <boost/program_options.hpp>
none            tools/ciuic/a.cpp                 #include <boost/program_options.hpp>
sodium          core/train/c.cpp                  #include <sodium.h>
none            core/plugin/sha256.cpp            #include <sodium.h>
pcre2           core/data/a.cpp                   #include <pcre2.h>
none            core/data/tokenizer/pattern.cpp   #include <pcre2.h>
highway         plugins/optimizer/adamw/a.cpp     #include <hwy/highway.h>
none            plugins/common/optimizer/a.cpp    #include <hwy/highway.h>
spdlog          plugins/profiler/csv/a.cpp        #include <spdlog/spdlog.h>
none            core/log/a.cpp                    #include <spdlog/spdlog.h>
machine-path    cmake/a.cmake                     set(prefix "/wor''k/prefix")
none            cmake/b.cmake                     set(prefix "homework/prefix")
todo-number     core/log/b.cpp                    // $todo: later
todo-number     cmake/c.cmake                     # $todo(me): later
none            core/log/c.cpp                    // $todo(#12): later
file-name       core/model/utils.h                #include <vector>
file-name       cmake/common.cmake                set(a b)
none            core/model/base_frequency.h       #include <cmath>
license-line    core/model/c.h                    -
license-line    docs/run.sh                       -
dead-link       docs/a.md                         See [that](no/such/page.md#part).
none            docs/b.md                         See [that](a.md "title"), [here](#part), [far](https://example.org) and \`[x](y)\`.
json-syntax     configs/a.json                    { "a": }
toml-syntax     configs/a.toml                    a = [1,
none            configs/b.toml                    a = [1]
END
}

# plant FILE CONTENT: content "-" is a file without its license line
plant() {
  local licensed=no
  mkdir -p "$(dirname "$1")"
  [[ $2 == - || ! $1 =~ $CODE_FILE ]] || licensed=yes
  { [[ $licensed == no ]] || echo "// SPDX-License-Identifier: MIT"; } >"$1"
  printf '%s\n' "${2//\'\'/}" >>"$1"
}

# self_test_fences: every rule finds its plant, no rule finds anything else, no rule is without a plant
self_test_fences() (
  local root rule file content found expected failures=0
  root=$(mktemp -d)
  trap 'rm -rf "$root"' EXIT
  cd "$root" || return
  while read -r rule file content; do plant "$file" "$content"; done < <(plants)
  found=$(fences | sed -E 's/^([^:]*):[0-9]+: \[([^]]*)\].*/\2 \1/' | sort)
  expected=$(plants | awk '$1 != "none" { print $1, $2 }' | sort)
  while read -r mark rule file; do
    echo "self-test: [$rule] $([[ $mark == '<' ]] && echo "did not find its violation in" || echo "reports the innocent") $file"
    failures=1
  done < <(diff <(echo "$expected") <(echo "$found") | grep '^[<>]')
  while read -r rule; do
    echo "self-test: [$rule] has no plant"
    failures=1
  done < <(comm -23 <(fence_rules) <(awk '{ print $1 }' <<<"$expected" | sort -u))
  return "$failures"
)
