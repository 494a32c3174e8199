// The exact cost of a plain proxied request: heap cells, and files whose code runs. A clock is not precise enough.
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { measureCost } from "../../support/request-cost/measure.ts";

const REQUESTS = 10_000;

describe("a proxied GET of a browser", () => {
  test.each([
    // Bun's own share: the fields and the address of the client are an object each.
    { engine: "bun", objects: 7.2, strings: 39, cells: 60 },
    { engine: "sluice", objects: 8.2, strings: 25, cells: 40 },
  ] as const)("$engine: allocates a bounded number of heap cells", async (most) => {
    const { engine } = most;
    const counts = await measureCost({
      mode: "objects",
      path: "plain",
      engine,
      requests: REQUESTS,
    });
    const each = (type: string) => (counts[type] ?? 0) / REQUESTS;
    const all = Object.values(counts).reduce((sum, count) => sum + Math.max(0, count), 0);
    expect(each("Object")).toBeLessThanOrEqual(most.objects);
    expect(each("string")).toBeLessThanOrEqual(most.strings);
    expect(all / REQUESTS).toBeLessThanOrEqual(most.cells);
  });

  test.each([
    { path: "plain", calls: 106 },
    { path: "plugins", calls: 192 },
    { path: "cached hit", calls: 215 },
    { path: "error page", calls: 219 },
    { path: "redirect", calls: 168 },
    { path: "sticky cookie", calls: 216 },
  ] as const)("sluice, $path: goes to the client without Headers", async ({ path, calls }) => {
    const engine = "sluice";
    const requests = 1000;
    const made = await measureCost({ mode: "objects", path, engine, requests });
    // The runtime itself makes some, not for each request.
    expect((made["Headers"] ?? 0) / requests).toBeLessThan(0.01);
    expect((made["Response"] ?? 0) / requests).toBeLessThan(0.01);
    const counts = await measureCost({ mode: "files", path, engine, requests: 80 });
    const each = Object.values(counts).filter((count) => count >= 80);
    expect(each.reduce((sum, count) => sum + count, 0) / 80).toBeLessThanOrEqual(calls);
  });

  test.each(["plain", "plugins", "cached hit", "error page", "redirect", "sticky cookie"] as const)(
    "sluice, %s: nothing of a request stays in memory",
    async (path) => {
      const requests = 4000;
      const kept = await measureCost({ mode: "kept", path, engine: "sluice", requests });
      const stays = Object.entries(kept).filter(([, count]) => count >= requests / 20);
      expect(stays).toEqual([]);
    },
  );

  test.each([
    { engine: "bun", path: "plain", onPath: 10, inAll: 18, calls: 133 },
    { engine: "bun", path: "plugins", onPath: 14, inAll: 25, calls: 213 },
    { engine: "sluice", path: "plain", onPath: 10, inAll: 23, calls: 106 },
    { engine: "sluice", path: "plugins", onPath: 14, inAll: 30, calls: 192 },
  ] as const)("$engine, $path: crosses few files", async (most) => {
    const { engine, path, onPath, inAll } = most;
    const requests = 80;
    const counts = await measureCost({ mode: "files", path, engine, requests });
    // The runs before the count are a quarter as many.
    const calls = Object.values(counts).filter((count) => count >= requests);
    const each = calls.reduce((sum, count) => sum + count, 0) / requests;
    expect(each).toBeLessThanOrEqual(most.calls);
    const files = new Set(
      Object.entries(counts)
        // Timers and connections run code occasionally, not for each request.
        .filter(([, count]) => count >= requests)
        .map(([key]) => key.slice(0, key.indexOf(" ")))
        .filter((file) => file.startsWith("dataplane/")),
    );
    const crossed = [...files].filter(knowsRequests).sort();
    // The rest are structures independent of requests: lists, balancers, the path index, connections.
    expect(crossed.slice(onPath)).toEqual([]);
    expect([...files].sort().slice(inAll)).toEqual([]);
  });
});

/** Whether the file handles requests: it names the object that carries one, or what it sees of it. */
function knowsRequests(file: string): boolean {
  const text = readFileSync(join(import.meta.dir, "../../../src", file), "utf8");
  return /\b(?:ClientRequest|ClientStream|RecordedRequest|ExchangeOwner|RequestContext)\b/.test(
    text,
  );
}
