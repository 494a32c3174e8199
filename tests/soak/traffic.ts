// Clients of every kind, each doing the same thing again and again until told to stop; what they must not see is counted as a failure.
import { connect } from "node:net";
import { eventually } from "../support/poll.ts";
import { quietPort } from "../support/quiet-port.ts";
import { UdpClient } from "../support/udp.ts";
import { LARGE_BYTES, type Scene } from "./scene.ts";

export interface Counts {
  done: number;
  failed: number;
  /** Of the first failures. */
  readonly why: string[];
}

/** One round; throws when the answer is not the one that must come. */
type Client = (scene: Scene, round: number) => Promise<void>;

interface Kind {
  readonly client: Client;
  readonly atOnce: number;
  /** Between two rounds: what is tried is endurance, not speed. */
  readonly pauseMs: number;
}

const MOST_REASONS = 5;

const url = ({ gateway }: Scene, path: string) => `http://127.0.0.1:${gateway.httpPort}${path}`;

function must(isRight: boolean, what: () => string): void {
  if (!isRight) throw new Error(what());
}

async function expectText(address: string, wanted: string, init: RequestInit = {}): Promise<void> {
  const response = await fetch(address, { tls: { rejectUnauthorized: false }, ...init });
  const text = await response.text();
  const isRight = response.status === 200 && text === wanted;
  must(isRight, () => `${response.status} ${text.slice(0, 80)}`);
}

const keptAlive: Client = (scene) => expectText(url(scene, "/plain"), "plain");

const fresh: Client = (scene) =>
  expectText(url(scene, "/plain"), "plain", { headers: { connection: "close" }, keepalive: false });

const overTls: Client = ({ gateway }, round) =>
  expectText(`https://127.0.0.1:${gateway.httpsPort}/plain`, "plain", {
    keepalive: round % 2 === 0,
  });

const flapping: Client = (scene) => expectText(url(scene, "/flapping"), "plain");

const download: Client = async (scene) => {
  const response = await fetch(url(scene, "/large"));
  const { byteLength } = await response.arrayBuffer();
  must(response.status === 200 && byteLength === LARGE_BYTES, () => `${byteLength} bytes`);
};

const abandoned: Client = async (scene) => {
  const gone = new AbortController();
  const response = await fetch(url(scene, "/large"), { signal: gone.signal });
  await response.body?.getReader().read();
  gone.abort();
};

const upload: Client = (scene) =>
  expectText(url(scene, "/count"), String(LARGE_BYTES), {
    method: "POST",
    body: new Uint8Array(LARGE_BYTES),
  });

const limited: Client = async (scene) => {
  const response = await fetch(url(scene, "/limited"));
  await response.arrayBuffer();
  must([200, 429].includes(response.status), () => `status ${response.status}`);
};

const keyed: Client = async (scene, round) => {
  const headers = round % 3 === 0 ? new Headers() : new Headers({ "x-api-key": scene.key });
  const response = await fetch(url(scene, "/keyed"), { headers });
  await response.arrayBuffer();
  must(response.status === (round % 3 === 0 ? 401 : 200), () => `status ${response.status}`);
};

/** Some of them again and again, some never seen before. */
const cached: Client = async (scene, round) => {
  const response = await fetch(url(scene, `/cached?${round % 2 === 0 ? round % 20 : round}`));
  const { length } = await response.text();
  must(response.status === 200 && length > 10_000, () => `${response.status}, ${length} bytes`);
};

const packed: Client = async (scene, round) => {
  const coding = ["gzip", "br", "zstd", "identity"][round % 4] ?? "gzip";
  const response = await fetch(url(scene, "/packed"), { headers: { "accept-encoding": coding } });
  const { length } = await response.text();
  must(response.status === 200 && length > 10_000, () => `${response.status}, ${length} bytes`);
};

const webSocket: Client = async ({ gateway }) => {
  const socket = new WebSocket(`ws://127.0.0.1:${gateway.httpPort}/ws`);
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let answers = 0;
  const message = "m".repeat(2000);
  socket.onopen = () => socket.send(message);
  socket.onmessage = ({ data }) => {
    if (data !== message) reject(new Error("another message came back"));
    else if (++answers === 10) resolve();
    else socket.send(message);
  };
  socket.onclose = ({ code }) => reject(new Error(`closed with ${code}`));
  await promise.finally(() => socket.close());
};

const tcpStream: Client = async ({ tcpPort }) => {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const sent = Buffer.alloc(64_000, 7);
  let left = sent.length;
  const socket = connect({ host: "127.0.0.1", port: tcpPort }, () => socket.write(sent));
  socket.on("data", (bytes) => {
    left -= bytes.length;
    if (left <= 0) resolve();
  });
  socket.on("error", reject);
  socket.on("close", () => reject(new Error(`closed with ${left} bytes to come`)));
  await promise.finally(() => socket.destroy());
};

const udpStream: Client = async ({ udpPort }, round) => {
  const client = await UdpClient.open();
  try {
    const answer = await client.ask(udpPort, `datagram ${round}`);
    must(String(answer) === `datagram ${round}`, () => `${answer} came back`);
  } finally {
    client.close();
  }
};

