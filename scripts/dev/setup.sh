# SPDX-License-Identifier: Apache-2.0
# Sourced by scripts/run, scripts/test and scripts/dev/*: installs what is missing, configures once, builds what changed.
# Everything it says goes to stderr: stdout belongs to the script that runs.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

# Another clone finds in the compiler cache what this one compiled.
export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$root} CCACHE_NOHASHDIR=${CCACHE_NOHASHDIR:-1}

say() { echo "perigee: $*" >&2; }
die() { say "$*"; exit 1; }

# install_packages [test]: the packages of packages.txt that are missing; those of the tests too if asked for.
install_packages() {
  local stamp=$build/packages${1:+.$1}.stamp list=$root/scripts/dev/packages.txt wanted missing as_root=
  [ "$stamp" -nt "$list" ] && return
  wanted=$(awk -v kind="$1" '!/^#/ && NF && ($2 == "" || $2 == kind) { print $1 }' "$list")
  if command -v dpkg-query >/dev/null; then
    missing=$(comm -23 <(sort <<<"$wanted") \
      <(dpkg-query -W -f '${db:Status-Status} ${Package}\n' 2>/dev/null | sed -n 's/^installed //p' | sort -u) | xargs)
    if [ -n "$missing" ]; then
      [ "$(id -u)" = 0 ] || as_root=sudo
      [ -z "$as_root" ] || command -v sudo >/dev/null || die "please install as root: apt-get install $missing"
      say "installing $missing"
      apt_get() { $as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq "$@" >&2; }
      apt_get update || say "apt-get update failed; trying with the package lists at hand"
      # shellcheck disable=SC2086 # a list of words
      apt_get install -y --no-install-recommends -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300 $missing || die "could not install: $missing"
    fi
  else
    say "no dpkg here; needed are (Debian names): $(xargs <<<"$wanted")"
  fi
  mkdir -p "$build" && touch "$stamp"
}

# configure [-D...]: once per build folder, and again when it was configured otherwise.
configure() {
  local stamp=$build/configure.stamp options="$*"
  [ -f "$build/build.ninja" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$options" ] && return
  say "configuring $build"
  cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release "$@" >"$build/configure.log" 2>&1 ||
    { cat "$build/configure.log" >&2; die "configuring failed"; }
  grep -E '^-- (CUDA|NCCL) plugin' "$build/configure.log" >&2 || true
  echo "$options" >"$stamp"
  first_build=1
}

# build TARGET...: says nothing when there is nothing to do.
build() {
  local quiet=--quiet
  [ -z "$first_build" ] || { quiet=; say "building in $build"; }
  # shellcheck disable=SC2086 # empty or one option
  (set -o pipefail; ninja -C "$build" $quiet "$@" | sed -u '/^ninja: \(no work\|Entering\)/d' >&2) || die "the build failed"
}

# One at a time in a build folder. The lock is given up at exec and at exit.
lock() {
  mkdir -p "$build"
  exec 9>"$build/lock"
  flock -n 9 || { say "waiting for another build in $build"; flock 9; }
}
unlock() { exec 9>&-; }
