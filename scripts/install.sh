#!/bin/sh
# Installs, upgrades and removes Sluice on Linux (or macOS, without a service). It has no download address of its own: it uses
# files beside it, or those below SLUICE_URL.
set -eu

usage() {
  cat <<'TEXT'
Usage: install.sh [FLAGS]

  (nothing)         install, or say that it is installed already
  --upgrade         replace the executable; goes back to the former one unless the new one is ready within 60 seconds
  --rollback        go back to the former executable
  --uninstall       remove it; configuration and data stay
  --purge           with --uninstall: remove configuration, data and user as well
  --print-unit      write the systemd unit to standard output and do nothing else

  --from PATH       an executable, or the directory of a release (default: the directory of this script)
  --url URL         where the files of a release are, instead of --from (or SLUICE_URL); https://, or http:// with --sha256
  --sha256 HEX      the sum that the executable must have, instead of that in SHA256SUMS
  --unchecked       take an executable that has no sum: one that you have built yourself
  --target NAME     linux-x64, linux-arm64-musl, ... (default: what this machine is)

  --prefix DIR      the executable goes to DIR/bin (default: /usr/local)
  --data-dir DIR    where the gateway keeps its state (default: /var/lib/sluice)
  --http, --https, --admin ADDRESS:PORT
                    where it listens (default: 0.0.0.0:80, 0.0.0.0:443, 127.0.0.1:9080)
  --admin-allow NETWORKS
                    networks that may use the management API, which an --admin address that other machines reach
                    needs: CIDR[,CIDR], private (RFC 1918, ULA and loopback) or any
  --service KIND    systemd or none (default: systemd where it runs)
  --no-start        leave the service as it is: neither enable nor start nor restart it
  --root DIR        install below DIR, for images and tests: no user, no sysctl, and no service unless --service
TEXT
}

say() { printf '%s\n' "$*"; }
warn() { printf 'install: %s\n' "$*" >&2; }
fail() {
  warn "$*"
  exit 1
}

action=install purge=no from='' url=${SLUICE_URL:-} sha256='' unchecked=no target=''
prefix=/usr/local data=/var/lib/sluice http=0.0.0.0:80 https=0.0.0.0:443 admin=127.0.0.1:9080 allow=''
service=auto start=yes root='' scratch=''
here=$(cd "$(dirname "$0")" && pwd)

while [ $# -gt 0 ]; do
  case $1 in
    --upgrade | --rollback | --uninstall | --print-unit) action=${1#--} ;;
    --purge) purge=yes ;;
    --unchecked) unchecked=yes ;;
    --no-start) start=no ;;
    --help | -h) usage && exit 0 ;;
    --from | --url | --sha256 | --target | --prefix | --data-dir | --http | --https | --admin | --admin-allow | --service | --root)
      [ $# -ge 2 ] || fail "$1 needs a value"
      case $1 in
        --from) from=$2 ;;
        --url) url=$2 ;;
        --sha256)
          sha256=$(printf '%s' "$2" | tr 'A-F' 'a-f')
          case $sha256 in *[!0-9a-f]*) sha256='' ;; esac
          [ ${#sha256} = 64 ] || fail "--sha256: must be 64 hexadecimal digits"
          ;;
        --target) target=$2 ;;
        --prefix) prefix=$2 ;;
        --data-dir) data=$2 ;;
        --http) http=$2 ;;
        --https) https=$2 ;;
        --admin) admin=$2 ;;
        --admin-allow) allow=$2 ;;
        --service) service=$2 ;;
        --root) root=$2 ;;
      esac
      shift
      ;;
    *) fail "unknown flag $1; install.sh --help shows all" ;;
  esac
  shift
done

# Both become part of a unit file, where quotes, specifiers and spaces have a meaning.
for path in "$prefix" "$data"; do
  case $path in
    *[!A-Za-z0-9._/-]* | [!/]*) fail "$path: must be an absolute path of letters, digits and . _ -" ;;
  esac
done
for address in "$http" "$https" "$admin"; do
  port=${address##*:}
  case $address in
    *[!A-Za-z0-9.:[\]-]* | :*) fail "$address: must be ADDRESS:PORT" ;;
    *:*) case $port in '' | *[!0-9]*) fail "$address: must be ADDRESS:PORT" ;; esac ;;
    *) fail "$address: must be ADDRESS:PORT" ;;
  esac
