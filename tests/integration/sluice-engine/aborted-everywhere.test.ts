// Clients that leave after each byte of a request and of its response, on a route with all plugins: nothing stays counted or open.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { connect } from "node:net";
import { hashToken } from "../../../src/crypto/token.ts";
import {
  connectionsKey,
  IN_FLIGHT_KEY,
  inFlightKey,
} from "../../../src/shared-memory/series-key.ts";
import {
  type DataPlaneSketch,
  type RunningDataPlane,
  startDataPlane,
} from "../../support/data-plane.ts";
import { type Origin, type OriginRequest, reply, startOrigin } from "../../support/origin.ts";
import { plugins } from "../../support/plugins.ts";
import { eventually } from "../../support/poll.ts";
import { exchange } from "../../support/raw-exchange.ts";

/** Whatever plugins ask besides the target: copies, lists, traces. */
const aside = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  fetch: ({ url }) =>
    url.includes("/v1/decisions")
      ? Response.json({ new: [], deleted: [] })
      : new Response("192.0.2.1\n"),
});
const url = `http://127.0.0.1:${aside.port}`;
const elsewhere = { path: ["/elsewhere"] };

type Instance = NonNullable<DataPlaneSketch["plugins"]>[number];

/** Settings where a plugin's example would refuse the requests of this test, or ask another machine. */
const own: Record<string, Omit<Instance, "name">> = {
  "access-log": { config: { sinks: [{ udp: { address: `127.0.0.1:${aside.port}` } }] } },
  "forward-auth": { config: { url } },
  // The example lets this machine in without authentication.
  "access-policy": { config: { rules: [{ name: "admin", when: elsewhere, action: "deny" }] } },
  blocklist: { config: { lists: [{ name: "none", url }], fail_open: true, allow: [] } },
  "bandwidth-limit": { config: { download_bps: 1_000_000_000, upload_bps: 1_000_000_000 } },
  "concurrency-limit": { config: { max: 1000, queue: 1000 } },
  compress: { config: { min_bytes: 1 } },
  crowdsec: { config: { url, api_key: "key", fail_open: true } },
  mirror: { config: { url, percent: 100, include_body: true, methods: ["GET", "POST"] } },
  "otel-tracing": { config: { endpoint: url, sample_rate: 1 } },
  "rate-limit": {
    config: { limits: [{ name: "all", requests: 1_000_000, window: 60, key: "ip" }] },
  },
  redirect: { config: { to: "https://www.example.com" }, when: elsewhere },
  respond: { config: { status: 503 }, when: elsewhere },
  "request-validation": {
    config: { body_schema: { type: "object" }, content_types: ["application/json"] },
  },
  "traffic-split": { config: { rules: [{ targets: [{ service_id: "origin", weight: 1 }] }] } },
};

/** Each demands a credential of its own, in the same field or of TLS: `key-auth` and `forward-auth` stand for them. */
const otherAuthentication = ["basic-auth", "hmac-auth", "jwt", "ldap-auth", "mtls-auth", "oidc"];

const instances: readonly Instance[] = plugins.map(({ name, example }) => ({
  name,
  routeId: "all",
  config: example as Record<string, unknown>,
  ...(otherAuthentication.includes(name) ? { when: elsewhere } : {}),
  ...own[name],
}));

const FIELDS =
  "Host: app.example\r\nX-API-Key: of alice\r\nUser-Agent: t\r\nX-Tenant: t\r\nOrigin: https://app.example.com\r\n";
const JSON_BODY = JSON.stringify({ text: "y".repeat(40) });
const requests = {
  get: `GET /api/v1/a HTTP/1.1\r\n${FIELDS}\r\n`,
  sized: `POST /api/v1/a HTTP/1.1\r\n${FIELDS}Accept-Encoding: gzip\r\nContent-Type: application/json\r\nContent-Length: ${JSON_BODY.length}\r\n\r\n${JSON_BODY}`,
  chunked: `POST /api/v1/a HTTP/1.1\r\n${FIELDS}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n${JSON_BODY.length.toString(16)}\r\n${JSON_BODY}\r\n0\r\n\r\n`,
} as const;

const NEVER_STORED = "Cache-Control: no-store\r\n";
const PIECES = 12;

let origin: Origin;
let gateway: RunningDataPlane;
/** Whether the target's response comes in pieces. */
let isSlow = false;

async function respond(_: OriginRequest, connection: Origin["connections"][number]) {
  if (!isSlow)
    return reply(JSON_BODY, { headers: `Content-Type: application/json\r\n${NEVER_STORED}` });
  connection.write(
    `HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n${NEVER_STORED}Transfer-Encoding: chunked\r\n\r\n`,
  );
  for (let piece = 0; piece < PIECES; piece++) {
    connection.write("a\r\n0123456789\r\n");
    await new Promise(setImmediate);
  }
  return "0\r\n\r\n";
}

