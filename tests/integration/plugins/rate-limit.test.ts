// rate-limit on a real data plane, with a clock of its own: keys, limits, headers.
import { afterEach, describe, expect, test } from "bun:test";
import { CounterTable } from "../../../src/shared-memory/counter-table.ts";
import { hashToken } from "../../../src/crypto/token.ts";
import { pluginScene, type PluginScene } from "../../support/plugin-scene.ts";

/** Begins where windows of every length up to an hour begin. */
const START = 3_600_000_000;
const scenes: PluginScene[] = [];
afterEach(async () => {
  for (const scene of scenes.splice(0)) await scene.stop();
});

type Sketch = Parameters<typeof pluginScene>[0];

async function limited(config: object, sketch: Sketch = {}) {
  const time = { now: START };
  const counters = CounterTable.create({ keys: 1000, workers: 1 }, { now: () => time.now });
  const scene = await pluginScene({
    settings: { trusted_proxies: ["127.0.0.1"] },
    counters,
    ...sketch,
    plugins: [{ name: "rate-limit", config: config as never }, ...(sketch.plugins ?? [])],
  });
  scenes.push(scene);
  const from = (address: string) => scene.get("/", { "X-Forwarded-For": address });
  return { time, scene, from, counters };
}

const statuses = async (times: number, ask: (index: number) => Promise<{ status: number }>) => {
  const all: number[] = [];
  for (let index = 0; index < times; index++) all.push((await ask(index)).status);
  return all;
};

const only = (fields: object, rest: object = {}) => ({
  limits: [{ requests: 2, algorithm: "fixed", ...fields }],
  ...rest,
});

describe("headers", () => {
  test("of a limit, before and when it is reached", async () => {
    const { time, scene } = await limited(only({ window: 60 }));
    time.now += 10_500;
    const first = await scene.get("/");
    expect(first.status).toBe(200);
    const told = Object.fromEntries(first.headers);
    expect(told).toMatchObject({
      "ratelimit-policy": '"default";q=2;w=60',
      ratelimit: '"default";r=1;t=50',
      "ratelimit-limit": "2",
      "ratelimit-remaining": "1",
      "ratelimit-reset": "50",
      "x-ratelimit-limit": "2",
      "x-ratelimit-remaining": "1",
      "x-ratelimit-reset": "50",
    });
    expect(told).not.toHaveProperty("retry-after");
    await scene.get("/");
    const refused = await scene.get("/");
    expect(refused.status).toBe(429);
    expect(refused.seen).toBeNull();
    expect(Object.fromEntries(refused.headers)).toMatchObject({
      "ratelimit-policy": '"default";q=2;w=60',
      ratelimit: '"default";r=0;t=50',
      "retry-after": "50",
      "cache-control": "no-store",
    });
    expect(refused.headers.get("proxy-status")).toStartWith("sluice; error=http_request_denied");
    time.now += 49_499;
    const last = await scene.get("/");
    expect([last.status, last.headers.get("retry-after")]).toEqual([429, "1"]);
    time.now += 1;
    expect((await scene.get("/")).status).toBe(200);
  });

  test.each([
    ["draft11", ["ratelimit", "ratelimit-policy"]],
    [
      "legacy",
      [
        ...["ratelimit-limit", "ratelimit-remaining", "ratelimit-reset"],
        ...["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"],
      ],
    ],
    ["off", []],
  ])("in the form %s", async (headers, names) => {
    const { scene } = await limited(only({ requests: 1 }, { headers }));
    const told = (answer: { headers: Headers }) =>
      [...answer.headers.keys()].filter((name) => name.includes("ratelimit"));
    expect(told(await scene.get("/")).sort()).toEqual([...names].sort());
    const refused = await scene.get("/");
    expect(told(refused).sort()).toEqual([...names].sort());
    expect(refused.headers.get("retry-after")).not.toBeNull();
  });

  test("name the limit with the least remaining first, and replace those of the target", async () => {
    const answer = () =>
      new Response("ok", { headers: { "RateLimit-Limit": "7", RateLimit: "mine" } });
    const config = {
      limits: [
        { name: "hour", requests: 100, window: 3600, algorithm: "fixed" },
        { name: "burst", requests: 3, window: 10, algorithm: "fixed" },
      ],
    };
    const { scene } = await limited(config, { answer });
    const { headers } = await scene.get("/");
    expect(headers.get("ratelimit")).toBe('"burst";r=2;t=10, "hour";r=99;t=3600');
    expect(headers.get("ratelimit-policy")).toBe('"burst";q=3;w=10, "hour";q=100;w=3600');
    expect(headers.get("ratelimit-limit")).toBe("3");
  });

  test("have the configured status and text", async () => {
    const { scene } = await limited(only({ requests: 1 }, { status: 503, message: "come back" }));
    await scene.get("/");
    const refused = await scene.get("/", { Accept: "application/json" });
    expect(refused.status).toBe(503);
    expect(JSON.parse(refused.body)).toMatchObject({ status: 503, detail: "come back" });
  });

  test("are also on responses of the gateway itself and of plugins behind", async () => {
    const { scene } = await limited(only({}), { services: [{ name: "web", targets: [] }] });
    const { status, headers } = await scene.get("/");
    expect([status, headers.get("ratelimit")]).toEqual([503, '"default";r=1;t=60']);
  });
});

