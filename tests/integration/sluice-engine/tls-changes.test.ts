// Changes of listeners with TLS on our own engine: no port is bound again, no kept connection closes, and new ones have the new settings.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { connect, type TLSSocket } from "node:tls";
import { Authority } from "../../support/authority.ts";
import { type Gateway, startGateway } from "../../support/gateway.ts";
import { needs } from "../../support/needs.ts";
import { eventually } from "../../support/poll.ts";
import { quietPort } from "../../support/quiet-port.ts";
import { ask } from "../listeners/world.ts";

const KEPT = 12;
const GET = "GET / HTTP/1.1\r\nHost: own.test\r\n\r\n";
/** Of a client that leaves after it. */
const LAST = GET.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n");

let gateway: Gateway;
let origin: ReturnType<typeof Bun.serve>;
let port = 0;
let clients: Authority;

beforeAll(async () => {
  clients = await Authority.create("Clients");
  origin = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response("fine") });
  gateway = await startGateway({ workers: 2 });
  port = quietPort();
  const made = { name: "own", source: "self_signed", domains: ["own.test"] };
  await gateway.ok("POST", "/api/v1/certificates", made);
  await gateway.ok("POST", "/api/v1/listeners", {
    name: "own",
    address: "127.0.0.1",
    port,
    protocol: "https",
    engine: "sluice",
  });
  const targets = [{ host: "127.0.0.1", port: origin.port }];
  await gateway.ok("POST", "/api/v1/services", { name: "origin", targets });
  await gateway.ok("POST", "/api/v1/routes", { name: "all", service_id: "origin" });
});
afterAll(async () => {
  await gateway?.stop();
  await origin?.stop(true);
});

interface Kept {
  readonly socket: TLSSocket;
  readonly responses: number;
  isClosed: boolean;
}

/** A client that keeps its connection and has had one response. */
async function keep(): Promise<Kept> {
  const options = { host: "127.0.0.1", port, servername: "own.test", rejectUnauthorized: false };
  const socket = connect(options);
  let text = "";
  const kept = {
    socket,
    isClosed: false,
    get responses() {
      return text.split("HTTP/1.1 200").length - 1;
    },
  };
  socket.on("data", (data: Buffer) => {
    text += data.toString("latin1");
  });
  socket.on("error", () => {});
  socket.on("close", () => {
    kept.isClosed = true;
  });
  socket.write(GET);
  await eventually(() => kept.responses === 1 || kept.isClosed);
  return kept;
}

/** The sockets that listen at the port, as the system names them. */
function listening(): string[] {
  const own = new Set<string>();
  for (const name of readdirSync(`/proc/${gateway.pid}/fd`))
    try {
      own.add(/socket:\[(\d+)\]/.exec(readlinkSync(`/proc/${gateway.pid}/fd/${name}`))?.[1] ?? "");
    } catch {
      // Closed in between.
    }
  const hex = port.toString(16).toUpperCase().padStart(4, "0");
  return readFileSync("/proc/net/tcp", "utf8")
    .split("\n")
    .map((row) => row.trim().split(/\s+/))
    .filter(([, local = "", , state]) => state === "0A" && local.endsWith(`:${hex}`))
    .map((columns) => columns[9] ?? "")
    .filter((inode) => own.has(inode))
    .toSorted();
}

const change = (fields: object) => gateway.ok("PATCH", "/api/v1/listeners/own", fields);
const over = (options: object = {}) => ask(port, { servername: "own.test", ...options }, LAST);
const status = async (options: object = {}) => (await over(options)).text.slice(9, 12);

needs("linux").test("every change keeps the sockets and the connections", async () => {
  const kept = await Promise.all(Array.from({ length: KEPT }, keep));
  const sockets = listening();
  expect(sockets.length).toBe(2);
  let asked = 1;
  const unchanged = async () => {
    asked++;
    for (const { socket } of kept) socket.write(GET);
    await eventually(() => kept.every((one) => one.responses === asked || one.isClosed));
    expect(kept.filter(({ isClosed }) => isClosed)).toEqual([]);
    expect(listening()).toEqual(sockets);
  };
  await change({ max_connections: KEPT });
  expect(await status()).toBe("");
  await unchanged();
  await change({ max_connections: 0, max_connections_per_address: KEPT });
  // Those that were open before are not counted by address.
  await unchanged();
  await change({ max_connections_per_address: 0, tls_min_version: "1.3" });
  expect(await status({ maxVersion: "TLSv1.2" })).toBe("");
  expect(await status()).toBe("200");
  await unchanged();
  await change({ tls_min_version: "1.2", strict_sni: true });
  expect(await status({ servername: "other.test" })).toBe("");
  expect(await status({ maxVersion: "TLSv1.2" })).toBe("200");
  await unchanged();
  await change({ strict_sni: false, http3: true, http2: false, idle_timeout: 60 });
  // The host is that of another certificate.
  expect(await status({ servername: "other.test" })).toBe("421");
  await unchanged();
  await change({ http3: false, proxy_protocol: true, trusted_proxies: ["127.0.0.1"] });
  expect(await status()).toBe("");
  await unchanged();
  await change({ proxy_protocol: false, trusted_proxies: [] });
  await gateway.ok("PATCH", "/api/v1/certificates/own", { domains: ["own.test", "new.test"] });
  expect((await over({ servername: "new.test" })).certificate).toBe("own.test");
  await unchanged();
  await gateway.ok("POST", "/api/v1/certificates", {
    name: "second",
    source: "self_signed",
    domains: ["second.test"],
  });
  expect((await over({ servername: "second.test" })).certificate).toBe("second.test");
  await gateway.ok("DELETE", "/api/v1/certificates/second");
  expect((await over({ servername: "second.test" })).certificate).not.toBe("second.test");
  await unchanged();
  // Client rules end what was accepted without them, announced by FIN.
  await change({ client_auth: "require", client_ca: clients.cert });
  await eventually(() => kept.every(({ isClosed }) => isClosed));
  expect(listening()).toEqual(sockets);
  const leaf = await clients.sign({ names: ["alice"] });
  expect(await status()).toBe("");
  expect(await status({ cert: leaf.cert, key: leaf.key })).toBe("200");
  await change({ client_auth: "none" });
  expect(await status()).toBe("200");
  expect(listening()).toEqual(sockets);
});

test("1,000 changes of certificates, with connections that are kept and new ones: nothing is lost", async () => {
  const kept = await Promise.all(Array.from({ length: KEPT }, keep));
  const failed: string[] = [];
  let [made, isOver] = [0, false];
  const knock = async () => {
    while (!isOver) {
      const { text, error } = await over();
      made++;
      if (!text.startsWith("HTTP/1.1 200")) failed.push(error ?? text.slice(0, 40));
    }
  };
  const knocking = Array.from({ length: 4 }, knock);
  for (let turn = 0; turn < 1000; turn++) {
    const domains = ["own.test", `turn-${turn}.test`];
    await gateway.ok("PATCH", "/api/v1/certificates/own", { domains });
    const socket = kept[turn % KEPT]?.socket;
    socket?.write(GET);
  }
  isOver = true;
  await Promise.all(knocking);
  const responses = () => kept.reduce((sum, one) => sum + one.responses, 0);
  await eventually(() => responses() >= KEPT + 1000 || kept.some(({ isClosed }) => isClosed));
  expect({ failed, closed: kept.filter(({ isClosed }) => isClosed).length }).toEqual({
    failed: [],
    closed: 0,
  });
  expect(made).toBeGreaterThan(1000);
  for (const { socket } of kept) socket.destroy();
});
