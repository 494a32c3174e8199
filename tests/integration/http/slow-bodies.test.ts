// Clients that send their bodies slowly: 408 when the gateway waits too long for the client, and never when the target is slow.
import { afterEach, describe, expect, test } from "bun:test";
import { cleanupsOf } from "../../support/cleanups.ts";
import { H2Client } from "../../support/h2-client.ts";
import { eventually } from "../../support/poll.ts";
import { connectRaw, type RawConnection } from "../../support/raw-http.ts";
import { type ScriptedScene, startScriptedScene } from "../../support/scripted-scene.ts";

type Options = NonNullable<Parameters<typeof startScriptedScene>[0]>;

/** Instead of 500 bytes per second and 30 seconds. */
const RATE = 10_000;
const GRACE = 300;
const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const PIECE = "x".repeat(10);

const cleanups = cleanupsOf(afterEach);

async function start(options: Options = {}, grace = GRACE): Promise<ScriptedScene> {
  const scene = await startScriptedScene({
    ...options,
    settings: { ...options.settings, limits: { body_min_rate_grace: grace } },
    listener: { body_min_rate: RATE, ...options.listener },
  });
  cleanups.push(() => scene.stop());
  return scene;
}

async function open(port: number): Promise<RawConnection> {
  const client = await connectRaw({ port });
  cleanups.push(() => client.close());
  return client;
}

/** Sends a piece every 50 ms: 200 bytes per second by default. */
function trickle(send: () => void, pieceMs = 50): void {
  const timer = setInterval(send, pieceMs);
  cleanups.push(() => clearInterval(timer));
}

