// The command `replay`: requests of access logs, sent to two gateways, and what differs between their responses.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCommand } from "../../support/gateway.ts";

const directory = mkdtempSync(join(tmpdir(), "sluice-replay-"));
const seen: string[] = [];
const serve = (name: string) =>
  Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch(request, server) {
      const { pathname, search } = new URL(request.url);
      const host = request.headers.get("host") ?? "";
      seen.push(`${name} ${request.method} ${host}${pathname}${search}`);
      if (pathname === "/move")
        return new Response(null, {
          status: 301,
          headers: { location: `http://${host}:${server.port}/to` },
        });
      const isOpen = pathname !== "/closed" || name === "old";
      return new Response("x", {
        status: isOpen ? 200 : 503,
        headers: { "x-frame-options": pathname === "/frame" ? name : "DENY", date: name },
      });
    },
  });
const [old, own] = [serve("old"), serve("own")];

beforeAll(() => {
  seen.length = 0;
});
afterAll(async () => {
  await old.stop(true);
  await own.stop(true);
  rmSync(directory, { recursive: true, force: true });
});

const run = (lines: readonly string[], ...more: readonly string[]) => {
  const file = join(directory, "access.log");
  writeFileSync(file, lines.join("\n"));
  const addresses = ["--old", `127.0.0.1:${old.port}`, "--new", `127.0.0.1:${own.port}`];
  return runCommand(["replay", file, ...addresses, ...more]);
};

const npm = (path: string) =>
  `[01/Jan/2026:10:00:00 +0000] - 200 200 - GET http a.test "${path}" [Client 192.0.2.1] [Length 1]`;

test("logs of each format are read, each request is sent once, and nothing but GET", async () => {
  const common = '192.0.2.1 - - [01/Jan/2026:10:00:00 +0000] "GET /c?x=1 HTTP/1.1" 200 1 "-" "x"';
  const result = await run(
    [
      npm("/n"),
      npm("/n"),
      '{"request":{"method":"GET","host":"b.test:80","uri":"/caddy"},"status":200}',
      '{"RequestMethod":"GET","RequestHost":"t.test","RequestPath":"/traefik"}',
      '{"RequestMethod":"POST","RequestHost":"t.test","RequestPath":"/post"}',
      common,
      `v.test ${common.replace("/c?x=1", "/vhost")}`,
      "nonsense",
      "{",
    ],
    "--host",
    "c.test",
  );
  expect([result.code, result.stderr]).toEqual([0, ""]);
  expect(result.stdout).toBe(
    "a.test: 1 of 1 alike\nb.test: 1 of 1 alike\nt.test: 1 of 1 alike\nc.test: 2 of 2 alike\n",
  );
  expect(seen.filter((one) => one.startsWith("old")).toSorted()).toEqual(
    ["a.test/n", "b.test/caddy", "c.test/c?x=1", "c.test/vhost", "t.test/traefik"].map(
      (one) => `old GET ${one}`,
    ),
  );
});

test("other statuses and headers are named, and redirects compare without the ports", async () => {
  const lines = ["/move", "/closed", "/frame", "/same"].map(npm);
  const result = await run(lines);
  expect([result.code, result.stdout]).toEqual([
    1,
    "a.test: 2 of 4 alike\n  /closed: status 200 -> 503\n  /frame: x-frame-options old -> own\n",
  ]);
  const json = await run(lines, "--output", "json", "--max", "2");
  expect(JSON.parse(json.stdout)).toEqual({
    requests: 2,
    differences: [{ host: "a.test", target: "/closed", of: "status", old: "200", new: "503" }],
  });
});

test.each([
  [["nonsense"], [], "holds no GET request"],
  [[npm("/x")], ["--max", "0"], "--max: must be 1 to 100000"],
] as const)("%j with %j: %s", async (lines, flags, says) => {
  const result = await run(lines, ...flags);
  expect(result.code).toBeGreaterThan(0);
  expect(result.stderr).toContain(says);
});

test("addresses have ports", async () => {
  const { code, stderr } = await runCommand(["replay", "access.log", "--old", "127.0.0.1"]);
  expect([code, stderr]).toEqual([2, expect.stringContaining("--old: must be ADDRESS:PORT")]);
});
