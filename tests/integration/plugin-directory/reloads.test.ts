// The engine never releases the code of a module: after a number of reloads new threads replace the workers, and no client notices.
import { afterAll, beforeEach, expect, test } from "bun:test";
import { connect } from "node:net";
import { freePort } from "../../support/data-plane.ts";
import { type Gateway, startGateway } from "../../support/gateway.ts";
import { startLastingOrigin } from "../../support/lasting-clients.ts";
import { PluginFiles, pluginSource } from "../../support/own-plugin.ts";
import { eventually } from "../../support/poll.ts";
import { SteadyLoad } from "../../support/steady-load.ts";

const origin = startLastingOrigin("127.0.0.1");
const cleanups: (() => unknown)[] = [];
beforeEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});
afterAll(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  await origin.stop(true);
});

/** The plugin says how often its thread has loaded it. */
const source = (version: number) =>
  pluginSource("own", {
    head: "const loads = (globalThis.loads = (globalThis.loads ?? 0) + 1);",
    word: `" + loads + " ${version}`,
  });

async function scene({ workers = 1, limits = {} }: { workers?: number; limits?: object } = {}) {
  const files = new PluginFiles();
  cleanups.push(() => files[Symbol.dispose]());
  files.write("own.ts", source(0));
  const gateway = await startGateway({ workers, args: ["--plugins-dir", files.path] });
  cleanups.push(() => gateway.stop());
  await gateway.ok("PATCH", "/api/v1/settings", { limits });
  const targets = [{ host: "127.0.0.1", port: origin.port }];
  await gateway.ok("POST", "/api/v1/services", { name: "web", targets });
  await gateway.ok("POST", "/api/v1/routes", { name: "all", service_id: "web", paths: ["/"] });
  await gateway.ok("POST", "/api/v1/plugins", { name: "own", config: {} });
  let version = 0;
  return {
    gateway,
    view: () => gateway.ok("GET", "/api/v1/plugins/directory"),
    async reload(times = 1) {
      for (let i = 0; i < times; i++) {
        files.write("own.ts", source(++version));
        await gateway.ok("POST", "/api/v1/plugins/directory");
      }
    },
    async said() {
      const response = await fetch(`http://127.0.0.1:${gateway.httpPort}/`, {
        headers: { connection: "close" },
      });
      return response.headers.get("x-own");
    },
  };
}

async function openSocket({ httpPort }: Gateway) {
  const socket = new WebSocket(`ws://127.0.0.1:${httpPort}/socket`);
  const closed = Promise.withResolvers<number>();
  socket.onclose = ({ code }) => closed.resolve(code);
  await new Promise((resolve) => (socket.onopen = resolve));
  const echo = async () => {
    const { promise, resolve } = Promise.withResolvers<unknown>();
    socket.onmessage = ({ data }) => resolve(data);
    socket.send("echo");
    return await promise;
  };
  return { socket, echo, closed: closed.promise };
}

test("the workers are replaced at the limit and not before, and the next time after as many", async () => {
  const { view, reload, said } = await scene({ limits: { max_plugin_reloads: 3 } });
  await reload(2);
  expect(await view()).toMatchObject({ reloads_since_replacement: 2, worker_replacements: 0 });
  expect(await said()).toBe("3 2 none");
  await reload();
  await eventually(async () => (await view()).worker_replacements === 1);
  expect(await said()).toBe("1 3 none");
  // The same code is no reload.
  expect(await view()).toMatchObject({ reloads: 3, reloads_since_replacement: 0 });
  await reload(3);
  await eventually(async () => (await view()).worker_replacements === 2);
  expect(await said()).toBe("1 6 none");
});

test("0: they are never replaced", async () => {
  const { view, reload, said } = await scene({ limits: { max_plugin_reloads: 0 } });
  await reload(21);
  expect(await view()).toMatchObject({ reloads_since_replacement: 21, worker_replacements: 0 });
  expect(await said()).toBe("22 21 none");
});

test("two workers are replaced under load and beside changes without a failed request", async () => {
  const { gateway, view, reload, said } = await scene({
    workers: 2,
    limits: { max_plugin_reloads: 2 },
  });
  const clients = { port: gateway.httpPort, path: "/", expected: "here", fresh: 4, kept: 4 };
  const load = new SteadyLoad(clients);
  for (let round = 1; round <= 2; round++) {
    await reload(2);
    await eventually(async () => {
      // Changes wait for a thread that starts, and are live before the reply.
      await gateway.ok("PATCH", "/api/v1/routes/all", { tags: [`t${Date.now()}`] });
      return (await view()).worker_replacements === round;
    });
  }
  const { failures, fresh, kept } = await load.stop();
  expect(failures).toEqual([]);
  expect(Math.min(fresh, kept)).toBeGreaterThan(100);
  for (let i = 0; i < 20; i++) expect(await said()).toBe("1 4 none");
  // What the former threads have counted is still there, and nothing is in flight.
  await eventually(async () => {
    const text = await (await gateway.api("GET", "/metrics")).text();
    const total = Number(/sluice_requests_total\{[^}]*\} (\d+)/.exec(text)?.[1]);
    const active = Number(/^sluice_requests_in_flight(?:\{[^}]*\})? (\d+)/m.exec(text)?.[1]);
    return total >= fresh + kept && active === 0;
  });
});