describe("a window", () => {
  test("that is fixed restarts with each multiple of its length", async () => {
    const { time, scene } = await limited(only({ window: 10 }));
    time.now += 9999;
    expect(await statuses(3, () => scene.get("/"))).toEqual([200, 200, 429]);
    time.now += 1;
    expect(await statuses(3, () => scene.get("/"))).toEqual([200, 200, 429]);
  });

  test("that slides counts the remainder of the previous one, and sends an exact Retry-After", async () => {
    const { time, scene } = await limited({ limits: [{ requests: 10, window: 10 }] });
    time.now += 9000;
    expect((await statuses(11, () => scene.get("/"))).filter((each) => each === 200)).toHaveLength(
      10,
    );
    time.now += 2000;
    // A tenth of the ten has gone by.
    expect(await statuses(2, () => scene.get("/"))).toEqual([200, 429]);
    for (let round = 0; round < 20; round++) {
      const { headers } = await scene.get("/");
      const wait = Number(headers.get("retry-after"));
      expect(wait).toBeGreaterThanOrEqual(1);
      time.now += wait * 1000;
      expect((await scene.get("/")).status).toBe(200);
      while ((await scene.get("/")).status === 200);
    }
  });

  test("that slides allows no more than the limit in a window, and less than twice as much in any period", async () => {
    const [requests, window] = [20, 10];
    const { time, scene } = await limited({ limits: [{ requests, window }] });
    const passed: number[] = [];
    for (let step = 0; step < 100; step++) {
      time.now += [0, 150, 700, 0, 35][step % 5] ?? 0;
      for (const status of await statuses(3, () => scene.get("/")))
        if (status === 200) passed.push(time.now);
    }
    const within = (from: number) =>
      passed.filter((at) => at >= from && at < from + window * 1000).length;
    for (let from = START; from < time.now; from += window * 1000)
      expect(within(from)).toBeLessThanOrEqual(requests);
    for (const at of passed) expect(within(at)).toBeLessThan(requests * 2);
    expect(passed.length).toBeGreaterThan(requests);
  });

  test("of a clock that goes back rejects no client for long", async () => {
    const { time, scene } = await limited(only({ window: 10 }));
    expect(await statuses(3, () => scene.get("/"))).toEqual([200, 200, 429]);
    time.now -= 3_600_000;
    expect(await statuses(3, () => scene.get("/"))).toEqual([200, 200, 429]);
    time.now += 10_000;
    expect((await scene.get("/")).status).toBe(200);
  });
});

