// Every timeout of a service and a route: its status, and that no connection stays open.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type FullQueue, startFullQueue } from "../../support/full-queue.ts";
import { eventually } from "../../support/poll.ts";
import { read } from "../../support/raw-exchange.ts";
import { connectRaw } from "../../support/raw-http.ts";
import { GET, type ScriptedScene, startScriptedScene } from "../../support/scripted-scene.ts";

const SHORT = 200;
const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const POST = "POST / HTTP/1.1\r\nHost: h\r\n";

const scenes: ScriptedScene[] = [];
async function start(...args: Parameters<typeof startScriptedScene>): Promise<ScriptedScene> {
  const scene = await startScriptedScene(...args);
  scenes.push(scene);
  return scene;
}
let queue: FullQueue;
beforeAll(async () => {
  queue = await startFullQueue();
});
afterAll(async () => {
  queue.stop();
  await Promise.all(scenes.map((scene) => scene.stop()));
});

/** Each with a service that has the timeout, and with a route that overrides it. */
const owners = ["service", "route"] as const;
const withTimeout = (owner: (typeof owners)[number], name: string) =>
  owner === "service"
    ? { service: { [name]: SHORT } }
    : { service: { [name]: 60_000 }, route: { timeouts: { [name]: SHORT } } };

describe.each(owners)("of the %s", (owner) => {
  test("connect_timeout: 504 connection_timeout", async () => {
    const scene = await start({ ...withTimeout(owner, "connect_timeout") });
    await scene.gateway.apply({
      services: [
        {
          name: "origin",
          targets: [{ port: queue.port }],
          connect_timeout: owner === "service" ? SHORT : 60_000,
        },
      ],
    });
    for (const bytes of [GET, `${POST}Content-Length: 2\r\n\r\nab`]) {
      const { outcome, answers } = await scene.ask(OK, bytes);
      expect(outcome).toBe("504");
      expect(answers[0]?.header("proxy-status")).toContain("connection_timeout");
    }
  });

  test("response_timeout: 504 http_response_timeout, and the connection is closed", async () => {
    const scene = await start(withTimeout(owner, "response_timeout"));
    for (const script of [null, "HTTP/1.1 200 OK\r\nX: ", "HTTP/1.1 102 Processing\r\n\r\n"]) {
      const { outcome, answers } = await scene.ask((_request, connection) => {
        if (script !== null) connection.write(script);
        return null;
      });
      expect(outcome).toBe("504");
      expect(answers[0]?.header("proxy-status")).toContain("http_response_timeout");
      await eventually(() => scene.openConnections() === 0);
    }
  });

  test("read_timeout in a body of known length: never a partial body as if complete", async () => {
    const scene = await start(withTimeout(owner, "read_timeout"));
    const client = await connectRaw({ port: scene.port });
    scene.origin.answer = (_request, connection) => {
      connection.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc");
      return null;
    };
    client.write(GET);
    const { answers } = read(await client.untilClosed().catch(() => client.received), true);
    // After 20 ms without a byte the body is streamed, so the response has begun and is aborted.
    expect(answers[0]?.isComplete === true && answers[0].status === 200).toBe(false);
    await eventually(() => scene.openConnections() === 0);
  });

  test("read_timeout in a streamed body: the response is aborted", async () => {
    const scene = await start(withTimeout(owner, "read_timeout"));
    for (const head of [
      "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
      "Content-Type: text/event-stream\r\n\r\nabc",
    ]) {
      scene.origin.answer = (_request, connection) => {
        connection.write(`HTTP/1.1 200 OK\r\n${head}`);
        return null;
      };
      const client = await connectRaw({ port: scene.port });
      client.write(GET);
      await client.until("abc");
      const { answers } = read(await client.untilClosed(), true);
      expect(answers[0]).toMatchObject({ status: 200, isComplete: false });
      await eventually(() => scene.openConnections() === 0);
    }
  });

  test("write_timeout: a target that stops reading loses the request, 504 connection_write_timeout", async () => {
    const scene = await start({ ...withTimeout(owner, "write_timeout") });
    await scene.gateway.apply({
      services: [
        {
          name: "origin",
          targets: [{ port: stalled.port }],
          write_timeout: owner === "service" ? SHORT : 60_000,
        },
      ],
    });
    const size = 30_000_000;
    const client = await connectRaw({ port: scene.port });
    client.write(`${POST}Content-Length: ${size}\r\n\r\n`);
    client.write(new Uint8Array(size));
    await client.until((received) => read(received, false).answers.length === 1);
    const { answers } = read(client.received, false);
    expect(answers[0]?.status).toBe(504);
    expect(answers[0]?.header("proxy-status")).toContain("connection_write_timeout");
    client.close();
  });

  test("request_timeout: 504 before a response", async () => {
    const scene = await start(withTimeout(owner, "request_timeout"));
    const { outcome, answers } = await scene.ask(null);
    expect(outcome).toBe("504");
    expect(answers[0]?.header("proxy-status")).toContain("http_response_timeout");
    await eventually(() => scene.openConnections() === 0);
  });

  test("request_timeout: an endless stream is aborted", async () => {
    const scene = await start(withTimeout(owner, "request_timeout"));
    const timers: Timer[] = [];
    const client = await connectRaw({ port: scene.port });
    scene.origin.answer = (_request, connection) => {
      connection.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
      timers.push(setInterval(() => connection.write("3\r\nabc\r\n"), 20));
      return null;
    };
    client.write(GET);
    const { answers } = read(await client.untilClosed(), true);
    expect(answers[0]).toMatchObject({ status: 200, isComplete: false });
    await eventually(() => scene.openConnections() === 0);
    for (const timer of timers) clearInterval(timer);
  });
});

/** A target that accepts and never reads. */
const stalled = Bun.listen({
  hostname: "127.0.0.1",
  port: 0,
  socket: { open: (socket) => void socket.pause(), data() {} },
});
afterAll(() => stalled.stop(true));

test("body_read_timeout: a client that stops sending gets 408", async () => {
  const scene = await start({ settings: { limits: { body_read_timeout: SHORT } } });
  const { outcome, answers } = await scene.ask(OK, `${POST}Content-Length: 10\r\n\r\nabc`);
  expect(outcome).toBe("408");
  expect(answers[0]?.header("proxy-status")).toContain("http_request");
  await eventually(() => scene.openConnections() === 0);
});

test("request_timeout counts from the request, also after an idle period", async () => {
  const scene = await start({ service: { request_timeout: 1500 } });
  expect((await scene.ask(OK)).outcome).toBe("200");
  // Longer than the timeout after the clock of an idle worker has stopped.
  const answeredAt = performance.now();
  await eventually(() => performance.now() > answeredAt + 3500);
  const late = async () => {
    const askedAt = performance.now();
    // Longer than a tick of that clock.
    await eventually(() => performance.now() > askedAt + 300);
    return OK;
  };
  const { outcome } = await scene.ask(late);
  expect(outcome).toBe("200");
});

test("a timeout of 0 disables it", async () => {
  const scene = await start({
    service: {
      connect_timeout: 0,
      response_timeout: 0,
      read_timeout: 0,
      write_timeout: 0,
      request_timeout: 0,
    },
    settings: { limits: { body_read_timeout: 0 } },
  });
  // Longer than the clock's tick, at which a timeout of 0 would expire.
  const { answers } = await scene.ask(async (_request, connection) => {
    await Bun.sleep(250);
    connection.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
    await Bun.sleep(250);
    connection.write("0\r\n\r\n");
    return null;
  });
  expect(answers[0]).toMatchObject({ status: 200, body: "abc", isComplete: true });
});
