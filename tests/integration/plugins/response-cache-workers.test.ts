// response-cache on a real gateway whose workers share one store: a URL is fetched once, and a change is seen on all connections.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type Gateway, startGateway } from "../../support/gateway.ts";
import { type Origin, type OriginRequest, reply, startOrigin } from "../../support/origin.ts";
import { eventually } from "../../support/poll.ts";
import { QuickConnection } from "../../support/quick-http.ts";

/** So many that each worker has some. */
const CONNECTIONS = 20;

describe.each([2, 4])("%i workers", (workers) => {
  let gateway: Gateway;
  let origin: Origin;
  let connections: QuickConnection[];
  let version = 1;

  /** Each POST makes a new version of every page. */
  const answer = ({ method, target }: Pick<OriginRequest, "method" | "target">) => {
    if (method === "POST") version++;
    return reply(`${target} ${version}`, {
      headers: method === "POST" ? "" : "Cache-Control: max-age=3600\r\n",
    });
  };

  beforeAll(async () => {
    origin = startOrigin({ answer });
    gateway = await startGateway({ workers });
    const targets = [{ host: "127.0.0.1", port: origin.port }];
    await gateway.ok("POST", "/api/v1/services", { name: "web", targets });
    await gateway.ok("POST", "/api/v1/routes", { name: "all", service_id: "web" });
    await gateway.ok("POST", "/api/v1/plugins", { name: "response-cache" });
    connections = await Promise.all(
      Array.from({ length: CONNECTIONS }, () => QuickConnection.open(gateway.httpPort)),
    );
  });
  afterAll(async () => {
    for (const connection of connections) connection.close();
    await gateway.stop();
    origin.stop();
  });

  const fetches = (path: string) =>
    origin.requests.filter(({ method, target }) => method === "GET" && target === path).length;

  /** All connections at once: how often each body came, with its X-Cache-Status if `words`. */
  async function ask(path: string, words = false): Promise<Record<string, number>> {
    const replies = await Promise.all(connections.map((connection) => connection.get(path)));
    const seen: Record<string, number> = {};
    for (const { body, header } of replies) {
      const key = words ? `${body}, ${header("x-cache-status")}` : body;
      seen[key] = (seen[key] ?? 0) + 1;
    }
    return seen;
  }

  test("fetch a page once, for all connections", async () => {
    for (let page = 0; page < 20; page++) {
      const path = `/page-${page}`;
      expect(await ask(path)).toEqual({ [`${path} ${version}`]: CONNECTIONS });
      expect(fetches(path)).toBe(1);
      expect(await ask(path, true)).toEqual({ [`${path} ${version}, HIT`]: CONNECTIONS });
      expect(fetches(path)).toBe(1);
    }
  });

  test("serve what one connection has fetched to all others", async () => {
    for (const [index, connection] of connections.entries()) {
      const path = `/one-${index}`;
      await connection.get(path);
      expect(await ask(path, true)).toEqual({ [`${path} ${version}, HIT`]: CONNECTIONS });
    }
  });

  test("serve no old version once a POST on any connection has succeeded", async () => {
    await ask("/changed");
    for (const connection of connections) {
      const changed = await connection.send(
        "POST /changed HTTP/1.1\r\nHost: any.test\r\nContent-Length: 0\r\n\r\n",
      );
      expect(changed.status).toBe(200);
      expect(await ask("/changed")).toEqual({ [`/changed ${version}`]: CONNECTIONS });
      expect(await ask("/changed", true)).toEqual({
        [`/changed ${version}, HIT`]: CONNECTIONS,
      });
    }
  });

  test("serve no old version that was on its way during a POST", async () => {
    const [changing, ...others] = connections;
    if (changing === undefined) throw new Error("no connection");
    for (let round = 0; round < 20; round++) {
      const path = `/race-${round}`;
      const held = Promise.withResolvers<void>();
      const arrived = Promise.withResolvers<void>();
      origin.answer = async (request) => {
        const response = answer(request);
        if (request.method === "GET") {
          arrived.resolve();
          await held.promise;
        }
        return response;
      };
      const early = others.map((connection) => connection.get(path));
      await arrived.promise;
      await changing.send(`POST ${path} HTTP/1.1\r\nHost: any.test\r\nContent-Length: 0\r\n\r\n`);
      origin.answer = answer;
      held.resolve();
      await Promise.all(early);
      expect(await ask(path)).toEqual({ [`${path} ${version}`]: CONNECTIONS });
    }
  });

  test("serve no old version that a refresh has asked for before a POST", async () => {
    const [changing, refreshing] = connections;
    if (changing === undefined || refreshing === undefined) throw new Error("no connections");
    const headers = "Cache-Control: max-age=0, stale-while-revalidate=3600\r\n";
    for (let round = 0; round < 20; round++) {
      const path = `/refresh-${round}`;
      const page = ({ method, target }: OriginRequest) =>
        method === "POST" ? answer({ method, target }) : reply(`${target} ${version}`, { headers });
      origin.answer = page;
      const statusOf = async () => (await refreshing.get(path)).header("x-cache-status");
      // A store that was busy has not kept the first response.
      await eventually(async () => (await statusOf()) === "STALE");
      const held = Promise.withResolvers<void>();
      let isAsked = false;
      origin.answer = async (request) => {
        const response = page(request);
        if (request.method === "GET") {
          isAsked = true;
          await held.promise;
        }
        return response;
      };
      // Served at once, and refreshed in the background once the refresh before has ended.
      await eventually(async () => {
        expect(await statusOf()).toBe("STALE");
        return isAsked;
      });
      await changing.send(`POST ${path} HTTP/1.1\r\nHost: any.test\r\nContent-Length: 0\r\n\r\n`);
      origin.answer = page;
      expect(await ask(path)).toEqual({ [`${path} ${version}`]: CONNECTIONS });
      held.resolve();
      for (let again = 0; again < 3; again++)
        expect(await ask(path)).toEqual({ [`${path} ${version}`]: CONNECTIONS });
    }
    origin.answer = answer;
  });
});
