#!/usr/bin/env bash
# Runs tests/e2e with the executable in lanes beside each other, since most of them wait for programs: those of the browser, those with
# networks of machines, those that wait for minutes, and the others; then alone what measures times and memory.
# Words are passed on to `bun test`.
set -uo pipefail
cd "$(dirname "$0")/.."

bun=.bun/bin/bun
status=0
logs=$(mktemp -d)
# Nothing goes on when this is interrupted.
trap 'rm -rf "$logs"; jobs -p | xargs -r kill 2>/dev/null' EXIT

# The last one has networks too, and builds the version before, for which it needs the registry: after the browser, with the machine's.
alone=(./tests/e2e/{certificates,overload,page-faults,fleet-upgrade}.test.ts)
# Five and a half minutes of waiting, and only when they are wanted. Objects are counted before, in the same process, where no other
# test leaves any.
waiting=(./tests/e2e/{fleet-week,idle-times}.test.ts)
# They add and remove interfaces of the machine, at which Chromium ends all its requests (ERR_NETWORK_CHANGED): in a network of
# their own, if that is allowed. Otherwise each of their tests skips itself.
mapfile -t networks < <(grep -l '"network namespaces"' ./tests/e2e/*.test.ts | grep -v fleet-upgrade)
apart=(unshare --net sh -c 'ip link set lo up && exec "$@"' sh)
"${apart[@]}" true 2>/dev/null || apart=()
elsewhere=(--path-ignore-patterns 'tests/e2e/ui/**')
for file in "${alone[@]}" "${waiting[@]}" "${networks[@]}"; do elsewhere+=(--path-ignore-patterns "${file#./}"); done

echo "gateways start from ${SLUICE_TEST_BINARY:=$PWD/dist/sluice}: $("$SLUICE_TEST_BINARY" version)"
export SLUICE_TEST_BINARY
# Bun gives 5 s to a test in the processes of `--parallel`, whatever tests/support/preload.ts sets.
words=(test --pass-with-no-tests --timeout=900000)
run() { "$bun" "${words[@]}" "$@"; }

# lane NAME COMMAND...: runs it beside the others; its output is shown at the end.
lanes=()
lane() {
  local name=$1 began=$SECONDS
  shift
  { "$@" || touch "$logs/$name.failed"; echo "lane $name: $((SECONDS - began)) s"; } >"$logs/$name" 2>&1 &
  lanes+=("$name")
}

# Processes of the lanes that have one choose ports of their own by this number; 0 to 3 are those of `--parallel`.
BUN_TEST_WORKER_ID=4 lane ui run "$@" ./tests/e2e/ui
BUN_TEST_WORKER_ID=5 lane waiting run "$@" "${waiting[@]}"
lane networks "${apart[@]}" "$bun" "${words[@]}" "$@" "${networks[@]}"
lane others run --parallel=2 "${elsewhere[@]}" "$@" ./tests/e2e
wait
for name in "${lanes[@]}"; do
  cat "$logs/$name"
  [ ! -e "$logs/$name.failed" ] || status=1
done
run "$@" "${alone[@]}" || status=1
exit $status
