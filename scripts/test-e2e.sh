#!/usr/bin/env bash
# Runs tests/e2e on two cores: the browser's tests and others at the same time, then those with networks of their own, and alone what
# measures times and memory.
# Words are passed on to `bun test`.
set -uo pipefail
cd "$(dirname "$0")/.."

bun=.bun/bin/bun
status=0
logs=$(mktemp -d)
# Nothing goes on when this is interrupted.
trap 'rm -rf "$logs"; jobs -p | xargs -r kill 2>/dev/null' EXIT

alone=(./tests/e2e/{certificates,overload,page-faults}.test.ts)
# Five and a half minutes of waiting, so beside the others, and only when they are wanted. Objects are counted before, in the same
# process, where no other test leaves any.
waiting=(./tests/e2e/{fleet-week,idle-times}.test.ts)
# They add and remove interfaces of the machine, at which Chromium ends all its requests (ERR_NETWORK_CHANGED).
mapfile -t networks < <(grep -l '"network namespaces"' ./tests/e2e/*.test.ts)
elsewhere=(--path-ignore-patterns 'tests/e2e/ui/**')
for file in "${alone[@]}" "${waiting[@]}" "${networks[@]}"; do elsewhere+=(--path-ignore-patterns "${file#./}"); done

run() { "$bun" test --pass-with-no-tests "$@"; }

BUN_TEST_WORKER_ID=2 run "$@" ./tests/e2e/ui >"$logs/ui" 2>&1 &
ui=$!
BUN_TEST_WORKER_ID=3 run "$@" "${waiting[@]}" >"$logs/waiting" 2>&1 &
wait_long=$!
BUN_TEST_WORKER_ID=1 run "${elsewhere[@]}" "$@" ./tests/e2e || status=1
wait "$ui" || status=1
cat "$logs/ui"
wait "$wait_long" || status=1
cat "$logs/waiting"
run "$@" "${networks[@]}" || status=1
run "$@" "${alone[@]}" || status=1
exit $status
