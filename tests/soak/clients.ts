// Clients of a soak that do what they should, each one round; what they must not see is an error.
import { connect } from "node:net";
import { eventually } from "../support/poll.ts";
import { quietPort } from "../support/quiet-port.ts";
import { UdpClient } from "../support/udp.ts";
import { LARGE_BYTES, type Scene } from "./scene.ts";

/** One round; throws when the response is not the one that must come. */
export type Client = (scene: Scene, round: number) => Promise<void>;

const url = ({ httpPort }: Scene, path: string) => `http://127.0.0.1:${httpPort}${path}`;

export function must(isRight: boolean, what: () => string): void {
  if (!isRight) throw new Error(what());
}

async function expectText(address: string, wanted: string, init: RequestInit = {}): Promise<void> {
  const response = await fetch(address, { tls: { rejectUnauthorized: false }, ...init });
  const text = await response.text();
  const isRight = response.status === 200 && text === wanted;
  must(isRight, () => `${response.status} ${text.slice(0, 80)}`);
}

export const keptAlive: Client = (scene) => expectText(url(scene, "/plain"), "plain");

export const fresh: Client = (scene) =>
  expectText(url(scene, "/plain"), "plain", { headers: { connection: "close" }, keepalive: false });

export const overTls: Client = ({ gateway }, round) =>
  expectText(`https://127.0.0.1:${gateway.httpsPort}/plain`, "plain", {
    keepalive: round % 2 === 0,
  });

export const flapping: Client = (scene) => expectText(url(scene, "/flapping"), "plain");

export const download: Client = async (scene) => {
  const response = await fetch(url(scene, "/large"));
  const { byteLength } = await response.arrayBuffer();
  must(response.status === 200 && byteLength === LARGE_BYTES, () => `${byteLength} bytes`);
};

export const upload: Client = (scene) =>
  expectText(url(scene, "/count"), String(LARGE_BYTES), {
    method: "POST",
    body: new Uint8Array(LARGE_BYTES),
  });

export const limited: Client = async (scene) => {
  const response = await fetch(url(scene, "/limited"));
  await response.arrayBuffer();
  must([200, 429].includes(response.status), () => `status ${response.status}`);
};

export const keyed: Client = async (scene, round) => {
  const headers = round % 3 === 0 ? new Headers() : new Headers({ "x-api-key": scene.key });
  const response = await fetch(url(scene, "/keyed"), { headers });
  await response.arrayBuffer();
  must(response.status === (round % 3 === 0 ? 401 : 200), () => `status ${response.status}`);
};

/** Some of them again and again, some never seen before. */
export const cached: Client = async (scene, round) => {
  const response = await fetch(url(scene, `/cached?${round % 2 === 0 ? round % 20 : round}`));
  const { length } = await response.text();
  must(response.status === 200 && length > 10_000, () => `${response.status}, ${length} bytes`);
};

export const packed: Client = async (scene, round) => {
  const coding = ["gzip", "br", "zstd", "identity"][round % 4] ?? "gzip";
  const response = await fetch(url(scene, "/packed"), { headers: { "accept-encoding": coding } });
  const { length } = await response.text();
  must(response.status === 200 && length > 10_000, () => `${response.status}, ${length} bytes`);
};

export const webSocket: Client = async ({ httpPort }, round) => {
  const socket = new WebSocket(`ws://127.0.0.1:${httpPort}/ws`);
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
  // Some leave without a Close.
  await promise.finally(() =>
    round % 3 === 0 ? (socket as Bun.WebSocket).terminate() : socket.close(),
  );
};

export const tcpStream: Client = async ({ tcpPort }) => {
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

export const udpStream: Client = async ({ udpPort }, round) => {
  const client = await UdpClient.open();
  try {
    const answer = await client.ask(udpPort, `datagram ${round}`);
    must(String(answer) === `datagram ${round}`, () => `${answer} came back`);
  } finally {
    client.close();
  }
};

/** A service, a route and a consumer come, are used, are changed and go again. */
export const changes: Client = async (scene, round) => {
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

export const listeners: Client = async ({ gateway }, round) => {
  const port = quietPort();
  const name = `listener-${round % 3}`;
  const engine = round % 2 === 0 ? "bun" : "sluice";
  const body = { name, address: "127.0.0.1", port, protocol: "http", engine };
  await gateway.ok("POST", "/api/v1/listeners", body);
  await eventually(() =>
    expectText(`http://127.0.0.1:${port}/plain`, "plain", { keepalive: false }).then(
      () => true,
      () => false,
    ),
  );
  await gateway.ok("DELETE", `/api/v1/listeners/${name}`);
};

export const observed: Client = async ({ gateway }) => {
  for (const path of ["/metrics", "/api/v1/stats", "/api/v1/requests"]) {
    const response = await gateway.api("GET", path);
    await response.arrayBuffer();
    must(response.status === 200, () => `${path}: ${response.status}`);
  }
};

/** A target goes down or comes back; requests to its service must not notice. */
export const flaps: Client = async ({ flap }) => flap();
