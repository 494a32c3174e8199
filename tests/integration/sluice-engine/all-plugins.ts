// A route with all built-in plugins on our own engine, clients that leave in the middle, and all that is counted while they are there.
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
import { type Answerer, type Origin, startOrigin } from "../../support/origin.ts";
import { plugins } from "../../support/plugins.ts";
import { eventually } from "../../support/poll.ts";
import { exchange } from "../../support/raw-exchange.ts";

type Instance = NonNullable<DataPlaneSketch["plugins"]>[number];

const elsewhere = { path: ["/elsewhere"] };

/** Settings where a plugin's example would refuse the requests of this test, or ask another machine. */
const ownSettings = (url: string): Record<string, Omit<Instance, "name">> => ({
  "access-log": { config: { sinks: [{ udp: { address: `${new URL(url).host}` } }] } },
  "circuit-breaker": { config: { min_requests: 1_000_000 } },
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
});

/** Each demands a credential of its own, in the same field or of TLS: `key-auth` and `forward-auth` stand for them. */
const otherAuthentication = ["basic-auth", "hmac-auth", "jwt", "ldap-auth", "mtls-auth", "oidc"];

const KEY = "of alice";
/** Of a client that all plugins let pass. */
export const FIELDS = `Host: app.example\r\nX-API-Key: ${KEY}\r\nUser-Agent: t\r\nX-Tenant: t\r\nOrigin: https://app.example.com\r\n`;
export const JSON_BODY = JSON.stringify({ text: "y".repeat(40) });
export const NEVER_STORED = "Cache-Control: no-store\r\n";

export type Way = "end" | "destroy" | "reset";
export const ways = ["end", "destroy", "reset"] as const;

export interface Leaving {
  /** Bytes of the request; default: all. */
  readonly sent?: number;
  /** Bytes that the client reads first. */
  readonly read?: number;
  readonly way: Way;
}

export interface AllPlugins {
  readonly gateway: RunningDataPlane;
  readonly origin: Origin;
  readonly instances: readonly Instance[];
  /** Sends so much of a request, reads so much of the response, and leaves. */
  leave(request: string, leaving: Leaving): Promise<void>;
  /** All counts are back to nothing, and this request is served. */
  expectQuiet(request: string, outcome?: string): Promise<void>;
  /** Log lines of plugins that failed. */
  failures(): readonly unknown[];
  stop(): Promise<void>;
}

/** `pass`: what plugins that ask another server wait for. */
export async function startAllPlugins(
  answer: Answerer,
  pass: () => Promise<unknown> = () => Promise.resolve(),
): Promise<AllPlugins> {
  // Whatever plugins ask besides the target: copies, lists, traces.
  const aside = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch({ url, method }) {
      if (url.includes("/v1/decisions")) return Response.json({ new: [], deleted: [] });
      if (method === "GET") await pass();
      return new Response("192.0.2.1\n");
    },
  });
  const own = ownSettings(`http://127.0.0.1:${aside.port}`);
  const instances = plugins.map(({ name, example }): Instance => ({
    name,
    routeId: "all",
    config: example as Record<string, unknown>,
    ...(otherAuthentication.includes(name) ? { when: elsewhere } : {}),
    ...own[name],
  }));
  const origin = startOrigin({ answer });
  const gateway = await startDataPlane({
    listener: { engine: "sluice" },
    // Peers of these tests never close a WebSocket as they should.
    webSocketTimeouts: { closingSeconds: 0.5 },
    services: [
      {
        name: "origin",
        targets: [{ port: origin.port }],
        keepalive: { size: 0 },
        // A target that always leaves is tried again.
        health: { passive: { enabled: false } },
      },
    ],
    routes: [{ name: "all", service_id: "origin" }],
    settings: { limits: { max_aborted_per_connection: 0, max_aborted_per_address: 0 } },
    plugins: instances,
    consumers: [{ username: "alice", groups: ["staff"] }],
    credentials: [{ type: "key", consumerId: "alice", hash: hashToken(KEY) }],
  });
  const { port } = gateway;
  const isQuiet = () => eventually(() => Bun.deepEquals(countsOf(gateway, origin), NOTHING));
  return {
    gateway,
    origin,
    instances,
    leave: (request, leaving) => leave(port, request, leaving),
    async expectQuiet(request, outcome = "200") {
      await isQuiet().catch(() => mustBeNothing(countsOf(gateway, origin)));
      const seen = await exchange(request, { port });
      if (seen.outcome !== outcome) throw new Error(`${seen.outcome} instead of ${outcome}`);
      await isQuiet();
    },
    failures: () => gateway.log.filter(({ message }) => message === "a plugin failed"),
    async stop() {
      await gateway.stop();
      origin.stop();
      await aside.stop(true);
    },
  };
}

/** Everything that is counted while a client is there. */
function countsOf({ board, targets }: RunningDataPlane, origin: Origin) {
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

function mustBeNothing(counts: object): void {
  throw new Error(`still counted: ${JSON.stringify(counts)}`);
}

function leave(
  port: number,
  request: string,
  { sent = request.length, read = 0, way }: Leaving,
): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const socket = connect({ port, host: "127.0.0.1" });
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
export async function all(count: number, play: (at: number) => Promise<void>): Promise<void> {
  let next = 0;
  const one = async () => {
    while (next < count) await play(next++);
  };
  await Promise.all(Array.from({ length: 50 }, one));
}
