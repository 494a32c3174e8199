#!/usr/bin/env bash
# Installs the Bun version that package.json names into .bun/bin/bun, then the packages that bun.lock pins.
# It needs only npm (or a Bun of exactly that version on PATH) and knows nothing about what is built with them.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() {
  echo "setup: $*" >&2
  exit 1
}

version=$(sed -n 's/.*"packageManager": *"bun@\([0-9][0-9.]*\)[^"]*".*/\1/p' package.json)
[ -n "$version" ] || fail 'package.json has no "packageManager": "bun@x.y.z"'

# The name of the npm package that holds the executable for this machine.
bun_package() {
  local os arch libc="" cpu=""
  case "$(uname -s)" in
    Linux) os=linux ;;
    Darwin) os=darwin ;;
    *) fail "no Bun executable is published for $(uname -s)" ;;
  esac
  case "$(uname -m)" in
    x86_64 | amd64) arch=x64 ;;
    aarch64 | arm64) arch=aarch64 ;;
    *) fail "no Bun executable is published for $(uname -m)" ;;
  esac
  if [ "$os" = linux ] && { ldd --version 2>&1 || true; } | grep -qi musl; then libc=-musl; fi
  # The ordinary x64 build stops with an illegal instruction on a CPU without AVX2.
  if [ "$arch" = x64 ]; then
    if [ "$os" = linux ]; then
      grep -qw avx2 /proc/cpuinfo || cpu=-baseline
    else
      [ "$(sysctl -n hw.optional.avx2_0 2>/dev/null || echo 0)" = 1 ] || cpu=-baseline
    fi
  fi
  echo "@oven/bun-$os-$arch$libc$cpu"
}

has_version() {
  [ -x "$1" ] && [ "$("$1" --version 2>/dev/null)" = "$version" ]
}

install_bun() {
  local found package scratch
  mkdir -p .bun/bin
  found=$(command -v bun || true)
  if [ -n "$found" ] && has_version "$found"; then
    ln -sfn "$found" .bun/bin/bun
    return
  fi
  command -v npm >/dev/null || fail "needs npm (it comes with Node.js 20), or bun $version on PATH"
  package=$(bun_package)
  echo "setup: fetching $package@$version from the npm registry"
  scratch=$(mktemp -d .bun/download.XXXXXX)
  # npm compares the archive with the registry's sha512 before it writes it.
  npm pack --silent --pack-destination "$scratch" "$package@$version" >/dev/null ||
    fail "npm could not fetch $package@$version"
  tar -xzf "$scratch"/*.tgz -C "$scratch"
  chmod +x "$scratch/package/bin/bun"
  # A rename, so that an interrupted setup never leaves half an executable behind.
  mv -f "$scratch/package/bin/bun" .bun/bin/bun
  rm -rf "$scratch"
  has_version .bun/bin/bun || fail "$package@$version does not run on this machine"
}

has_version .bun/bin/bun || install_bun
PATH="$PWD/.bun/bin:$PATH" .bun/bin/bun install --frozen-lockfile
touch node_modules/.setup-done
