// The exact cost of a plain proxied request: heap cells, and files whose code runs. A clock is not precise enough.
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { measureCost } from "../../support/request-cost/measure.ts";

const REQUESTS = 10_000;

describe("a proxied GET of a browser", () => {
  test("allocates a bounded number of heap cells", async () => {
    const counts = await measureCost({ mode: "objects", plugins: "plain", requests: REQUESTS });
    const each = (type: string) => (counts[type] ?? 0) / REQUESTS;
    const all = Object.values(counts).reduce((sum, count) => sum + Math.max(0, count), 0);
    // Bun's own share: the fields and the address of the client are an object each.
    expect(each("Object")).toBeLessThanOrEqual(7.2);
    expect(each("string")).toBeLessThanOrEqual(47);
    expect(all / REQUESTS).toBeLessThanOrEqual(66);
  });

  test.each([
    { plugins: "plain", onPath: 12, inAll: 24 },
    { plugins: "plugins", onPath: 18, inAll: 31 },
  ] as const)("$plugins: crosses few files", async ({ plugins, onPath, inAll }) => {
    const requests = 80;
    const counts = await measureCost({ mode: "files", plugins, requests });
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
