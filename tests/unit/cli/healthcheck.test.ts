// The command healthcheck: which URL it requests, and its exit code for each response.
import { afterEach, expect, test } from "bun:test";
import { healthcheckCommand, readyUrls } from "../../../src/cli/healthcheck.ts";

const cleanups: (() => unknown)[] = [];
afterEach(() => {
  for (const cleanup of cleanups.splice(0)) cleanup();
});

test.each([
  [undefined, false, ["http://127.0.0.1:9080/readyz"]],
  ["0.0.0.0:9080", false, ["http://127.0.0.1:9080/readyz"]],
  ["[::]:9080", false, ["http://[::1]:9080/readyz"]],
  // A gateway that may not listen on the configured address listens on loopback.
  ["10.0.0.2:9443", true, ["https://10.0.0.2:9443/readyz", "https://127.0.0.1:9443/readyz"]],
  ["[fd00::1]:1", false, ["http://[fd00::1]:1/readyz", "http://[::1]:1/readyz"]],
  ["gw.lan:1", false, ["http://gw.lan:1/readyz", "http://127.0.0.1:1/readyz"]],
  ["localhost:1", false, ["http://localhost:1/readyz"]],
])("%s with TLS %p is requested at %j", (admin, speaksTls, urls) => {
  expect(readyUrls(admin, speaksTls)).toEqual(urls);
});

function serve(statuses: readonly number[]): string {
  const left = [...statuses];
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: () => new Response(null, { status: (left.length > 1 ? left.shift() : left[0]) ?? 500 }),
  });
  cleanups.push(() => server.stop(true));
  return `127.0.0.1:${server.port}`;
}

const run = (env: Record<string, string>, ...argv: string[]) =>
  healthcheckCommand.run(argv, { env, print: () => undefined });

test.each([
  ["ready", [200], [], 0],
  ["not ready", [503], [], 1],
  ["somebody else, who redirects", [302], [], 1],
  ["ready after a while", [503, 503, 200], ["--wait", "20"], 0],
] as const)("%s", async (_why, statuses, argv, code) => {
  expect(await run({ SLUICE_ADMIN: serve(statuses) }, ...argv)).toBe(code);
});

test("a port without a listener", async () => {
  expect(await run({ SLUICE_ADMIN: "127.0.0.1:1" })).toBe(1);
});

test.each([
  ["--wait", "soon"],
  ["--wait", "-1"],
  ["--admin", "nonsense"],
])("%s %s is rejected", (flag, value) => {
  expect(run({}, flag, value)).rejects.toThrow(flag);
});