done
case $allow in *[!A-Za-z0-9.:/,]*) fail "$allow: must be CIDR[,CIDR], private or any" ;; esac
[ "$purge" = no ] || [ "$action" = uninstall ] || fail "--purge is for --uninstall"
case $data in / | /etc | /home | /root | /usr | /var | /var/lib | /opt | /srv | /tmp) fail "$data is no directory of its own" ;; esac

bin=$prefix/bin/sluice
former=$prefix/lib/sluice/former
settings=/etc/sluice/sluice.env
unit=/etc/systemd/system/sluice.service
sysctl=/etc/sysctl.d/60-sluice.conf

case $service in
  auto)
    service=none
    if [ -z "$root" ] && [ -d /run/systemd/system ] && command -v systemctl >/dev/null; then service=systemd; fi
    ;;
  systemd | none) ;;
  *) fail "--service: must be systemd or none, not $service" ;;
esac

print_unit() {
  cat <<TEXT
[Unit]
Description=Sluice, an HTTP and TCP gateway
Wants=network-online.target
After=network-online.target

[Service]
Type=notify
User=sluice
Group=sluice
EnvironmentFile=$settings
ExecStart=$bin serve --data-dir $data
# Another process takes over and notifies systemd; this one ends after its last request.
ExecReload=$bin upgrade --data-dir $data
NotifyAccess=all
# The start of a node of a fleet waits for its database.
TimeoutStartSec=300
# The gateway replaces a worker that hangs; systemd restarts a gateway of which no worker answers.
WatchdogSec=30
KillMode=mixed
Restart=always
RestartSec=1
# More than settings.limits.shutdown_timeout, which is 30 seconds unless it was changed.
TimeoutStopSec=60
LimitNOFILE=1048576
UMask=0077

# The only privilege it needs: ports below 1024.
AmbientCapabilities=CAP_NET_BIND_SERVICE
CapabilityBoundingSet=CAP_NET_BIND_SERVICE
NoNewPrivileges=yes

ProtectSystem=strict
ReadWritePaths=$data
ProtectHome=yes
PrivateTmp=yes
PrivateDevices=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
LockPersonality=yes
RemoveIPC=yes
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
# System calls that the gateway does not use.
SystemCallFilter=~@clock @cpu-emulation @debug @module @mount @obsolete @raw-io @reboot @swap
SystemCallErrorNumber=EPERM
# MemoryDenyWriteExecute must stay off: JavaScriptCore compiles hot functions while they run, and so writes machine code
# into memory that it then executes. With it on, the gateway serves, but interprets everything.
MemoryDenyWriteExecute=no

[Install]
WantedBy=multi-user.target
TEXT
}

if [ "$action" = print-unit ]; then
  print_unit
  exit 0
fi

if [ -z "$root" ] && [ "$(id -u)" != 0 ]; then fail "must run as root (or with --root DIR, below which you may write)"; fi

# The gateway's files belong to its user, and this script opens them only as that user: the gateway could not open a file that
# root created beside the database.
as_owner() {
  if [ -n "$root" ] || [ "$(id -u)" != 0 ]; then
    "$@"
  elif command -v setpriv >/dev/null && setpriv --reuid=sluice --regid=sluice --clear-groups true 2>/dev/null; then
    setpriv --reuid=sluice --regid=sluice --clear-groups "$@"
  else
    # The words contain neither quotes nor spaces: all are paths that were checked above.
    su -s /bin/sh sluice -c "$*"
  fi
}

sum_of() {
  if command -v sha256sum >/dev/null; then sha256sum "$1" | cut -d ' ' -f 1; else shasum -a 256 "$1" | cut -d ' ' -f 1; fi
}

clean_up() { [ -z "$scratch" ] || rm -rf "$scratch"; }
trap clean_up EXIT
trap 'exit 130' INT TERM

detect_target() {
  case $(uname -s) in
    Linux) os=linux ;;
    Darwin) os=darwin ;;
    *) fail "there is no executable for $(uname -s)" ;;
  esac
  libc='' cpu=''
  case $(uname -m) in
    x86_64 | amd64) arch=x64 ;;
    aarch64 | arm64) arch=arm64 ;;
    *) fail "there is no executable for $(uname -m)" ;;
  esac
  if [ $os = linux ]; then
    if { ldd --version 2>&1 || true; } | grep -qi musl; then
      libc=-musl
    elif [ $arch = x64 ] && ! grep -qw avx2 /proc/cpuinfo; then
      cpu=-baseline
    fi
  fi
  printf '%s' "$os-$arch$libc$cpu"
}