beforeAll(async () => {
  origin = startOrigin({ answer: respond });
  gateway = await startDataPlane({
    listener: { engine: "sluice" },
    services: [{ name: "origin", targets: [{ port: origin.port }], keepalive: { size: 0 } }],
    routes: [{ name: "all", service_id: "origin" }],
    settings: { limits: { max_aborted_per_connection: 0, max_aborted_per_address: 0 } },
    plugins: instances,
    consumers: [{ username: "alice", groups: ["staff"] }],
    credentials: [{ type: "key", consumerId: "alice", hash: hashToken("of alice") }],
  });
});
afterAll(async () => {
  await gateway.stop();
  origin.stop();
  void aside.stop(true);
});

/** Everything that is counted while a client is there. */
function counters() {
  const { board, targets } = gateway;
  const active = (key: string) => targets.active(targets.rowOf(key));
  return {
    connections: active(connectionsKey("listener")),
    ofListener: active(inFlightKey("listener")),
    ofAll: active(IN_FLIGHT_KEY),
    ofTarget: active("origin-0"),
    ofService: active("origin"),
    activeRequests: board.get(0, "active_requests"),
    webSockets: board.get(0, "open_websockets"),
    upstreamConnections: origin.connections.filter(({ isClosed }) => !isClosed).length,
  };
}

const NOTHING = {
  connections: 0,
  ofListener: 0,
  ofAll: 0,
  ofTarget: 0,
  ofService: 0,
  activeRequests: 0,
  webSockets: 0,
  upstreamConnections: 0,
};

/** Requests whose client left before the end. */
const aborted = () => gateway.log.filter(({ fields }) => fields["status"] === 499).length;

/** All are back to nothing, and the next requests are served. */
async function expectQuiet(): Promise<void> {
  await eventually(() => Bun.deepEquals(counters(), NOTHING)).catch(() =>
    expect(counters()).toEqual(NOTHING),
  );
  for (const request of Object.values(requests)) {
    const { outcome, answers } = await exchange(request, { port: gateway.port });
    expect([outcome, answers[0]?.body]).toEqual(["200", expect.anything()]);
  }
  await eventually(() => Bun.deepEquals(counters(), NOTHING));
}

type Way = "end" | "destroy" | "reset";

/** Sends so much of a request, reads so much of the response, and leaves. */
function leave(
  request: string,
  { sent = request.length, read = 0, way }: { sent?: number; read?: number; way: Way },
): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const socket = connect({ port: gateway.port, host: "127.0.0.1" });
  const go = () => {
    if (way === "reset") socket.resetAndDestroy();
    else if (way === "destroy") socket.destroy();
    else socket.end();
  };
  let received = 0;
  socket.on("data", (chunk: Buffer) => {
    received += chunk.length;
    if (read > 0 && received >= read) go();
  });
  socket.on("error", () => {});
  socket.on("close", () => resolve());
  socket.write(request.slice(0, sent), () => read === 0 && go());
  socket.on("end", () => socket.destroy());
  return promise;
}

/** At most so many clients at the same time. */
async function all(count: number, play: (at: number) => Promise<void>): Promise<void> {
  let next = 0;
  const one = async () => {
    while (next < count) await play(next++);
  };
  await Promise.all(Array.from({ length: 50 }, one));
}

test("all built-in plugins are on, and the route serves", async () => {
  expect(instances.length).toBe(plugins.length);
  expect(instances.length).toBeGreaterThan(30);
  await expectQuiet();
});

const ways = ["end", "destroy", "reset"] as const;
/** Of responses the way alone makes a difference, and the length of the request does not. */
const readers = [
  ...ways.map((way) => ["get", way] as const),
  ["sized", "reset"],
  ["chunked", "destroy"],
] as const;
const rows = Object.keys(requests).flatMap((name) =>
  ways.map((way) => [name as keyof typeof requests, way] as const),
);

describe.each([
  ["at once", false],
  ["in pieces", true],
] as const)("a response %s:", (_, slow) => {
  beforeAll(() => {
    isSlow = slow;
  });

  test.each(rows)("a request (%s) that ends after each of its bytes, by %s", async (name, way) => {
    const request = requests[name];
    await all(request.length + 1, (sent) => leave(request, { sent, way }));
    await expectQuiet();
  });

  test.each(readers)(
    "a request (%s) whose response is read up to each of its bytes, by %s",
    async (name, way) => {
      // With its length or in chunks, as it comes: the end of the connection shows the end of a shorter one.
      const request = requests[name].replace("Host:", "Connection: close\r\nHost:");
      const { received } = await exchange(request, { port: gateway.port });
      const before = aborted();
      await all(received.length, (at) => leave(request, { read: at + 1, way }));
      // Behind FIN the client gets the whole response.
      if (slow && name === "get" && way !== "end") expect(aborted()).toBeGreaterThan(before);
      await expectQuiet();
    },
  );
});

test("no plugin has failed meanwhile", () => {
  expect(gateway.log.filter(({ message }) => message === "a plugin failed")).toEqual([]);
});
