// A worker that is ended answers for none of its requests: its connections end without a response.
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { once } from "node:events";
import { type ClientHttp2Session, connect } from "node:http2";
import { type Gateway, startGateway } from "../../support/gateway.ts";
import { startOrigin } from "../../support/origin.ts";
import { PluginFiles, pluginSource } from "../../support/own-plugin.ts";
import { eventually } from "../../support/poll.ts";
import { quietPort } from "../../support/quiet-port.ts";
import { connectRaw, type RawConnection } from "../../support/raw-http.ts";

const files = new PluginFiles();
const origin = startOrigin();
let gateway: Gateway;
let listeners: { port: number; tls: boolean; http2?: boolean }[];

const own = async () => (await gateway.ok("GET", "/api/v1/plugins/directory")).plugins[0];
const isReady = async () => (await gateway.api("GET", "/readyz")).status === 200;

const ending = `
  if (seen.path === "/loop") for (;;) {}
  if (seen.path === "/exit") process.exit(0);
  // Without a stack it could be an error of the gateway itself.
  if (seen.path === "/crash") setTimeout(() => { throw Object.assign(new Error("crash"), { stack: "" }); });
  if (seen.path === "/crash" || seen.path === "/wait") return new Promise<undefined>(() => {});
`;

const source = pluginSource("own", { access: ending, members: "handlerTimeoutMs: 60000," });

beforeAll(async () => {
  files.write("own.ts", source);
  // Both workers are blocked before the plugin is disabled, which its second worker brings about.
  gateway = await startGateway({ args: ["--plugins-dir", files.path] });
  const { httpPort, httpsPort } = gateway;
  listeners = [
    { port: httpPort, tls: false },
    { port: httpsPort, tls: true },
  ];
  const others = [
    { protocol: "http", engine: "sluice" },
    { protocol: "http", engine: "sluice" },
    { protocol: "http", max_connections_per_address: 1000 },
    { protocol: "https", engine: "sluice" },
  ];
  for (const [at, other] of others.entries()) {
    const port = quietPort();
    const listener = { name: `other-${at}`, address: "127.0.0.1", port, ...other };
    await gateway.ok("POST", "/api/v1/listeners", listener);
    const tls = other.protocol === "https";
    listeners.push({ port, tls, http2: tls });
  }
  const targets = [{ host: "127.0.0.1", port: origin.port }];
  const { id } = await gateway.ok("POST", "/api/v1/services", { name: "web", targets });
  await gateway.ok("POST", "/api/v1/routes", { name: "all", service_id: id, paths: ["/"] });
  await gateway.ok("POST", "/api/v1/plugins", { name: "own", config: {} });
});

afterAll(async () => {
  await gateway.stop();
  origin.stop();
  files[Symbol.dispose]();
});

// A test that fails leaves workers behind that are about to start.
beforeEach(() => eventually(isReady));

const methods = ["GET", "PUT", "DELETE", "POST", "PATCH", "OPTIONS"] as const;

async function connectHttp2(port: number): Promise<ClientHttp2Session> {
  const session = connect(`https://127.0.0.1:${port}`, { rejectUnauthorized: false });
  session.on("error", () => undefined);
  await once(session, "connect");
  return session;
}

/** A stream for each method; resolves with the status when it has ended, empty without a response. */
const sendHttp2 = (session: ClientHttp2Session, path: string): Promise<string>[] =>
  methods.map((method) => {
    const stream = session.request({ ":path": path, ":method": method });
    let status = "";
    stream.on("response", (headers) => {
      status = String(headers[":status"]);
    });
    stream.on("error", () => undefined);
    stream.end(method === "PUT" ? "hello" : undefined);
    return new Promise((resolve) => stream.on("close", () => resolve(status)));
  });

/** Workers that end at once, and not after a loop, may all have ended: then no socket listens. */
function nullWhenRefused(error: NodeJS.ErrnoException): null {
  if (error.code !== "ECONNREFUSED") throw error;
  return null;
}

