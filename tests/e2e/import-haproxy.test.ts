// Frontends of HAProxy, imported: whatever HAProxy denies, the gateway denies too. Needs haproxy.
import { expect } from "bun:test";
import { type Gateway, startGateway } from "../support/gateway.ts";
import { type Haproxy, startHaproxy } from "../support/haproxy.ts";
import { needs } from "../support/needs.ts";
import { fileOf, frontends, requests } from "./import/haproxy-sites.ts";
import { ask, judge, startOpenOrigin } from "./import/judge.ts";

const { afterAll, beforeAll, describe, test } = needs("haproxy");

const origins = ["one", "two", "three"].map(startOpenOrigin);
const [one = 0, two = 0, three = 0] = origins.map(({ port }) => port ?? 0);

let gateway: Gateway;
beforeAll(async () => {
  gateway = await startGateway({ workers: 1 });
});
afterAll(async () => {
  await gateway?.stop();
  for (const server of origins) await server.stop(true);
});

/** How many requests reach the same origin as in HAProxy, at least; null: the import closes the frontend. */
const SAME: readonly (number | null)[] = [
  ...[350, 250, 18, 250, 5, 200, 80, 200, null, null, 150, null, 200, 200],
];

describe.each(frontends.map((frontend, index) => ({ frontend, index })))(
  "frontend $index",
  ({ frontend, index }) => {
    test("the gateway allows no request that HAProxy denies, and sends others to the same origin", async () => {
      const file = (bind: string) => fileOf(frontend, bind, { one, two, three });
      const hasGuards = frontend.includes("guarded");
      const haproxy: Haproxy = await startHaproxy(file);
      try {
        const answer = await fetch(
          `${gateway.admin}/api/v1/import?from=haproxy&mode=replace&force=1`,
          { method: "POST", body: file("*:80") },
        );
        expect([answer.status, answer.ok ? "" : await answer.text()]).toEqual([200, ""]);
        const found: string[] = [];
        let same = 0;
        for (const asked of requests()) {
          const at = { source: haproxy.port, gateway: gateway.httpPort };
          const { isMoreOpen, source, here } = await judge(asked, at);
          if (here.open !== null && here.open === source.open) same += 1;
          // Where all routes have the same protections, a prefix matches whole segments, and hosts any port.
          if (!isMoreOpen || (source.open !== null && !hasGuards)) continue;
          // The gateway decodes letters in a path, and forwards them so.
          const plain = { ...asked, path: asked.path.replaceAll("%61", "a") };
          if ((await ask(plain, haproxy.port)).open === here.open) continue;
          found.push(JSON.stringify({ ...asked, haproxy: source, sluice: here }));
        }
        expect(found).toEqual([]);
        const wanted = SAME[index] ?? null;
        if (wanted === null) expect(same).toBe(0);
        else expect(same).toBeGreaterThanOrEqual(wanted);
      } finally {
        await haproxy.stop();
      }
    });
  },
);
