// Decisions of plugins are reported: the reason with the request, the decision with the counters of the plugin.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { type Gateway, startGateway } from "../../support/gateway.ts";
import { type Origin, startOrigin } from "../../support/origin.ts";
import { eventually } from "../../support/poll.ts";

interface Case {
  readonly name: string;
  readonly config?: object;
  readonly init?: RequestInit;
  readonly status: number;
  readonly reason: RegExp;
  readonly decision: "reject" | "reply";
  /** Requests before the one that counts. */
  readonly before?: number;
}

const cases: readonly Case[] = [
  { name: "key-auth", status: 401, reason: /^auth\.key\.missing$/, decision: "reject" },
  { name: "basic-auth", status: 401, reason: /^auth\.basic\./, decision: "reject" },
  {
    name: "jwt",
    config: { algorithms: ["RS256"] },
    status: 401,
    reason: /^auth\.jwt\./,
    decision: "reject",
  },
  { name: "hmac-auth", status: 401, reason: /^auth\.hmac\./, decision: "reject" },
  { name: "mtls-auth", status: 401, reason: /^auth\.mtls\./, decision: "reject" },
  { name: "acl", config: { allow: ["staff"] }, status: 403, reason: /^acl\./, decision: "reject" },
  {
    name: "ip-restriction",
    config: { deny: ["127.0.0.0/8", "::1"] },
    status: 403,
    reason: /^ip\./,
    decision: "reject",
  },
  {
    name: "access-policy",
    config: { rules: [{ name: "never", when: { method: ["GET"] }, action: "deny" }] },
    status: 403,
    reason: /^policy\.deny:never$/,
    decision: "reject",
  },
  {
    name: "bot-detection",
    init: { headers: { "User-Agent": "GPTBot/1.0" } },
    status: 403,
    reason: /^bot\./,
    decision: "reject",
  },
  {
    name: "csrf",
    init: { method: "POST", headers: { Origin: "https://other.example" } },
    status: 403,
    reason: /^csrf\./,
    decision: "reject",
  },
  {
    name: "request-size-limit",
    config: { max_body_bytes: 1 },
    init: { method: "POST", body: "too long" },
    status: 413,
    reason: /^size\.body$/,
    decision: "reject",
  },
  {
    name: "cors",
    config: { origins: ["https://a.example"] },
    init: {
      method: "OPTIONS",
      headers: { Origin: "https://a.example", "Access-Control-Request-Method": "PUT" },
    },
    status: 204,
    reason: /^cors\.preflight$/,
    decision: "reply",
  },
  {
    name: "redirect",
    config: { to: "https://elsewhere.example/" },
    init: { redirect: "manual" },
    status: 308,
    reason: /^redirect/,
    decision: "reply",
  },
  {
    name: "respond",
    config: { status: 418, body: "tea" },
    status: 418,
    reason: /^respond/,
    decision: "reply",
  },
  {
    name: "rate-limit",
    config: { limits: [{ requests: 1, window: 60 }] },
    before: 1,
    status: 429,
    reason: /^rl\.exceeded/,
    decision: "reject",
  },
];

let gateway: Gateway;
let origin: Origin;

beforeAll(async () => {
  gateway = await startGateway({ workers: 2 });
  origin = startOrigin({ answer: () => "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok" });
  await gateway.ok("POST", "/api/v1/services", {
    name: "web",
    protocol: "http",
    targets: [{ host: "127.0.0.1", port: origin.port }],
  });
});
afterAll(async () => {
  await gateway?.stop();
  await origin?.stop();
});

test.each(cases.map((each) => [each.name, each] as const))("%s", async (name, each) => {
  const path = `/decides/${name}`;
  await gateway.ok("POST", "/api/v1/routes", { name, service_id: "web", paths: [path] });
  await gateway.ok("POST", "/api/v1/plugins", {
    name,
    route_id: name,
    ...(each.config === undefined ? {} : { config: each.config }),
  });
  const send = async (query: string) => {
    const url = `http://127.0.0.1:${gateway.httpPort}${path}?${query}`;
    const response = await fetch(url, each.init ?? {});
    await response.text();
    return response.status;
  };
  for (let i = 0; i < (each.before ?? 0); i++) await send("before");
  expect(await send("counts")).toBe(each.status);
  const found = await eventually(async () => {
    // biome-ignore lint/suspicious/noExplicitAny: only one field is of interest
    const [newest]: any[] = await gateway.ok("GET", `/api/v1/requests?route=${name}`);
    return newest?.status === each.status ? newest : null;
  });
  const reasons: string[] = found.reasons;
  expect(reasons.some((reason) => each.reason.test(reason))).toBe(true);
  const metrics = await (await fetch(`${gateway.admin}/metrics`)).text();
  const line = new RegExp(
    `^sluice_plugin_decisions_total\\{(?=[^}]*plugin="${name}")(?=[^}]*decision="${each.decision}")[^}]*\\} [1-9]`,
    "m",
  );
  expect(line.test(metrics)).toBe(true);
});

test("a body of unknown length that becomes too long has the plugin's reason too", async () => {
  const path = "/decides/on-its-way";
  await gateway.ok("POST", "/api/v1/routes", { name: "way", service_id: "web", paths: [path] });
  const config = { max_body_bytes: 4 };
  const plugin = { name: "request-size-limit", route_id: "way", config };
  await gateway.ok("POST", "/api/v1/plugins", plugin);
  async function* pieces() {
    yield Buffer.from("too ");
    yield Buffer.from("long");
  }
  const url = `http://127.0.0.1:${gateway.httpPort}${path}`;
  expect((await fetch(url, { method: "POST", body: pieces() as never })).status).toBe(413);
  const found = await eventually(async () => {
    // biome-ignore lint/suspicious/noExplicitAny: only one field is of interest
    const [newest]: any[] = await gateway.ok("GET", "/api/v1/requests?route=way");
    return newest;
  });
  expect(found.reasons).toEqual(["size.body"]);
});