# An attacker can change files and SHA256SUMS on plain HTTP: only a checksum from elsewhere helps.
check_url() {
  case $url in
    https://*) ;;
    http://*) [ -n "$sha256" ] || fail "$url: must begin with https://, or --sha256 must say what the executable is" ;;
    *) fail "$url: must begin with https://" ;;
  esac
  # wget follows a redirect from https to http.
  [ -n "$sha256" ] || command -v curl >/dev/null || fail "without --sha256, curl is needed to download it"
}

download() {
  if [ -n "$sha256" ]; then protocols='=https,http'; else protocols='=https'; fi
  if command -v curl >/dev/null; then
    curl -fsSL --proto "$protocols" --proto-redir "$protocols" -o "$2" "$1" || fail "$1 could not be fetched"
  else
    wget -q -O "$2" "$1" || fail "$1 could not be fetched"
  fi
}

# Puts the executable, with its checksum verified, into $scratch/sluice: on the file system of its destination, so that a rename
# installs it.
fetch() {
  [ -n "$from" ] || [ -n "$url" ] || from=$here
  [ -n "$from" ] || check_url
  mkdir -p "$root$prefix/bin"
  scratch=$(mktemp -d "$root$prefix/bin/.sluice.XXXXXX")
  [ -n "$target" ] || target=$(detect_target)
  name=sluice-$target sums=''
  if [ -n "$from" ]; then
    [ -e "$from" ] || fail "$from does not exist"
    if [ -d "$from" ]; then from=$from/$name; else name=$(basename "$from"); fi
    [ -f "$from" ] || fail "there is no $from: --from or SLUICE_URL says where the executable is"
    cp "$from" "$scratch/sluice"
    if [ -f "$(dirname "$from")/SHA256SUMS" ]; then sums=$(dirname "$from")/SHA256SUMS; fi
  else
    download "${url%/}/$name" "$scratch/sluice"
    if [ -z "$sha256" ]; then
      download "${url%/}/SHA256SUMS" "$scratch/SHA256SUMS"
      sums=$scratch/SHA256SUMS
    fi
  fi
  if [ -z "$sha256" ] && [ -n "$sums" ]; then
    sha256=$(awk -v name="$name" '$2 == name || $2 == "*" name { print $1; exit }' "$sums")
  fi
  if [ -n "$sha256" ]; then
    found=$(sum_of "$scratch/sluice")
    [ "$found" = "$sha256" ] || fail "$name has the sum $found, and should have $sha256: nothing was changed"
  elif [ "$unchecked" = no ]; then
    fail "no sum of $name is known: give --sha256, or --unchecked for one that you have built yourself"
  fi
  chmod 755 "$scratch" "$scratch/sluice"
  fetched=$("$scratch/sluice" version 2>&1) || fail "$name does not run on this machine: $fetched"
}

manage() { [ "$service" = none ] || systemctl "$@"; }

# The address is that of the settings, which may have been changed since.
is_ready() {
  (
    set -a
    # shellcheck disable=SC1090
    . "$root$settings"
    set +a
    "$root$bin" healthcheck --wait 60
  )
}

make_user() {
  [ -z "$root" ] || return 0
  [ "$(uname -s)" = Linux ] || return 0
  if ! grep -q '^sluice:' /etc/group; then
    if command -v groupadd >/dev/null; then groupadd --system sluice; else addgroup -S sluice; fi
  fi
  if ! id sluice >/dev/null 2>&1; then
    if command -v useradd >/dev/null; then
      useradd --system --gid sluice --home-dir "$data" --no-create-home --shell /usr/sbin/nologin sluice
    else
      adduser -S -D -H -h "$data" -s /sbin/nologin -G sluice sluice
    fi
  fi
}