/** A service, a route and a consumer come, are used, are changed and go again. */
const changes: Client = async (scene, round) => {
  const { gateway, originPort } = scene;
  const name = `round-${round % 7}`;
  const path = `/${name}`;
  const targets = [{ host: "127.0.0.1", port: originPort }];
  await gateway.ok("POST", "/api/v1/services", { name, targets });
  await gateway.ok("POST", "/api/v1/routes", { name, service_id: name, paths: [path] });
  await gateway.ok("POST", "/api/v1/consumers", { username: name });
  await gateway.ok("POST", `/api/v1/consumers/${name}/credentials`, { type: "key" });
  await expectText(url(scene, path), "plain");
  await gateway.ok("PATCH", `/api/v1/routes/${name}`, { paths: [`${path}/moved`] });
  await expectText(url(scene, `${path}/moved`), "plain");
  await gateway.ok("DELETE", `/api/v1/consumers/${name}`);
  await gateway.ok("DELETE", `/api/v1/services/${name}?cascade=1`);
};

const listeners: Client = async ({ gateway }, round) => {
  const port = quietPort();
  const name = `listener-${round % 3}`;
  const body = { name, address: "127.0.0.1", port, protocol: "http" };
  await gateway.ok("POST", "/api/v1/listeners", body);
  await eventually(() =>
    expectText(`http://127.0.0.1:${port}/plain`, "plain", { keepalive: false }).then(
      () => true,
      () => false,
    ),
  );
  await gateway.ok("DELETE", `/api/v1/listeners/${name}`);
};

const observed: Client = async ({ gateway }) => {
  for (const path of ["/metrics", "/api/v1/stats", "/api/v1/requests"]) {
    const response = await gateway.api("GET", path);
    await response.arrayBuffer();
    must(response.status === 200, () => `${path}: ${response.status}`);
  }
};

/** A target goes down or comes back; requests to its service must not notice. */
const flaps: Client = async ({ flap }) => flap();

const all: Readonly<Record<string, Kind>> = {
  "kept alive": { client: keptAlive, atOnce: 4, pauseMs: 5 },
  "fresh connections": { client: fresh, atOnce: 2, pauseMs: 10 },
  "over TLS": { client: overTls, atOnce: 2, pauseMs: 20 },
  "target that flaps": { client: flapping, atOnce: 2, pauseMs: 20 },
  downloads: { client: download, atOnce: 1, pauseMs: 200 },
  "abandoned downloads": { client: abandoned, atOnce: 1, pauseMs: 200 },
  uploads: { client: upload, atOnce: 1, pauseMs: 200 },
  "rate-limit": { client: limited, atOnce: 1, pauseMs: 20 },
  "key-auth": { client: keyed, atOnce: 1, pauseMs: 20 },
  "response-cache": { client: cached, atOnce: 1, pauseMs: 20 },
  compress: { client: packed, atOnce: 1, pauseMs: 20 },
  WebSockets: { client: webSocket, atOnce: 2, pauseMs: 50 },
  "TCP streams": { client: tcpStream, atOnce: 1, pauseMs: 50 },
  "UDP streams": { client: udpStream, atOnce: 1, pauseMs: 100 },
  changes: { client: changes, atOnce: 1, pauseMs: 300 },
  listeners: { client: listeners, atOnce: 1, pauseMs: 10_000 },
  observers: { client: observed, atOnce: 1, pauseMs: 2_000 },
  flaps: { client: flaps, atOnce: 1, pauseMs: 4_000 },
};

export const kinds: readonly string[] = Object.keys(all);

/** Clients of these kinds until `isOver`. Counts are there from the start and grow. */
export function startTraffic(
  scene: Scene,
  { only, isOver }: { readonly only: readonly string[]; readonly isOver: () => boolean },
): { readonly counts: ReadonlyMap<string, Counts>; readonly ended: Promise<unknown> } {
  const counts = new Map<string, Counts>();
  const clients: Promise<void>[] = [];
  for (const [name, kind] of Object.entries(all)) {
    if (!only.includes(name)) continue;
    const count: Counts = { done: 0, failed: 0, why: [] };
    counts.set(name, count);
    for (let at = 0; at < kind.atOnce; at++) clients.push(keepOn(scene, { kind, count, isOver }));
  }
  return { counts, ended: Promise.all(clients) };
}

interface Course {
  readonly kind: Kind;
  readonly count: Counts;
  readonly isOver: () => boolean;
}

async function keepOn(scene: Scene, { kind, count, isOver }: Course): Promise<void> {
  const started = performance.now();
  for (let round = 1; !isOver(); round++) {
    try {
      await kind.client(scene, round);
      count.done++;
    } catch (error) {
      count.failed++;
      const after = ((performance.now() - started) / 1000).toFixed(1);
      if (count.why.length < MOST_REASONS) count.why.push(`after ${after} s: ${String(error)}`);
    }
    const until = performance.now() + kind.pauseMs;
    while (!isOver() && performance.now() < until)
      await Bun.sleep(Math.min(250, until - performance.now()));
  }
}