const post = (fields: string) => `POST / HTTP/1.1\r\nHost: h\r\n${fields}\r\n\r\n`;
const LONG = "Content-Length: 1000000";
const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`;

/** The status of the response; null: none. */
const statusOf = ({ received }: RawConnection) => /^HTTP\/1\.1 (\d+)/.exec(received)?.[1] ?? null;

/** Longer than the gateway waits for any client of the tests. */
async function outlast(client: RawConnection, grace = GRACE): Promise<void> {
  const until = performance.now() + 3 * grace;
  await eventually(() => client.isClosed || performance.now() > until);
}

describe("a body that arrives too slowly gets 408", () => {
  const framings = [
    { what: "with a length", head: post(LONG), piece: PIECE },
    { what: "in chunks", head: post("Transfer-Encoding: chunked"), piece: chunk(PIECE) },
    { what: "that is short", head: post("Content-Length: 2000"), piece: PIECE },
    {
      what: "of gRPC-Web",
      head: post(`Content-Type: application/grpc-web+proto\r\n${LONG}`),
      piece: PIECE,
    },
    {
      what: "of a client that names an upgrade that there is none of",
      head: post(`Connection: Upgrade\r\nUpgrade: other/1\r\n${LONG}`),
      piece: PIECE,
    },
  ];
  test.each(framings)("$what", async ({ head, piece }) => {
    const scene = await start();
    scene.origin.answer = OK;
    const client = await open(scene.port);
    client.write(head);
    trickle(() => client.write(piece));
    const received = await client.untilClosed();
    expect(received).toStartWith("HTTP/1.1 408 ");
    expect(received).toContain("the request body arrived too slowly");
    expect(received.toLowerCase()).toContain("connection: close");
    await eventually(() => scene.openConnections() === 0);
  });

  test("over HTTP/2", async () => {
    const scene = await start();
    const client = await H2Client.connect({ port: scene.port });
    cleanups.push(() => client.close());
    const stream = client.headers(
      [
        [":method", "POST"],
        [":scheme", "http"],
        [":authority", "h"],
        [":path", "/"],
      ],
      { isLast: false },
    );
    trickle(() => client.data(stream, PIECE, { isLast: false }));
    const { status, body } = await client.result(stream);
    expect([status, body]).toEqual([408, expect.stringContaining("too slowly")]);
  });

  test.each([
    {
      what: "that a plugin reads",
      plugin: { name: "request-validation", config: { body_schema: { type: "object" } } },
      type: "application/json",
    },
    {
      what: "that a plugin passes on",
      plugin: { name: "bandwidth-limit", config: { upload_bps: 1_000_000 } },
      type: "text/plain",
    },
    {
      what: "whose beginning a plugin has read",
      plugin: {
        name: "waf-lite",
        config: { inspect_body: true, max_body: 1024 },
      },
      type: "text/plain",
    },
  ])("$what", async ({ plugin, type }) => {
    const scene = await start();
    await scene.gateway.apply({ plugins: [plugin as never] });
    const client = await open(scene.port);
    client.write(post(`Content-Type: ${type}\r\nTransfer-Encoding: chunked`));
    if (plugin.name === "waf-lite") client.write(chunk("x".repeat(2000)));
    trickle(() => client.write(chunk(PIECE)));
    const received = await client.untilClosed();
    expect(received).toStartWith("HTTP/1.1 408 ");
    expect(received).toContain("too slowly");
  });

  test("after it has used up its credit", async () => {
    const scene = await start();
    const client = await open(scene.port);
    client.write(post(LONG) + "x".repeat(RATE));
    trickle(() => client.write(PIECE));
    expect(await client.untilClosed()).toStartWith("HTTP/1.1 408 ");
  });
});

describe("the effective rate", () => {
  const cases: { what: string; options: Options; status: string | null }[] = [
    { what: "the listener's 0: any", options: { listener: { body_min_rate: 0 } }, status: null },
    { what: "the route's 0: any", options: { route: { body_min_rate: 0 } }, status: null },
    {
      what: "the route's, where it is lower",
      options: { route: { body_min_rate: 100 } },
      status: null,
    },
    {
      what: "the route's, where it is higher",
      options: { route: { body_min_rate: RATE }, listener: { body_min_rate: 0 } },
      status: "408",
    },
  ];
  test.each(cases)("$what", async ({ options, status }) => {
    const scene = await start(options);
    const client = await open(scene.port);
    client.write(post(LONG));
    trickle(() => client.write(PIECE));
    await outlast(client);
    expect(statusOf(client)).toBe(status);
    client.reset();
  });
});

describe("no 408 for", () => {
  test("a client on a slow line that is fast enough", async () => {
    const scene = await start();
    const client = await open(scene.port);
    const size = 3 * RATE;
    client.write(post(`Content-Length: ${size}`));
    // Twice the rate.
    let left = size;
    trickle(() => {
      const next = Math.min(left, RATE / 10);
      left -= next;
      if (next > 0) client.write("x".repeat(next));
    });
    await client.until("\r\n\r\nok");
    expect(statusOf(client)).toBe("200");
  });

  test("a client that pauses after sending much", async () => {
    const scene = await start();
    const client = await open(scene.port);
    const size = 10 * RATE;
    client.write(post(`Content-Length: ${size}`) + "x".repeat(size - 1));
    await outlast(client);
    expect(statusOf(client)).toBeNull();
    client.write("x");
    await client.until("\r\n\r\nok");
  });

  test("a client whose target pauses within the body", async () => {
    const size = 30_000_000;
    let taken = 0;
    const paused = Promise.withResolvers<() => void>();
    const target = Bun.listen({
      hostname: "127.0.0.1",
      port: 0,
      socket: {
        open(socket) {
          socket.pause();
          paused.resolve(() => void socket.resume());
        },
        data(socket, bytes) {
          taken += bytes.length;
          if (taken > size) socket.write(OK);
        },
      },
    });
    cleanups.push(() => target.stop(true));
    // No client could send so much: any wait for it would be too long, but for those of a busy machine.
    const grace = 5 * GRACE;
    const scene = await start({ listener: { body_min_rate: 1_000_000_000 } }, grace);
    await scene.gateway.apply({
      services: [{ name: "origin", targets: [{ port: target.port }], write_timeout: 0 }],
    });
    const client = await open(scene.port);
    client.write(post(`Content-Length: ${size}`));
    client.write(new Uint8Array(size));
    const resume = await paused.promise;
    await outlast(client, grace);
    expect(statusOf(client)).toBeNull();
    resume();
    await client.until("\r\n\r\nok");
  });

  test("a client that bandwidth-limit throttles", async () => {
    const scene = await start();
    const config = { upload_bps: RATE / 20, burst: 10 };
    await scene.gateway.apply({ plugins: [{ name: "bandwidth-limit", config: config as never }] });
    const client = await open(scene.port);
    client.write(post("Content-Length: 1000") + "x".repeat(1000));
    await client.until("\r\n\r\nok");
    expect(scene.origin.requests.at(-1)?.body.length).toBe(1000);
  });

  test("a client that has sent its body and waits for its target (a long poll)", async () => {
    const scene = await start();
    const client = await open(scene.port);
    scene.origin.answer = async (_request, connection) => {
      await outlast(client);
      connection.write(OK);
      return null;
    };
    client.write(`${post("Content-Length: 2")}ab`);
    await client.until("\r\n\r\nok");
    expect(statusOf(client)).toBe("200");
  });

  test("an event stream, however silent", async () => {
    const scene = await start();
    const client = await open(scene.port);
    scene.origin.answer = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
    client.write(`${post("Content-Length: 2")}ab`);
    await client.until("text/event-stream");
    await outlast(client);
    expect(client.isClosed).toBeFalse();
    scene.origin.connections.at(-1)?.write("data: late\n\n");
    await client.until("data: late");
  });

  test("a client that gets a response while it still sends", async () => {
    const scene = await start({ early: true });
    const client = await open(scene.port);
    scene.origin.answer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n";
    client.write(post("Transfer-Encoding: chunked") + chunk(PIECE));
    await client.until("one");
    trickle(() => client.write(chunk(PIECE)));
    await outlast(client);
    expect(client.isClosed).toBeFalse();
    scene.origin.connections.at(-1)?.write("3\r\ntwo\r\n0\r\n\r\n");
    await client.until("two");
  });
});

test("body_read_timeout applies to bodies that plugins read, and not while bandwidth-limit throttles", async () => {
  const scene = await startScriptedScene({ settings: { limits: { body_read_timeout: GRACE } } });
  cleanups.push(() => scene.stop());
  const validation = { name: "request-validation", config: { body_schema: { type: "object" } } };
  await scene.gateway.apply({ plugins: [validation as never] });
  const json = `Content-Type: application/json\r\nContent-Length: 10`;
  const { outcome, answers } = await scene.ask(OK, `${post(json)}{`);
  expect(outcome).toBe("408");
  expect(answers[0]?.body).toContain("stopped arriving");
  const paced = { name: "bandwidth-limit", config: { upload_bps: 10, burst: 1 } };
  await scene.gateway.apply({
    plugins: [paced as never],
    removedPlugins: ["request-validation"],
  });
  const slowly = await scene.ask(OK, `${post("Content-Length: 20")}${"x".repeat(20)}`);
  expect(slowly.outcome).toBe("200");
});