write_settings() {
  [ ! -e "$root$settings" ] || return 0
  mkdir -p "$root${settings%/*}"
  cat >"$root$settings" <<TEXT
# Environment of the gateway: every flag of "sluice help serve", in capitals and behind SLUICE_.
# "systemctl restart sluice" makes a change count. The addresses of HTTP and HTTPS are those of the first start: later they
# are changed as listeners, through the management API.
SLUICE_HTTP=$http
SLUICE_HTTPS=$https
SLUICE_ADMIN=$admin
TEXT
  [ -z "$allow" ] || printf 'SLUICE_ADMIN_ALLOW=%s\n' "$allow" >>"$root$settings"
  # Secrets may be added to it.
  chmod 640 "$root$settings"
  own_group "$root$settings"
}

own_group() { [ -n "$root" ] || [ "$(uname -s)" != Linux ] || chgrp sluice "$1"; }
own() { [ -n "$root" ] || [ "$(uname -s)" != Linux ] || chown sluice:sluice "$1"; }

write_service() {
  [ "$service" = systemd ] || return 0
  mkdir -p "$root${unit%/*}"
  print_unit >"$root$unit"
  chmod 644 "$root$unit"
}

write_sysctl() {
  [ "$(uname -s)" = Linux ] || return 0
  mkdir -p "$root${sysctl%/*}"
  cat >"$root$sysctl" <<'TEXT'
# Connections that wait at a socket which is closed go to another one of the same port, instead of being reset: when a
# certificate or a listener is replaced, and when the gateway restarts. It holds for all programs of the machine.
net.ipv4.tcp_migrate_req = 1
TEXT
  chmod 644 "$root$sysctl"
  [ -z "$root" ] || return 0
  sysctl -q -p "$sysctl" 2>/dev/null || warn "net.ipv4.tcp_migrate_req could not be set now (a container, or a kernel before 5.14)"
}

# A refusal here, with what to do, is better than a service that does not start. Existing settings stay.
check_admin() {
  case $admin in 127.*:* | localhost:* | '[::1]:'*) return 0 ;; esac
  [ ! -e "$root$settings" ] || return 0
  [ -n "$allow" ] || fail "--admin $admin can be reached from other machines: give --admin-allow with the networks that may use it (CIDR[,CIDR], private or any)"
  [ "$start" = yes ] && [ "$service" != none ] && [ ! -e "$root$data/sluice.db" ] || return 0
  fail "--admin $admin needs a user first: install without it, create the first user, then set SLUICE_ADMIN and SLUICE_ADMIN_ALLOW in $settings and restart"
}

install_new() {
  if [ -e "$root$bin" ]; then fail "$root$bin is there already: --upgrade replaces it"; fi
  check_admin
  fetch
  make_user
  mkdir -p "$root$data"
  chmod 700 "$root$data"
  own "$root$data"
  write_settings
  write_sysctl
  mv "$scratch/sluice" "$root$bin"
  write_service
  say "installed $fetched as $root$bin"
  if [ "$service" = none ]; then
    say "no service was made; it is started by: $bin serve --data-dir $data"
    return 0
  fi
  manage daemon-reload
  [ "$start" = yes ] || return 0
  manage enable --now sluice.service || true
  is_ready || fail "it is installed but not ready: journalctl -u sluice says why"
  say "the gateway is ready; create the first user before another client does: http://$admin"
}

# Prints the path of a copy of the database; nothing without a database.
back_up() {
  [ -e "$root$data/sluice.db" ] || return 0
  folder=$root$data/backups
  [ -d "$folder" ] || as_owner mkdir -m 700 "$folder"
  copy=$folder/before-upgrade-$(date -u +%Y%m%dT%H%M%SZ)-$$.db
  as_owner "$root$bin" backup --data-dir "$root$data" "$copy" >/dev/null || fail "the database could not be copied: nothing was changed"
  # Names sort by time. The five newest stay.
  # shellcheck disable=SC2012
  ls "$folder"/before-upgrade-*.db | sort -r | tail -n +6 | while read -r old; do rm -f "$old"; done
  printf '%s' "$copy"
}

