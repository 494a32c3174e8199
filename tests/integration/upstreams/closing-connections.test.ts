// Pooled connections that the target closes in the moment of the next request: no request is lost, none is processed twice.
import { afterAll, describe, expect, test } from "bun:test";
import { FixedAddress } from "../../../src/dataplane/names/addresses.ts";
import type { ProxyError } from "../../../src/dataplane/error.ts";
import { Exchange } from "../../../src/dataplane/upstream/exchange.ts";
import { HeadCache } from "../../../src/dataplane/upstream/response-head.ts";
import { ConnectionPool } from "../../../src/dataplane/upstream/pool.ts";
import { parseResponseHead } from "../../../src/dataplane/upstream/response-parser.ts";
import { cleanupsOf } from "../../support/cleanups.ts";
import { startDataPlane } from "../../support/data-plane.ts";
import { engines } from "../../support/engines.ts";
import { reply, startOrigin } from "../../support/origin.ts";
import { eventually } from "../../support/poll.ts";
import { exchange } from "../../support/raw-exchange.ts";
import { startScriptedScene } from "../../support/scripted-scene.ts";

const stops = cleanupsOf(afterAll);

/** One exchange on a connection of the pool; null: it succeeded. */
function post(pool: ConnectionPool): Promise<ProxyError | null> {
  const { promise, resolve } = Promise.withResolvers<ProxyError | null>();
  const one = new Exchange(pool.acquire(), new HeadCache(parseResponseHead), {
    requestHead: () => "POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 0\r\n\r\n",
    body: null,
    timeouts: { connect: 0, response: 0, read: 0, write: 0 },
    request: {
      upstreamMethod: "POST",
      generation: { maxResponseHeadBytes: 65_536 },
      connectedAt: 0,
      receivedAt: 0,
    },
    onHead() {},
    onContent() {},
    onWaiting() {},
    onFinished: () => resolve(null),
    onFailed: resolve,
  });
  one.start(performance.now());
  return promise;
}

function poolOf(port: number): ConnectionPool {
  const addresses = new FixedAddress({ host: "127.0.0.1" });
  const endpoint = { hostname: "127.0.0.1", port, addresses, tls: null };
  const pool = new ConnectionPool(endpoint, { size: 8, idleTimeout: 60_000, maxRequests: 0 });
  stops.push(() => pool.close());
  return pool;
}

test("a close before the request arrived is known from one behind it", async () => {
  const origin = startOrigin();
  stops.push(() => origin.stop());
  const pool = poolOf(origin.port);
  expect(await post(pool)).toBeNull();
  origin.connections[0]?.end();
  // In the same turn: the gateway has not seen the end yet.
  expect(await post(pool)).toMatchObject({ retry: "fresh-connection-unread" });
  expect(origin.requests.length).toBe(1);
  for (const way of ["end", "reset"] as const) {
    origin.answer = reply();
    expect(await post(pool)).toBeNull();
    origin.answer = (_request, connection) => {
      connection[way]();
      return null;
    };
    expect((await post(pool))?.retry).toBe("fresh-connection");
  }
});

test("of thousands of requests on connections that have closed each is known as not received", async () => {
  const origin = startOrigin();
  stops.push(() => origin.stop());
  const pool = poolOf(origin.port);
  const results = new Map<string, number>();
  for (let at = 0; at < 2000; at++) {
    expect(await post(pool)).toBeNull();
    origin.connections.at(-1)?.end();
    const result = (await post(pool))?.retry ?? "served";
    results.set(result, (results.get(result) ?? 0) + 1);
  }
  expect([...results]).toEqual([["fresh-connection-unread", 2000]]);
  expect(origin.requests.length).toBe(2000);
});

test.each([
  ["timeout=1", true],
  ["max=100, Timeout=1", true],
  ["timeout=60", false],
  ["max=100", false],
])("Keep-Alive: %s: the connection ends before it: %p", async (value, isEnding) => {
  const scene = await startScriptedScene();
  stops.push(() => scene.stop());
  scene.origin.answer = reply("ok", { headers: `Keep-Alive: ${value}\r\n` });
  const connectionOf = async () => {
    await exchange("GET / HTTP/1.1\r\nHost: h\r\n\r\n", { port: scene.port });
    return scene.origin.requests.at(-1)?.connection;
  };
  const first = await connectionOf();
  expect(await connectionOf()).toBe(first);
  const renewed = async () => (await connectionOf()) !== first;
  if (isEnding) await eventually(renewed, { intervalMs: 700 });
  else {
    await Bun.sleep(700);
    expect(await renewed()).toBe(false);
  }
});

/** Closes connections that are idle for so long, and reports how many bodies it has seen twice; in a process of its own, to race. */
const TARGET = `
  const seen = new Map();
  const seconds = Number(process.argv[1]);
  const server = require("node:net").createServer({ noDelay: true }, (socket) => {
    let text = "";
    let timer;
    socket.on("error", () => {});
    socket.on("data", (chunk) => {
      clearTimeout(timer);
      text += chunk.toString("latin1");
      const end = text.indexOf("\\r\\n\\r\\n");
      const length = Number(/content-length: *(\\d+)/i.exec(text)?.[1] ?? 0);
      if (end < 0 || text.length < end + 4 + length) return;
      const body = text.slice(end + 4, end + 4 + length);
      text = "";
      seen.set(body, (seen.get(body) ?? 0) + 1);
      const twice = [...seen.values()].filter((times) => times > 1).length;
      const answer = body === "report" ? String(twice) : "ok";
      socket.write("HTTP/1.1 200 OK\\r\\nKeep-Alive: timeout=" + seconds + "\\r\\nContent-Length: " + answer.length + "\\r\\n\\r\\n" + answer);
      timer = setTimeout(() => socket.destroy(), 1000 * seconds);
    });
  });
  server.listen(0, "127.0.0.1", () => console.log(server.address().port));
`;

describe.each(engines)("%s engine:", (engine) => {
  test("of thousands of POSTs at the end of the target's idle timeout none fails or arrives twice", async () => {
    const seconds = 2;
    const target = Bun.spawn([process.execPath, "-e", TARGET, String(seconds)], {
      stdout: "pipe",
      stderr: "inherit",
    });
    stops.push(() => target.kill());
    const { value } = await target.stdout.getReader().read();
    const gateway = await startDataPlane({
      listener: { engine },
      services: [{ name: "target", targets: [{ port: Number(new TextDecoder().decode(value)) }] }],
      routes: [{ name: "all", service_id: "target" }],
    });
    stops.push(() => gateway.stop());
    const send = async (body: string) => {
      const head = `POST / HTTP/1.1\r\nHost: h\r\nContent-Length: ${body.length}\r\n\r\n`;
      const { answers, outcome } = await exchange(head + body, { port: gateway.port });
      return outcome === "200" ? (answers[0]?.body ?? "") : outcome;
    };
    const failed: string[] = [];
    for (let round = 0; round < 5; round++) {
      const results = await Promise.all(
        Array.from({ length: 400 }, (_, number) => send(`${round}-${number}`)),
      );
      failed.push(...results.filter((result) => result !== "ok"));
      // The moment in which the target closes.
      await Bun.sleep(1000 * seconds);
    }
    expect(failed).toEqual([]);
    expect(await send("report")).toBe("0");
  });
});
