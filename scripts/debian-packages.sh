#!/usr/bin/env bash
# Installs the named Debian packages that are missing when it may (root, apt-get), and says which ones it could not.
# It never fails for that: each test or benchmark says itself what it cannot do without.
set -euo pipefail
missing=()
for package in "$@"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
  echo "not installed here: ${missing[*]} (as root on Debian they would be installed now)" >&2
  exit 0
fi
export DEBIAN_FRONTEND=noninteractive
# The package would otherwise start its service and take port 80.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  printf '#!/bin/sh\nexit 101\n' >"$policy" && chmod +x "$policy"
  trap 'rm -f "$policy"' EXIT
fi
# The package would otherwise register this machine at crowdsec.net, and fail where it cannot.
central=/etc/crowdsec/online_api_credentials.yaml
if [[ " ${missing[*]} " == *" crowdsec "* && ! -s "$central" ]]; then
  mkdir -p "${central%/*}" && echo '# not registered' >"$central"
fi
apt-get update -qq </dev/null || true
install() { apt-get install -y -qq --no-install-recommends "$@" </dev/null >/dev/null; }
# One that cannot be installed must not take the others with it.
install "${missing[@]}" || for package in "${missing[@]}"; do
  install "$package" || echo "could not install $package" >&2
done
