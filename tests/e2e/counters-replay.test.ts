// What may be used once, on several nodes with a real Redis server: nonces, states of logins, ended sessions.
import { expect } from "bun:test";
import { Jar, CALLBACK, LOGOUT, World } from "../integration/plugins/oidc-world.ts";
import { signed } from "../integration/plugins/signer.ts";
import { cleanupsOf } from "../support/cleanups.ts";
import { needs } from "../support/needs.ts";
import { pluginScene } from "../support/plugin-scene.ts";
import { Redis } from "../support/redis.ts";

const { afterEach, test } = needs("redis-server");

const cleanups = cleanupsOf(afterEach);

async function startRedis() {
  const redis = await Redis.create();
  cleanups.push(() => redis.stop());
  const address = { url: redis.url, ca: null, cert: null, key: null, timeoutMs: 10_000 };
  return { redis, sharedCounters: { ...address, scope: "fleet", secret: "test" } };
}

const SECRET = "a secret of the client";

test("a nonce of hmac-auth that one node has accepted is refused on the others", async () => {
  const { redis, sharedCounters } = await startRedis();
  const scenes = await Promise.all(
    [1, 2].map(() =>
      pluginScene({
        sharedCounters,
        consumers: [{ username: "alice" }],
        credentials: [
          {
            type: "hmac",
            consumerId: "alice",
            identifier: "key-of-ann",
            algorithm: "hmac-sha256",
            secret: SECRET,
          },
        ],
        plugins: [
          { name: "hmac-auth", config: { nonce_cache: true, required_components: ["@method"] } },
        ],
      }),
    ),
  );
  for (const scene of scenes) cleanups.push(() => scene.stop());
  const withNonce = (nonce: string) =>
    signed({
      components: [['"@method"', "GET"]],
      key: SECRET,
      keyId: "key-of-ann",
      parameters: { nonce },
    });
  const statusesOf = async (headers: Record<string, string>) =>
    await Promise.all(scenes.map(async (scene) => (await scene.get("/", headers)).status));
  // At the same time, then again.
  const headers = withNonce("one");
  expect((await statusesOf(headers)).toSorted()).toEqual([200, 401]);
  expect(await statusesOf(headers)).toEqual([401, 401]);
  expect(await redis.ask("KEYS", "*")).not.toContain("key-of-ann");
  // Without the server each node refuses what it has seen.
  await redis.kill();
  const later = withNonce("two");
  expect(await statusesOf(later)).toEqual([200, 200]);
  expect(await statusesOf(later)).toEqual([401, 401]);
});

test("the state of a login with oidc, and a session that has ended, are refused on other nodes", async () => {
  const { sharedCounters } = await startRedis();
  const one = await World.start({ sharedCounters });
  cleanups.push(() => one.stop());
  const other = await World.start({ sharedCounters }, one);
  cleanups.push(() => other.scene.stop());
  // A load balancer gives both nodes one name.
  const host = { Host: "app.test" };
  const jar = new Jar();
  const back = one.provider.agree(await one.begin("/page", jar, host));
  const copied = { ...host, ...jar.header };
  expect((await one.get(`${CALLBACK}?${back}`, jar, host)).status).toBe(302);
  const replayed = await other.scene.get(`${CALLBACK}?${back}`, copied);
  expect([replayed.status, replayed.body.includes("used already")]).toEqual([400, true]);

  const session = { ...host, ...jar.header };
  for (const { scene } of [one, other])
    expect((await scene.get("/page", session)).status).toBe(200);
  await one.get(LOGOUT, jar, host);
  for (const { scene } of [one, other])
    expect((await scene.get("/page", session)).status).toBe(302);
});
