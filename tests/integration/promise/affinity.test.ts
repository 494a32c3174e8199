// Clients that belong to a target are led to it by every worker, and after a restart too.
import { afterEach, expect, test } from "bun:test";
import { cleanupsOf } from "../../support/cleanups.ts";
import { type Gateway, startGateway } from "../../support/gateway.ts";
import { eventually } from "../../support/poll.ts";
import { QuickConnection, type QuickReply } from "../../support/quick-http.ts";
import { startOrigins } from "./probing.ts";

const USERS = Array.from({ length: 12 }, (_, index) => `user-${index}`);

const cleanups = cleanupsOf(afterEach);

async function setUp(service: Record<string, unknown>): Promise<Gateway> {
  const origins = startOrigins(4);
  cleanups.push(() => origins.stop());
  const gateway = await startGateway({ workers: 2 });
  cleanups.push(() => gateway.stop());
  await gateway.ok("PATCH", "/api/v1/settings", { debug_headers: true });
  const targets = origins.ports.map((port) => ({ host: "127.0.0.1", port }));
  await gateway.ok("POST", "/api/v1/services", { name: "app", targets, ...service });
  await gateway.ok("POST", "/api/v1/routes", { name: "all", service_id: "app" });
  return gateway;
}

/** Sends requests over fresh connections until both workers have responded a few times; passes on every response. */
async function askBoth(
  gateway: Gateway,
  fields: string,
  each: (reply: QuickReply) => void,
): Promise<void> {
  const answers = new Map<string, number>();
  await eventually(async () => {
    const connection = await QuickConnection.open(gateway.httpPort);
    const reply = await connection.get("/", "any.test", fields);
    connection.close();
    const worker = reply.header("x-sluice-worker") ?? "none";
    answers.set(worker, (answers.get(worker) ?? 0) + 1);
    each(reply);
    return answers.size === 2 && Math.min(...answers.values()) >= 3;
  });
}

test("a sticky cookie is valid in every worker and after a restart", async () => {
  const gateway = await setUp({ sticky: { enabled: true } });
  const cookies = new Map<string, string>();
  await askBoth(gateway, "", (reply) => {
    const cookie = reply.header("set-cookie")?.split(";")[0] ?? "";
    // Both workers give the same cookie for the same target.
    expect(cookies.get(reply.body) ?? cookie).toBe(cookie);
    cookies.set(reply.body, cookie);
  });
  const expectStay = async () => {
    for (const [target, cookie] of cookies)
      await askBoth(gateway, `Cookie: ${cookie}\r\n`, (reply) => {
        expect(reply.body).toBe(target);
        expect(reply.header("set-cookie")).toBeNull();
      });
  };
  await expectStay();
  await gateway.restart();
  await expectStay();
});

test("a hashed header leads to the same target in every worker and after a restart", async () => {
  const hashOn = { source: "header", name: "X-User" };
  const gateway = await setUp({ algorithm: "consistent_hash", hash_on: hashOn });
  const places = new Map<string, string>();
  const ask = async () => {
    for (const user of USERS)
      await askBoth(gateway, `X-User: ${user}\r\n`, ({ body }) => {
        expect(places.get(user) ?? body).toBe(body);
        places.set(user, body);
      });
  };
  await ask();
  expect(new Set(places.values()).size).toBeGreaterThan(1);
  await gateway.restart();
  await ask();
});