describe("a token bucket", () => {
  test("allows a burst and then a constant rate", async () => {
    const { time, scene } = await limited({
      limits: [{ requests: 60, window: 60, algorithm: "token_bucket", burst: 3 }],
    });
    expect(await statuses(4, () => scene.get("/"))).toEqual([200, 200, 200, 429]);
    const refused = await scene.get("/");
    expect(refused.headers.get("retry-after")).toBe("1");
    expect(refused.headers.get("ratelimit-policy")).toBe('"default";q=3;w=3');
    time.now += 1000;
    expect(await statuses(2, () => scene.get("/"))).toEqual([200, 429]);
    time.now += 60_000;
    expect(await statuses(4, () => scene.get("/"))).toEqual([200, 200, 200, 429]);
  });
});

describe("several limits", () => {
  test.each(["fixed", "sliding", "token_bucket"])(
    "must all have capacity, and one that refuses costs nothing in the others (%s)",
    async (algorithm) => {
      const limits = [
        { name: "many", requests: 5, window: 3600, algorithm, key: "ip" },
        { name: "few", requests: 2, window: 60, algorithm, key: "header:X-App" },
      ];
      const { scene } = await limited({ limits });
      const app = (name: string) => () => scene.get("/", { "X-App": name });
      expect(await statuses(6, app("a"))).toEqual([200, 200, 429, 429, 429, 429]);
      expect(await statuses(2, app("b"))).toEqual([200, 200]);
      expect(await statuses(2, app("c"))).toEqual([200, 429]);
      const refused = await app("c")();
      // The app has room, the address has none.
      expect(refused.headers.get("ratelimit")).toMatch(/^"many";r=0;t=\d+, "few";r=1;t=\d+$/);
    },
  );

  test("apply by their conditions", async () => {
    const limits = [
      { name: "writes", requests: 1, algorithm: "fixed", when: { method: ["POST"] } },
      { name: "all", requests: 3, algorithm: "fixed" },
    ];
    const { scene } = await limited({ limits });
    expect((await scene.send("POST", "/")).status).toBe(200);
    expect((await scene.send("POST", "/")).status).toBe(429);
    const { headers } = await scene.get("/");
    expect(headers.get("ratelimit-policy")).toBe('"all";q=3;w=60');
    expect(await statuses(2, () => scene.get("/"))).toEqual([200, 429]);
  });

  test("none of which applies do not affect a request", async () => {
    const { scene } = await limited(only({ when: { path: ["/api"] } }));
    const { status, headers } = await scene.get("/");
    expect([status, headers.get("ratelimit")]).toEqual([200, null]);
  });

  test("may have a cost above one for a request", async () => {
    const { scene } = await limited(only({ requests: 5, cost: 2 }));
    expect(await statuses(3, () => scene.get("/"))).toEqual([200, 200, 429]);
  });
});

