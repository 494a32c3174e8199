// Where jwt gets its keys: an issuer on a real socket that changes its keys, fails, lies and is asked no more than allowed.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import type { CalloutRequest, PluginKit } from "../../../src/pdk/kit.ts";
import { KeySet } from "../../../src/plugins/jwt/key-set.ts";
import { keysAt, RemoteKeys } from "../../../src/plugins/jwt/key-source.ts";
import { pluginScene, type PluginScene } from "../../support/plugin-scene.ts";
import { eventually } from "../../support/poll.ts";
import { createKey, Issuer, type SigningKey, signToken, type TokenParts } from "./issuer.ts";
import { bearer } from "./jwt-scene.ts";

let scene: PluginScene;
let issuer: Issuer;
let first: SigningKey;
let second: SigningKey;

beforeAll(async () => {
  issuer = new Issuer();
  [first, second] = await Promise.all([createKey("ES256", "1"), createKey("ES256", "2")]);
  scene = await pluginScene({});
});
afterAll(async () => {
  await scene.stop();
  await issuer.stop();
});
beforeEach(() => {
  issuer.keys = [first.jwk];
  issuer.answer = null;
  issuer.lies = {};
  issuer.asked.length = 0;
});

const use = (own: Record<string, unknown>) =>
  scene.apply({ plugins: [{ name: "jwt", config: own }] });
const get = async (key: SigningKey, parts: TokenParts = {}) =>
  scene.get("/", bearer(await signToken(key, parts)));

describe("a JWKS URL", () => {
  test("is fetched once, however many clients arrive first", async () => {
    await use({ jwks_url: issuer.keysUrl });
    expect(issuer.fetches).toBe(0);
    const answers = await Promise.all(Array.from({ length: 20 }, () => get(first)));
    expect(answers.map(({ status }) => status)).toEqual(Array(20).fill(200));
    expect(issuer.fetches).toBe(1);
  });

  test("is not fetched again for a flood of tokens with unknown keys", async () => {
    await use({ jwks_url: issuer.keysUrl, jwks_refresh_min_interval: 3600 });
    await get(first);
    const flood = Array.from({ length: 50 }, (_, at) => get(second, { header: { kid: `x${at}` } }));
    for (const { status } of await Promise.all(flood)) expect(status).toBe(401);
    expect(issuer.fetches).toBe(1);
    expect((await get(first)).status).toBe(200);
  });

  test("is fetched again for an unknown key after the interval", async () => {
    await use({ jwks_url: issuer.keysUrl, jwks_refresh_min_interval: 1 });
    expect((await get(first)).status).toBe(200);
    issuer.keys = [first.jwk, second.jwk];
    await eventually(async () => (await get(second)).status === 200);
    expect((await get(first)).status).toBe(200);
  });

  test("is fetched again when the keys expire; removed ones are refused", async () => {
    await use({ jwks_url: issuer.keysUrl, jwks_cache_ttl: 1, jwks_refresh_min_interval: 1 });
    expect((await get(first)).status).toBe(200);
    issuer.keys = [second.jwk];
    await eventually(async () => (await get(first)).status === 401);
    expect((await get(second)).status).toBe(200);
  });

  test.each([
    ["an error", () => new Response("", { status: 500 })],
    ["no JSON", () => new Response("<html>")],
    ["no keys", () => Response.json({ keys: [] })],
    ["something else", () => Response.json(null)],
    ["secrets only", () => Response.json({ keys: [{ kty: "oct", k: "AAAA", kid: "1" }] })],
    ["a redirect", () => Response.redirect("/elsewhere")],
    ["too much", () => new Response("x".repeat(300_000))],
  ])("that responds with %s leaves no keys to verify with: 503", async (_, answer) => {
    issuer.answer = answer;
    await use({ jwks_url: issuer.keysUrl, jwks_refresh_min_interval: 7 });
    for (let at = 0; at < 3; at++) {
      const refused = await get(first);
      expect(refused.status).toBe(503);
      expect(refused.headers.get("retry-after")).toBe("7");
      expect(refused.body).not.toContain(issuer.url);
      expect(refused.seen).toBeNull();
    }
    expect(issuer.asked).toHaveLength(1);
  });

  test("may have unsupported keys beside a supported one", async () => {
    const odd = [null, 1, {}, { kty: "RSA" }, { kty: "EC", crv: "P-256", kid: "1" }];
    const encrypting = { ...second.jwk, kid: "2", use: "enc" };
    issuer.keys = [...(odd as []), encrypting, first.jwk];
    await use({ jwks_url: issuer.keysUrl });
    expect((await get(first)).status).toBe(200);
    expect((await get(second)).status).toBe(401);
  });
});