/** A request on each listener with each method, with and without a body, on fresh and on kept connections. */
async function sendAll(path: string): Promise<Promise<string>[]> {
  const opened: { connection: RawConnection; text: string }[] = [];
  for (const { port, tls } of listeners)
    for (const [n, method] of methods.entries()) {
      const connection = await connectRaw({ port, tls });
      const isKept = n % 2 === 0;
      if (isKept) {
        connection.write("GET /before HTTP/1.1\r\nHost: localhost\r\n\r\n");
        await connection.until("\r\n\r\nok");
        connection.received = "";
      }
      const head = `${method} ${path} HTTP/1.1\r\nHost: localhost\r\n`;
      const whole = (n + port) % 3 === 0 ? `${head}Content-Length: 5\r\n\r\nhello` : `${head}\r\n`;
      // The second one waits behind the first one.
      opened.push({ connection, text: whole.repeat(n % 3 === 0 ? 2 : 1) });
    }
  const sessions = await Promise.all(
    listeners.filter(({ http2 }) => http2).map(({ port }) => connectHttp2(port)),
  );
  const streams = sessions.map((session) => sendHttp2(session, path));
  for (const { connection, text } of opened) connection.write(text);
  // In the queue of a listening socket, once all workers are blocked.
  for (const { port, tls } of listeners) {
    if (tls) continue;
    const connection = await connectRaw({ port, tls }).catch(nullWhenRefused);
    if (connection === null) continue;
    connection.write(`PUT ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
    opened.push({ connection, text: "" });
  }
  return [...opened.map(({ connection }) => connection.untilClosed()), ...streams.flat()];
}

const restarts = () =>
  gateway.log.filter(({ message }) => message.startsWith("worker stopped")).length;

test.each([
  { path: "/loop", why: "the watchdog ends a loop" },
  { path: "/exit", why: "the plugin ends its thread" },
  { path: "/crash", why: "an error ends the thread" },
])("no connection gets a response when $why", async ({ path }) => {
  const before = restarts();
  const count = origin.requests.length;
  const connections = await sendAll(path);
  const received = await Promise.all(connections);
  expect(received.filter((text) => text !== "")).toEqual([]);
  expect(origin.requests.slice(count).filter(({ target }) => target === path)).toEqual([]);
  await eventually(() => restarts() > before);
  // Blocked twice, it is disabled, once a worker runs again: the next file enables it.
  if (path === "/loop") await eventually(async () => (await own()).state !== "loaded");
  files.write("own.ts", `${source}// after ${path}\n`);
  await eventually(isReady);
  await eventually(async () => {
    await gateway.ok("POST", "/api/v1/plugins/directory");
    const { state, problem } = await own();
    return state === "loaded" && problem === null;
  });
  await eventually(isReady);
});

test("no connection gets a response when its worker is replaced and the time to drain is over", async () => {
  const limits = { max_plugin_reloads: 1, worker_drain_timeout: 100 };
  await gateway.ok("PATCH", "/api/v1/settings", { limits });
  const connections = await sendAll("/wait");
  // All have been accepted, and wait.
  await eventually(
    async () => (await gateway.ok("GET", "/api/v1/stats")).now.in_flight >= connections.length / 2,
  );
  for (const round of ["one", "two"]) {
    files.write("own.ts", `${source}// replaced ${round}\n`);
    await gateway.ok("POST", "/api/v1/plugins/directory");
  }
  const received = await Promise.all(connections);
  expect(received.filter((text) => text !== "")).toEqual([]);
  await gateway.ok("PATCH", "/api/v1/settings", { limits: { max_plugin_reloads: 0 } });
});

test.each([
  { path: "/wait", why: "requests wait for longer than the limit" },
  { path: "/loop", why: "its workers hang" },
])("no connection gets a response when the gateway stops while $why", async ({ path }) => {
  await gateway.ok("PATCH", "/api/v1/settings", { limits: { shutdown_timeout: 1000 } });
  const connections = await sendAll(path);
  await gateway.restart();
  const received = await Promise.all(connections);
  expect(received.filter((text) => text !== "")).toEqual([]);
});
