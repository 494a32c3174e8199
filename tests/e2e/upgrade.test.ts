// A process takes over from a serving gateway: no request fails, no connection is cut, and a failing process changes nothing.
import { expect } from "bun:test";
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../support/data-plane.ts";
import { type Gateway, runCommand, startGateway } from "../support/gateway.ts";
import { needs } from "../support/needs.ts";
import { PluginFiles, pluginSource } from "../support/own-plugin.ts";
import { eventually } from "../support/poll.ts";
import { SteadyLoad } from "../support/steady-load.ts";
import { executable } from "../support/executable.ts";

const { afterAll, beforeAll, beforeEach, afterEach, describe, test } = needs("executable");

const ANSWER = "hello from the origin";
const PIECE = "x".repeat(1000);

let gateway: Gateway;
let scratch = "";
let streamPort = 0;
/** Of a listener with our own engine. */
let securePort = 0;
/** Processes that have taken over; they are not children of the test. */
const successors: number[] = [];
/** Ends of downloads that wait for the test. */
const downloads: (() => void)[] = [];

const origin = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  idleTimeout: 0,
  fetch(request, server) {
    if (request.headers.get("upgrade") === "websocket")
      return server.upgrade(request) ? undefined : new Response(null, { status: 400 });
    if (!request.url.endsWith("/download")) return new Response(ANSWER);
    return new Response(
      new ReadableStream({
        start(controller) {
          controller.enqueue(PIECE);
          downloads.push(() => {
            controller.enqueue(PIECE);
            controller.close();
          });
        },
      }),
    );
  },
  websocket: { message: (socket, message) => void socket.send(`echo ${message}`) },
});

let echo: Server;
/** An address that no other process can have. */
const taken = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response(null) });

/** Set by the installer: the kernel then migrates connections that wait at a closed socket. */
const MIGRATE = "/proc/sys/net/ipv4/tcp_migrate_req";
let migrateBefore: string | null = null;

beforeAll(async () => {
  if (process.getuid?.() === 0 && existsSync(MIGRATE)) {
    migrateBefore = readFileSync(MIGRATE, "utf8");
    writeFileSync(MIGRATE, "1\n");
  }
  echo = createServer((socket) => {
    socket.on("error", () => undefined);
    socket.pipe(socket);
  });
  await new Promise<void>((done) => echo.listen(0, "127.0.0.1", done));
});
afterAll(async () => {
  echo.close();
  if (migrateBefore !== null) writeFileSync(MIGRATE, migrateBefore);
  await origin.stop(true);
  await taken.stop(true);
});

beforeEach(async () => {
  scratch = mkdtempSync(join(tmpdir(), "sluice-upgrade-"));
  gateway = await startGateway({ binary: executable, workers: 2 });
  const targets = [{ host: "127.0.0.1", port: origin.port }];
  await gateway.ok("POST", "/api/v1/services", { name: "app", targets });
  await gateway.ok("POST", "/api/v1/routes", { name: "app", service_id: "app", paths: ["/"] });
  securePort = freePort();
  const own = { name: "own", address: "127.0.0.1", port: securePort, protocol: "https" };
  await gateway.ok("POST", "/api/v1/listeners", { ...own, engine: "sluice" });
  const bun = { engine: "bun", max_header_bytes: null };
  await gateway.ok("PATCH", "/api/v1/listeners/http", bun);
  const { port } = echo.address() as { port: number };
  const tcp = { name: "echo", protocol: "tcp", targets: [{ host: "127.0.0.1", port }] };
  await gateway.ok("POST", "/api/v1/services", tcp);
  streamPort = freePort();
  const at = { listen_address: "127.0.0.1", listen_port: streamPort };
  await gateway.ok("POST", "/api/v1/stream-routes", { name: "echo", service_id: "echo", ...at });
});

afterEach(async () => {
  for (const pid of successors.splice(0)) killNow(pid);
  await gateway?.stop();
  rmSync(scratch, { recursive: true, force: true });
});

function killNow(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has ended.
  }
}

const pidOfHolder = () => Number(readFileSync(join(gateway.dataDir, "sluice.pid"), "utf8"));

const upgrade = (...args: string[]) =>
  runCommand(["upgrade", "--data-dir", gateway.dataDir, ...args], { binary: executable });

/** Replaces the gateway and returns the new process. */
async function replace(...args: string[]): Promise<number> {
  const { code, stdout, stderr } = await upgrade(...args);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  const pid = Number(/^Process (\d+) serves now, version \S+\.\n$/.exec(stdout)?.[1]);
  successors.push(pid);
  expect(pidOfHolder()).toBe(pid);
  return pid;
}

/** A program for `upgrade`. */
function script(text: string): string {
  const path = join(scratch, "sluice");
  writeFileSync(path, `#!/bin/sh\n${text}\n`);
  chmodSync(path, 0o755);
  return path;
}