describe("an issuer", () => {
  test("publishes its keys, and they are valid for its own tokens only", async () => {
    const other = new Issuer();
    other.keys = [second.jwk];
    await use({ issuer: [issuer.url, other.url, "not an address"] });
    expect((await get(first, { claims: { iss: issuer.url } })).status).toBe(200);
    expect((await get(second, { claims: { iss: other.url } })).status).toBe(200);
    expect((await get(second, { claims: { iss: issuer.url } })).status).toBe(401);
    expect((await get(first, { claims: { iss: other.url } })).status).toBe(401);
    expect((await get(first, { claims: { iss: "https://elsewhere.test" } })).status).toBe(401);
    expect((await get(first, { claims: { iss: "not an address" } })).status).toBe(401);
    await other.stop();
  });

  test.each([
    ["speaks for another one", { issuer: "https://elsewhere.test" }],
    ["names no keys", { jwks_uri: null }],
    ["has its keys in a file", { jwks_uri: "file:///etc/passwd" }],
  ])("that %s is not trusted", async (_, lies) => {
    issuer.lies = lies;
    await use({ issuer: [issuer.url] });
    expect((await get(first, { claims: { iss: issuer.url } })).status).toBe(503);
    expect(issuer.fetches).toBe(0);
  });

  test("is unused when keys are configured", async () => {
    await use({ issuer: [issuer.url], jwks: { keys: [first.jwk] } });
    expect((await get(first, { claims: { iss: issuer.url } })).status).toBe(200);
    expect(issuer.asked).toEqual([]);
  });
});

describe("over time", () => {
  /** Asks the issuer over its socket; only the clock is ours. */
  function remote() {
    const clock = { now: 1_000_000 };
    const kit = {
      log: () => undefined,
      async callout({ url }: CalloutRequest) {
        const { status, headers, ...rest } = await fetch(url).then(async (response) => ({
          status: response.status,
          headers: response.headers,
          body: await response.bytes(),
        }));
        return { status, headers, body: rest.body };
      },
    } as unknown as PluginKit;
    const keys = new RemoteKeys({
      kit,
      fetch: keysAt(kit, issuer.keysUrl),
      ttlMs: 300_000,
      minIntervalMs: 10_000,
      now: () => clock.now,
    });
    return { clock, keys };
  }
  const knows = async (keys: KeySet | null, id: string) =>
    keys !== null && (await keys.candidates("ES256", id)).length === 1;

  test("keys are cached for their time and then fetched again", async () => {
    const { clock, keys } = remote();
    await keys.keys();
    clock.now += 299_999;
    await keys.keys();
    expect(issuer.fetches).toBe(1);
    clock.now += 1;
    issuer.keys = [second.jwk];
    expect(await knows(await keys.keys(), "2")).toBe(true);
    expect(issuer.fetches).toBe(2);
  });

  test("unknown keys cause one fetch per interval", async () => {
    const { clock, keys } = remote();
    const known = (await keys.keys()) as KeySet;
    for (let interval = 1; interval <= 3; interval++) {
      clock.now += 10_000;
      const present = ((await keys.keys()) ?? known) as KeySet;
      await Promise.all(Array.from({ length: 100 }, () => keys.newer(present)));
      await keys.newer((await keys.keys()) as KeySet);
      expect(issuer.fetches).toBe(1 + interval);
    }
  });

  test("an issuer that fails leaves the last keys in use, and requests do not wait for it", async () => {
    const { clock, keys } = remote();
    await keys.keys();
    issuer.answer = () => new Response("", { status: 500 });
    clock.now += 300_000;
    expect(await knows(await keys.keys(), "1")).toBe(true);
    for (let hour = 0; hour < 5; hour++) {
      clock.now += 3_600_000;
      const present = keys.keys();
      expect(present).toBeInstanceOf(KeySet);
      expect(await knows(await present, "1")).toBe(true);
      // The fetch of the hour before may still be on its way, and counts as this hour's then.
      await eventually(async () => {
        clock.now += 10_000;
        await keys.keys();
        return issuer.fetches >= hour + 3;
      });
    }
    issuer.answer = null;
    issuer.keys = [second.jwk];
    await eventually(async () => {
      clock.now += 10_000;
      return await knows(await keys.keys(), "2");
    });
  });

  test("an unreachable issuer is contacted once per interval", async () => {
    issuer.answer = () => new Response("", { status: 500 });
    const { clock, keys } = remote();
    for (let interval = 1; interval <= 3; interval++) {
      for (let at = 0; at < 5; at++) expect(await keys.keys()).toBeNull();
      expect(issuer.fetches).toBe(interval);
      clock.now += 10_000;
    }
  });
});

describe("a set of keys", () => {
  test("is read up to a hundred", async () => {
    const many = Array.from({ length: 150 }, (_, at) => ({ ...first.jwk, kid: String(at) }));
    const set = KeySet.read({ keys: many });
    expect(await set?.candidates("ES256", "99")).toHaveLength(1);
    expect(await set?.candidates("ES256", "100")).toHaveLength(0);
    expect((await set?.candidates("ES256", null))?.length).toBeLessThanOrEqual(10);
  });

  test("provides a key for no other algorithm than its own", async () => {
    const rsa = await createKey("RS256", "r");
    const open = { ...rsa.jwk, alg: undefined, kid: "open" };
    const short = { ...rsa.jwk, n: "AQAB", kid: "short" };
    const set = KeySet.read({ keys: [rsa.jwk, open, short, first.jwk] });
    const count = async (algorithm: string, id: string) =>
      (await set?.candidates(algorithm, id))?.length;
    expect(await count("RS256", "r")).toBe(1);
    expect(await count("PS256", "r")).toBe(0);
    expect(await count("PS256", "open")).toBe(1);
    expect(await count("RS256", "short")).toBe(0);
    for (const algorithm of ["HS256", "none", "ES384", "RS256", "constructor"])
      expect(await count(algorithm, "1")).toBe(0);
  });
});