upgrade() {
  [ -x "$root$bin" ] || fail "$root$bin is not there: nothing to upgrade"
  fetch
  before=$("$root$bin" version)
  if cmp -s "$scratch/sluice" "$root$bin"; then
    say "$before is installed already"
    return 0
  fi
  copy=$(back_up)
  if [ -n "$copy" ]; then
    say "the database was copied to $copy"
    as_checker "$scratch/sluice" || fail "the new version cannot serve what is stored: nothing was changed"
  fi
  mkdir -p "$root${former%/*}"
  cp -p "$root$bin" "$root$former.new"
  mv "$root$former.new" "$root$former"
  mv "$scratch/sluice" "$root$bin"
  if [ "$service" = none ] || [ "$start" = no ]; then
    say "replaced $before by $fetched; it counts from the next start on"
    return 0
  fi
  # systemd would end a process that runs without the watchdog as soon as the unit has one.
  if [ "$service" = systemd ] && ! grep -q '^WatchdogSec=' "$root$unit" 2>/dev/null; then manage stop sluice.service; fi
  write_service
  manage daemon-reload
  if switch && is_ready; then
    say "replaced $before by $fetched"
    return 0
  fi
  warn "the new version is not ready; going back to $before"
  if [ "$switched" = failed ] && as_checker "$root$former"; then
    # The former version continues, with a database that it can read.
    mv "$root$former" "$root$bin"
  else
    roll_back "$copy"
  fi
  fail "the former version serves again: journalctl -u sluice says why the new one did not"
}

# The running gateway hands over to the new version, without a dropped connection. A gateway that cannot, such as an older
# version, is restarted.
switch() {
  code=0 switched=handed
  (
    # A node of a fleet needs the address of its database.
    if [ -e "$root$settings" ]; then
      set -a
      # shellcheck disable=SC1090
      . "$root$settings"
      set +a
    fi
    as_owner "$root$bin" upgrade --executable "$root$bin" --data-dir "$root$data"
  ) || code=$?
  case $code in
    0) return 0 ;;
    1) switched=failed && return 1 ;;
  esac
  switched=restarted
  say "the gateway cannot hand over to another process and is restarted"
  manage restart sluice.service
}

# Prints the problem, if there is one.
as_checker() {
  problems=$(as_owner "$1" check --data-dir "$root$data" 2>&1) && return 0
  warn "$problems"
  return 1
}

# $1: a copy of the database from before the upgrade, restored only if the former version cannot read the current one.
roll_back() {
  mv "$root$former" "$root$bin"
  manage stop sluice.service || true
  if [ -n "$1" ] && ! as_checker "$root$bin"; then
    aside=$root$data/sluice.db.newer-$(date -u +%Y%m%dT%H%M%SZ)
    for end in '' -wal -shm; do
      [ ! -e "$root$data/sluice.db$end" ] || mv "$root$data/sluice.db$end" "$aside$end"
    done
    as_owner cp "$1" "$root$data/sluice.db"
    warn "the database is the one from before the upgrade; the newer one is $aside"
  fi
  [ "$start" = no ] || manage start sluice.service || true
  [ "$service" = none ] || [ "$start" = no ] || is_ready || fail "the former version is not ready either: journalctl -u sluice says why"
}

go_back() {
  [ -x "$root$former" ] || fail "there is no former version at $root$former"
  # shellcheck disable=SC2012
  newest=$(ls "$root$data"/backups/before-upgrade-*.db 2>/dev/null | sort | tail -n 1)
  roll_back "$newest"
  say "went back to $("$root$bin" version)"
}

uninstall() {
  if [ "$service" = systemd ] && [ -e "$root$unit" ]; then manage disable --now sluice.service || true; fi
  rm -f "$root$unit" "$root$sysctl" "$root$bin" "$root$former"
  [ ! -d "$root${former%/*}" ] || rmdir "$root${former%/*}" 2>/dev/null || true
  manage daemon-reload || true
  if [ "$purge" = no ]; then
    say "removed; configuration and data are still in $root${settings%/*} and $root$data"
    return 0
  fi
  rm -rf "$root${settings%/*}" "$root$data"
  if [ -z "$root" ] && id sluice >/dev/null 2>&1; then
    if command -v userdel >/dev/null; then userdel sluice; else deluser sluice; fi
    if grep -q '^sluice:' /etc/group; then
      if command -v groupdel >/dev/null; then groupdel sluice; else delgroup sluice; fi
    fi
  fi
  say "removed, with all data"
}

case $action in
  install) install_new ;;
  upgrade) upgrade ;;
  rollback) go_back ;;
  uninstall) uninstall ;;
esac