const revisionAfter = async (name: string): Promise<number> => {
  const response = await gateway.api("POST", "/api/v1/services", { name });
  expect(response.status).toBe(200);
  return Number(response.headers.get("x-config-revision"));
};

async function openSocket(): Promise<{ ask(text: string): Promise<unknown>; closed(): boolean }> {
  const socket = new WebSocket(`ws://127.0.0.1:${gateway.httpPort}/socket`);
  const waiting: ((text: unknown) => void)[] = [];
  let isClosed = false;
  socket.onmessage = ({ data }) => waiting.shift()?.(data);
  socket.onclose = () => {
    isClosed = true;
    for (const resolve of waiting.splice(0)) resolve("closed");
  };
  await new Promise((done) => (socket.onopen = done));
  return {
    ask: (text) =>
      new Promise((resolve) => {
        waiting.push(resolve);
        socket.send(text);
      }),
    closed: () => isClosed,
  };
}

async function openStream(): Promise<{ ask(text: string): Promise<string>; socket: Socket }> {
  const socket = connect(streamPort, "127.0.0.1");
  let waiting: ((text: string) => void) | null = null;
  socket.on("data", (chunk) => waiting?.(chunk.toString()));
  socket.on("close", () => waiting?.("closed"));
  socket.on("error", () => waiting?.("error"));
  const ask = (text: string) =>
    new Promise<string>((resolve) => {
      waiting = resolve;
      socket.write(text);
    });
  expect(await ask("first")).toBe("first");
  return { ask, socket };
}

describe("a gateway that is replaced under load", () => {
  test("fails no request, cuts no connection, and its successor can be changed and replaced", async () => {
    const clients = { path: "/", expected: ANSWER, fresh: 8, kept: 8 };
    const loads = [
      new SteadyLoad({ ...clients, port: gateway.httpPort }),
      new SteadyLoad({ ...clients, port: securePort, tls: true }),
    ];
    const socket = await openSocket();
    const stream = await openStream();
    const download = await fetch(`http://127.0.0.1:${gateway.httpPort}/download`);
    const revision = await revisionAfter("before");
    const first = gateway.pid;

    const second = await replace();
    expect(second).not.toBe(first);
    expect(await revisionAfter("after")).toBe(revision + 1);
    expect((await gateway.api("GET", "/readyz")).status).toBe(200);
    expect((await gateway.api("GET", "/metrics")).status).toBe(200);
    expect(await gateway.ok("GET", "/api/v1/admin/status")).toMatchObject({
      revision: revision + 1,
    });

    const third = await replace();
    expect(third).not.toBe(second);
    expect(await revisionAfter("later")).toBe(revision + 2);
    // The second process waited only for clients that had to find the third.
    await eventually(() => !isRunning(second));
    const answered = loads.map((load) => load.answered);
    await eventually(() => loads.every((load, at) => load.answered > (answered[at] ?? 0) + 100));

    expect(await socket.ask("over two processes")).toBe("echo over two processes");
    expect(await stream.ask("the same")).toBe("the same");
    downloads.shift()?.();
    expect(await download.text()).toBe(PIECE + PIECE);
    expect(isRunning(first)).toBe(true);
    expect(socket.closed()).toBe(false);

    for (const report of await Promise.all(loads.map((load) => load.stop()))) {
      expect(report.failures).toEqual([]);
      expect(report.sentElsewhere).toBeGreaterThan(0);
    }
    stream.socket.destroy();
  });

  test("waits for WebSockets and streams only as long as configured", async () => {
    const socket = await openSocket();
    const stream = await openStream();
    const first = gateway.pid;
    await replace("--drain", "1");
    expect(await socket.ask("still here")).toBe("echo still here");
    expect(await stream.ask("too")).toBe("too");
    await eventually(() => socket.closed());
    await eventually(() => stream.socket.destroyed);
    await eventually(() => !isRunning(first));
  });
});

test("a thread that plugin reloads have replaced before ends its connections with the others", async () => {
  using files = new PluginFiles();
  files.write("own.ts", pluginSource("own"));
  await gateway.stop();
  gateway = await startGateway({ binary: executable, workers: 1 });
  const targets = [{ host: "127.0.0.1", port: origin.port }];
  await gateway.ok("POST", "/api/v1/services", { name: "app", targets });
  await gateway.ok("POST", "/api/v1/routes", { name: "app", service_id: "app", paths: ["/"] });
  const limits = { max_plugin_reloads: 1 };
  await gateway.ok("PATCH", "/api/v1/settings", { limits, plugins_directory: files.path });
  const loaded = async () =>
    (await gateway.ok("GET", "/api/v1/plugins/directory")).plugins[0]?.state === "loaded";
  await eventually(loaded);
  const socket = await openSocket();
  files.write("own.ts", pluginSource("own", { word: "two" }));
  await gateway.ok("POST", "/api/v1/plugins/directory");
  await eventually(() => gateway.stderr.includes("a worker is replaced by a new thread"));
  const first = gateway.pid;
  await replace("--drain", "1");
  expect(await socket.ask("still here")).toBe("echo still here");
  await eventually(() => socket.closed());
  await eventually(() => !isRunning(first));
  expect((await fetch(`http://127.0.0.1:${gateway.httpPort}/`)).status).toBe(200);
});