test("connections of a former thread go on until they end, and can be listed and closed", async () => {
  const { gateway, view, reload, said } = await scene({ limits: { max_plugin_reloads: 1 } });
  const port = freePort();
  const targets = [{ host: "127.0.0.1", port: origin.port }];
  await gateway.ok("POST", "/api/v1/services", { name: "raw", protocol: "tcp", targets });
  await gateway.ok("POST", "/api/v1/stream-routes", {
    ...{ name: "echo", listen_port: port, listen_address: "127.0.0.1", service_id: "raw" },
  });
  const list = () => gateway.ok("GET", "/api/v1/stream-routes/echo/connections");
  const stream = connect({ host: "127.0.0.1", port });
  cleanups.push(() => stream.destroy());
  const streamClosed = new Promise((resolve) => stream.on("close", resolve));
  stream.on("error", () => {});
  await eventually(async () => (await list()).length === 1);
  const { echo, closed } = await openSocket(gateway);
  expect(await echo()).toBe("echo");

  await reload();
  await eventually(async () => (await said()) === "1 1 none");
  expect(await echo()).toBe("echo");
  const [{ id }] = await list();
  await gateway.ok("DELETE", `/api/v1/connections/${id}`);
  await streamClosed;
  expect(await echo()).toBe("echo");
  expect((await view()).worker_replacements).toBe(0);

  // A WebSocket outlives every change but the removal of its route.
  await gateway.ok("PATCH", "/api/v1/routes/all", { tags: ["changed"] });
  expect(await echo()).toBe("echo");
  await gateway.ok("DELETE", "/api/v1/routes/all");
  expect(await closed).toBe(1001);
  await eventually(async () => (await view()).worker_replacements === 1);
});

test("the drain time ends them", async () => {
  const limits = { max_plugin_reloads: 1, worker_drain_timeout: 100 };
  const { gateway, view, reload } = await scene({ limits });
  const { closed } = await openSocket(gateway);
  await reload();
  expect(await closed).toBe(1001);
  await eventually(async () => (await view()).worker_replacements === 1);
});

test("a gateway that stops closes them", async () => {
  const { gateway, reload, said } = await scene({ limits: { max_plugin_reloads: 1 } });
  const { closed } = await openSocket(gateway);
  await reload();
  await eventually(async () => (await said()) === "1 1 none");
  expect(await gateway.stop()).toBe(0);
  expect(await closed).toBe(1001);
});

test("no request is served by an earlier version, on connections of a former thread either", async () => {
  const { gateway, reload, said } = await scene({ limits: { max_plugin_reloads: 1 } });
  const { id: plugin } = await gateway.ok("POST", "/api/v1/plugins", { name: "transform" });
  // Keeps the former thread.
  const { echo, socket } = await openSocket(gateway);
  const before = Array.from({ length: 5 }, () => keptConnection(gateway.httpPort));
  for (const connection of before) expect(await connection.ask()).toContain("200 OK");
  await reload();
  for (let round = 0; round < 30; round++) {
    const { value } = await mark(gateway, { plugin, round });
    const fresh = keptConnection(gateway.httpPort);
    before.push(fresh);
    for (const connection of before) {
      const answer = await connection.ask();
      // Closed: its client connects again.
      if (answer !== "") expect(answer).toContain(`x-mark: ${value}`);
    }
    await Bun.sleep(100);
  }
  expect(await said()).toBe("1 1 none");
  expect(await echo()).toBe("echo");
  socket.close();
});

/** A change that every response shows. */
async function mark(
  gateway: Gateway,
  { plugin, round }: { plugin: string; round: number },
): Promise<{ value: string }> {
  const value = `m${round}`;
  const config = { response: { headers: { set: { "x-mark": value } } } };
  await gateway.ok("PATCH", `/api/v1/plugins/${plugin}`, { config });
  return { value };
}

/** One persistent connection: a request after the other, the empty text once it is closed. */
function keptConnection(port: number) {
  const socket = connect({ host: "127.0.0.1", port });
  cleanups.push(() => socket.destroy());
  let text = "";
  let isClosed = false;
  let wake = () => {};
  socket.on("data", (chunk) => {
    text += chunk.toString("latin1");
    wake();
  });
  socket.on("error", () => {});
  socket.on("close", () => {
    isClosed = true;
    wake();
  });
  return {
    async ask(): Promise<string> {
      text = "";
      if (isClosed) return "";
      socket.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
      while (!isClosed && !text.endsWith("here"))
        await new Promise<void>((resolve) => (wake = resolve));
      return text.toLowerCase().replace("200 ok", "200 OK");
    },
  };
}