describe("requests are counted by", () => {
  test("the address, of IPv6 by the network", async () => {
    const { from } = await limited(only({ requests: 1 }));
    const all = ["192.0.2.1", "192.0.2.1", "192.0.2.2", "2001:db8:1:1::1", "2001:db8:1:1:2::9"];
    expect(await statuses(6, (at) => from([...all, "2001:db8:1:2::1"][at] ?? ""))).toEqual([
      ...[200, 429, 200],
      ...[200, 429, 200],
    ]);
  });

  test("the configured prefix of an IPv6 address", async () => {
    const { from } = await limited(only({ requests: 1 }, { ipv6_prefix: 128 }));
    expect((await from("2001:db8:1:1::1")).status).toBe(200);
    expect((await from("2001:db8:1:1::2")).status).toBe(200);
    expect((await from("2001:db8:1:1::1")).status).toBe(429);
  });

  test.each([
    ["header:X-App", { "X-App": "a" }, { "X-App": "b" }],
    ["cookie:app", { Cookie: "app=a" }, { Cookie: "x=1; app=b" }],
  ])("%s, or by the address when it is missing", async (key, one, other) => {
    const { scene } = await limited(only({ requests: 1, key }));
    const ask = (headers: Record<string, string>) => () => scene.get("/", headers);
    expect(await statuses(2, ask(one as never))).toEqual([200, 429]);
    expect(await statuses(2, ask(other as never))).toEqual([200, 429]);
    expect(await statuses(2, ask({}))).toEqual([200, 429]);
    // A value is never read as an address.
    expect(await statuses(1, ask({ "X-App": "127.0.0.1", Cookie: "app=127.0.0.1" }))).toEqual([
      200,
    ]);
  });

  test("a query parameter, decoded", async () => {
    const { scene } = await limited(only({ requests: 1, key: "query:key" }));
    expect((await scene.get("/?key=a%20b")).status).toBe(200);
    expect((await scene.get("/?x=1&key=a+b")).status).toBe(429);
    expect((await scene.get("/?key=c")).status).toBe(200);
  });

  test("route and service together with others", async () => {
    const { scene } = await limited(only({ requests: 1, key: ["route", "header:X-App"] }), {
      routes: [
        { name: "all", service_id: "web" },
        { name: "other", service_id: "web", paths: ["/other"] },
      ],
    });
    const ask = (path: string, app: string) => scene.get(path, { "X-App": app });
    expect((await ask("/", "a")).status).toBe(200);
    expect((await ask("/", "a")).status).toBe(429);
    expect((await ask("/other", "a")).status).toBe(200);
    expect((await ask("/", "b")).status).toBe(200);
    await scene.apply({
      plugins: [{ name: "rate-limit", config: only({ requests: 1, key: "service" }) as never }],
    });
    expect((await ask("/", "a")).status).toBe(200);
    expect((await ask("/other", "b")).status).toBe(429);
  });

  test("parts that cannot be shifted into each other", async () => {
    const { scene } = await limited(only({ requests: 1, key: ["header:a", "header:b"] }));
    expect((await scene.get("/", { a: "x", b: "y1:z" })).status).toBe(200);
    expect((await scene.get("/", { a: "xy", b: "1:z" })).status).toBe(200);
    expect((await scene.get("/", { a: "x", b: "y1:z" })).status).toBe(429);
  });

  test.each(["consumer", "credential"])("%s, wherever it comes from", async (key) => {
    const { scene } = await limited(only({ requests: 1, key }), {
      plugins: [{ name: "key-auth", config: { anonymous_consumer: "guest" } }],
      consumers: [{ username: "alice" }, { username: "guest" }],
      credentials: [
        { type: "key", consumerId: "alice", id: "one", hash: hashToken("one") },
        { type: "key", consumerId: "alice", id: "two", hash: hashToken("two") },
      ],
    });
    const ask = (apikey: string, address: string) =>
      scene.get("/", { ...(apikey === "" ? {} : { apikey }), "X-Forwarded-For": address });
    expect((await ask("one", "192.0.2.1")).status).toBe(200);
    expect((await ask("one", "192.0.2.2")).status).toBe(429);
    expect((await ask("two", "192.0.2.1")).status).toBe(key === "consumer" ? 429 : 200);
    // Anonymous clients do not share the anonymous consumer's count.
    expect((await ask("", "192.0.2.1")).status).toBe(200);
    expect((await ask("", "192.0.2.1")).status).toBe(429);
    expect((await ask("", "192.0.2.2")).status).toBe(200);
  });

  test("a claim, but only of an accepted token", async () => {
    const { SignJWT } = await import("jose");
    const secret = "0123456789abcdef0123456789abcdef";
    const { scene } = await limited(only({ requests: 1, key: "jwt:tenant" }), {
      plugins: [
        { name: "jwt", routeId: "signed", config: { algorithms: ["HS256"] } },
        {
          name: "rate-limit",
          label: "open",
          routeId: "open",
          config: only({ requests: 1, key: "jwt:tenant" }) as never,
        },
      ],
      routes: [
        { name: "signed", service_id: "web", paths: ["/signed"] },
        { name: "open", service_id: "web", paths: ["/open"] },
      ],
      consumers: [{ username: "alice" }],
      credentials: [
        { type: "jwt", consumerId: "alice", identifier: "me", algorithm: "HS256", secret },
      ],
    });
    const token = (tenant: string) =>
      new SignJWT({ tenant })
        .setProtectedHeader({ alg: "HS256" })
        .setIssuer("me")
        .setExpirationTime("1h")
        .sign(new TextEncoder().encode(secret));
    const ask = async (path: string, tenant: string) =>
      scene.get(path, { Authorization: `Bearer ${await token(tenant)}` });
    expect((await ask("/signed", "a")).status).toBe(200);
    expect((await ask("/signed", "a")).status).toBe(429);
    expect((await ask("/signed", "b")).status).toBe(200);
    // These tokens are not verified: the address counts.
    expect((await ask("/open", "a")).status).toBe(200);
    expect((await ask("/open", "b")).status).toBe(429);
  });
});