describe("a gateway whose successor cannot serve continues and accepts changes", () => {
  const cases = [
    { why: "it ends at once", text: "exit 1", message: "the new process ended (code 1)" },
    {
      why: "its flags are not known",
      text: `exec ${executable} check "$@"`,
      message: "the new process ended (code 2)",
    },
    {
      why: "it finds that it cannot start",
      text: `exec ${executable} "$@" --admin-tls-cert /none --admin-tls-key /none`,
      message: "/none",
    },
    {
      why: "the management API cannot have its address",
      text: `set -- $(echo "$@" | sed 's/--admin 127.0.0.1:0/--admin 127.0.0.1:${taken.port}/'); exec ${executable} "$@"`,
      message: "address already in use",
    },
    {
      why: "it is killed while it takes over",
      text: `SLUICE_FAIL_POINT=after_take_over exec ${executable} "$@"`,
      message: "the new process ended",
    },
  ];
  test.each(cases)("$why", async ({ text, message }) => {
    const program = script(text);
    const load = new SteadyLoad({
      port: gateway.httpPort,
      path: "/",
      expected: ANSWER,
      fresh: 2,
      kept: 2,
    });
    const revision = await revisionAfter("before");
    const { code, stderr } = await upgrade("--executable", program);
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining(message) });
    expect(pidOfHolder()).toBe(gateway.pid);
    expect(await revisionAfter("after")).toBe(revision + 1);
    expect((await gateway.api("GET", "/readyz")).status).toBe(200);
    expect((await load.stop()).failures).toEqual([]);
    // The gateway can be replaced afterwards.
    await replace();
    expect(await revisionAfter("later")).toBe(revision + 2);
  });
});

describe("a process that takes over serves when the former gateway is killed", () => {
  const told = (words: string) => gateway.log.some(({ message }) => message.startsWith(words));
  const moments = [
    { when: "it has started the other", isDue: () => told("the gateway is to be replaced") },
    { when: "the other has the data directory", isDue: () => pidOfHolder() !== gateway.pid },
    { when: "the other serves", isDue: () => told("another process serves") },
  ];
  test.each(moments)("when $when", async ({ isDue }) => {
    await revisionAfter("before");
    const killed = gateway.pid;
    const upgrading = upgrade();
    await eventually(isDue);
    gateway.signal("SIGKILL");
    await eventually(() => pidOfHolder() !== killed);
    successors.push(pidOfHolder());
    const { code, stderr } = await upgrading;
    if (code !== 0)
      expect({ code, stderr }).toEqual({
        code: 1,
        stderr: `sluice: the gateway that serves ${gateway.dataDir} ended before it responded\n`,
      });
    const page = async () =>
      (await fetch(`http://127.0.0.1:${gateway.httpPort}/`, { keepalive: false })).text();
    const isServed = () =>
      page().then(
        (text) => text === ANSWER,
        () => false,
      );
    await eventually(isServed);
    // Both write to one log, and the second one logs the address of its management API.
    const management = () =>
      gateway.log
        .filter(({ message }) => message === "serving")
        .map((event) => event["management"]);
    await eventually(() => management().length === 2);
    const admin = String(management()[1]);
    expect((await fetch(`${admin}/readyz`)).status).toBe(200);
    const names: { name: string }[] = await (await fetch(`${admin}/api/v1/services`)).json();
    expect(names.map(({ name }) => name)).toContain("before");
  });
});

test("only one upgrade runs at a time; one that hangs blocks only other upgrades", async () => {
  const hanging = upgrade("--executable", script("exec sleep 1000"));
  await eventually(() =>
    gateway.log.some(({ message }) => message === "the gateway is to be replaced"),
  );
  const { code, stderr } = await upgrade();
  expect({ code, stderr }).toEqual({
    code: 1,
    stderr: "sluice: an upgrade is already in progress\n",
  });
  const revision = await revisionAfter("meanwhile");
  expect(revision).toBeGreaterThan(1);
  gateway.signal("SIGTERM");
  // Stopping the gateway also stops its successor.
  expect((await hanging).code).toBe(1);
});

test("a directory without a gateway and a missing program are errors", async () => {
  const nobody = await runCommand(["upgrade", "--data-dir", scratch], { binary: executable });
  expect(nobody).toMatchObject({ code: 3, stderr: `sluice: no gateway serves ${scratch}\n` });
  const missing = await upgrade("--executable", join(scratch, "none"));
  expect(missing.code).toBe(2);
  expect(missing.stderr).toContain("does not exist: check the path");
});

function isRunning(pid: number): boolean {
  try {
    // A zombie process still has an entry in the process table.
    return !readFileSync(`/proc/${pid}/stat`, "utf8").includes(") Z ");
  } catch {
    return false;
  }
}