describe("only some responses count", () => {
  const config = (rest: object) => ({ ...only({ requests: 2 }), ...rest });
  const answer = (request: Request) =>
    new Response("", { status: Number(new URL(request.url).searchParams.get("s") ?? 200) });

  test("by the status of the target, without delay for clients", async () => {
    const { scene } = await limited(config({ count_when: "response_status:[401, 5xx]" }), {
      answer,
    });
    expect(await statuses(5, () => scene.get("/"))).toEqual([200, 200, 200, 200, 200]);
    expect((await scene.get("/?s=401")).headers.get("ratelimit")).toBe('"default";r=1;t=60');
    expect((await scene.get("/?s=403")).headers.get("ratelimit")).toBe('"default";r=1;t=60');
    expect((await scene.get("/?s=599")).headers.get("ratelimit")).toBe('"default";r=0;t=60');
    const refused = await scene.get("/");
    expect(refused.status).toBe(429);
    expect(refused.headers.get("retry-after")).toBe("60");
  });

  test("also of plugins before it, which then no longer run", async () => {
    const { scene } = await limited(config({ count_when: "response_status:401" }), {
      plugins: [{ name: "key-auth" }],
      consumers: [{ username: "alice" }],
      credentials: [{ type: "key", consumerId: "alice", hash: hashToken("good") }],
    });
    const ask = (apikey: string) => () => scene.get("/", { apikey });
    expect(await statuses(2, ask("good"))).toEqual([200, 200]);
    expect(await statuses(3, ask("guess"))).toEqual([401, 401, 429]);
    expect(await statuses(1, ask("good"))).toEqual([429]);
  });

  test("of a token bucket too", async () => {
    const limits = [{ requests: 2, algorithm: "token_bucket" }];
    const { scene } = await limited({ limits, count_when: "response_status:404" }, { answer });
    expect(await statuses(3, () => scene.get("/?s=404"))).toEqual([404, 404, 429]);
  });
});

test("unusual requests are counted like others", async () => {
  const { scene } = await limited(
    only({ requests: 1000, key: ["header:X", "cookie:c", "query:q", "jwt:a.b", "consumer"] }),
  );
  const odd = ["%", "%zz", "=", "\u00ff", "%00", "q", "a".repeat(3000), ";;==", "__proto__"];
  for (const text of odd) {
    const { status } = await scene.get(`/?q=${text}&${text}=1`, { X: text, Cookie: `c=${text}` });
    expect(status).toBe(200);
  }
});

test("a change of the plugin keeps the counts of unchanged limits", async () => {
  const { scene } = await limited(only({ requests: 2 }));
  await scene.get("/");
  await scene.apply({
    plugins: [{ name: "rate-limit", config: only({ requests: 2 }, { headers: "off" }) as never }],
  });
  expect(await statuses(2, () => scene.get("/"))).toEqual([200, 429]);
});
