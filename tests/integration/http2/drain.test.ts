// How connections of HTTP/2 end: GOAWAY before every end, open streams go on, and no request is lost.
import { afterEach, describe, expect, test } from "bun:test";
import http2 from "node:http2";
import type { ClientStream } from "../../../src/dataplane/server/client-stream.ts";
import { selfSigned } from "../../support/certificate.ts";
import { cleanupsOf } from "../../support/cleanups.ts";
import { type RunningDataPlane, startDataPlane } from "../../support/data-plane.ts";
import { type Field, H2Client } from "../../support/h2-client.ts";
import { eventually } from "../../support/poll.ts";
import { type BareEngine, head, startEngine } from "./bare-engine.ts";
import { RawClient } from "./raw-client.ts";

const GET: readonly Field[] = [
  [":method", "GET"],
  [":scheme", "https"],
  [":path", "/"],
  [":authority", "a.test"],
];
const GOAWAY = 7;
const hello = [Buffer.from("hello")];
const respond = (stream: ClientStream) => stream.respond(head(200), hello, true);

/** Runs at the end of a test, last one first. */
const ends = cleanupsOf(afterEach);

function start(
  serve: (stream: ClientStream) => void,
  bounds: Parameters<typeof startEngine>[1] = {},
): BareEngine {
  const engine = startEngine(serve, bounds);
  ends.push(() => engine.stop());
  return engine;
}

/** The last stream ids of the GOAWAYs so far. */
const lastIds = (client: H2Client): number[] =>
  client.frames.filter(({ type }) => type === GOAWAY).map(({ payload }) => payload.readUInt32BE(0));

describe("going away", () => {
  test("announces itself, serves what arrives meanwhile, and then names the last stream", async () => {
    const held: ClientStream[] = [];
    const { port, engine } = start((stream) => held.push(stream));
    const client = await H2Client.connect({ port });
    const first = client.headers(GET);
    await eventually(() => held.length === 1);
    engine.goAway();
    // Sent before the client can know.
    const second = client.headers(GET);
    await eventually(() => lastIds(client).length === 2);
    expect(lastIds(client)).toEqual([2 ** 31 - 1, second]);
    expect(client.isClosed).toBe(false);
    for (const stream of held) respond(stream);
    await eventually(() => client.seen(first).isComplete);
    expect(client.seen(first).body).toBe("hello");
    await eventually(() => client.seen(second).isComplete);
    expect(client.seen(second).body).toBe("hello");
    // After the last stream.
    await eventually(() => client.isClosed);
    await engine.ended();
  });

  test("closes an idle connection", async () => {
    const { port, engine } = start(respond);
    const client = await H2Client.connect({ port });
    await client.result(client.headers(GET));
    engine.goAway();
    await eventually(() => client.isClosed);
    await engine.ended();
    expect(client.goAway).toBe(0);
  });

  test("holds for connections that begin afterwards", async () => {
    const { port, engine } = start(respond);
    engine.goAway();
    const client = await H2Client.connect({ port });
    const stream = client.headers(GET);
    await eventually(() => client.seen(stream).isComplete);
    expect(client.seen(stream).body).toBe("hello");
    await eventually(() => client.isClosed);
  });

  test("ends although a client never acknowledges the PING", async () => {
    const { port, engine } = start(respond);
    const client = await RawClient.connect(port);
    client.preface();
    await eventually(() => client.received > 0);
    engine.goAway();
    await client.untilClosed();
    await engine.ended();
  });

  test("sends complete responses before it closes", async () => {
    const bulk = Buffer.alloc(4_000_000, "b");
    const { port, engine } = start((stream) => stream.respond(head(200), [bulk], true));
    const session = http2.connect(`http://127.0.0.1:${port}`);
    const stream = session.request({ ":path": "/" });
    let bytes = 0;
    stream.on("data", (piece: Buffer) => {
      bytes += piece.length;
    });
    await new Promise((resolve) => stream.once("response", resolve));
    engine.goAway();
    await Promise.all([engine.close(), new Promise((resolve) => stream.once("close", resolve))]);
    expect(bytes).toBe(bulk.length);
    session.close();
  });
});

describe("max_connection_age", () => {
  test("ends a connection by GOAWAY and lets its streams finish", async () => {
    const held: ClientStream[] = [];
    const { port } = start((stream) => held.push(stream), { maxAge: 500 });
    const client = await H2Client.connect({ port });
    const stream = client.headers(GET);
    await eventually(() => lastIds(client).length === 2);
    expect(lastIds(client)).toEqual([2 ** 31 - 1, stream]);
    respond(held[0] as ClientStream);
    await eventually(() => client.seen(stream).isComplete);
    expect(client.seen(stream).body).toBe("hello");
    await eventually(() => client.isClosed);
  });

  test("of 0 is no limit", async () => {
    const { port } = start(respond, { maxAge: 0 });
    const client = await H2Client.connect({ port });
    // Longer than a tick of the engine.
    const began = performance.now();
    await eventually(() => performance.now() - began > 1200);
    expect((await client.result(client.headers(GET))).body).toBe("hello");
    expect(client.goAway).toBe(null);
    client.close();
  });
});

describe("a listener with HTTP/2", () => {
  const started = async (): Promise<RunningDataPlane> => {
    const origin = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      idleTimeout: 0,
      async fetch(request) {
        if (new URL(request.url).pathname === "/held") {
          held++;
          await release.promise;
        }
        return new Response("hello");
      },
    });
    const plane = await startDataPlane({
      tls: await selfSigned(),
      listener: { engine: "sluice" },
      services: [{ name: "s", targets: [{ port: origin.port ?? 0 }] }],
      routes: [{ name: "r", service_id: "s" }],
    });
    ends.push(
      () => origin.stop(true),
      () => plane.stop(),
    );
    return plane;
  };
  let held = 0;
  let release = Promise.withResolvers<void>();
  const heldPath = GET.map(([name, value]): Field => [name, name === ":path" ? "/held" : value]);

  test("that is bound anew lets open streams finish, and serves new connections at once", async () => {
    release = Promise.withResolvers();
    const plane = await started();
    const client = await H2Client.connect({ port: plane.port, tls: true });
    const stream = client.headers(heldPath);
    await eventually(() => held > 0);
    await plane.apply({ listener: { engine: "bun" } });
    await eventually(() => client.goAway !== null);
    const other = await H2Client.connect({ port: plane.port, tls: true });
    expect((await other.result(other.headers(GET))).body).toBe("hello");
    expect(client.seen(stream).isComplete).toBe(false);
    release.resolve();
    await eventually(() => client.seen(stream).isComplete);
    expect(client.seen(stream).body).toBe("hello");
    await eventually(() => client.isClosed);
    other.close();
  });

  test.each([
    ["max_concurrent_streams", { max_concurrent_streams: 7 }],
    ["max_connection_age", { max_connection_age: 3600 }],
    ["idle_timeout", { idle_timeout: 100 }],
    ["max_connections", { max_connections: 1000 }],
    ["max_header_bytes", { max_header_bytes: 9000 }],
  ])("is not bound anew for another %s", async (_name, change) => {
    const plane = await started();
    const client = await H2Client.connect({ port: plane.port, tls: true });
    expect((await client.result(client.headers(GET))).body).toBe("hello");
    await plane.apply({ listener: { engine: "sluice", ...change } });
    expect((await client.result(client.headers(GET))).body).toBe("hello");
    expect(client.goAway).toBe(null);
    client.close();
  });

  test("loses no request of a client that follows GOAWAY while it is bound anew many times", async () => {
    const plane = await started();
    let isOver = false;
    let requests = 0;
    const problems: string[] = [];
    const run = async (): Promise<void> => {
      let session: http2.ClientHttp2Session | null = null;
      while (!isOver) {
        if (session === null || session.closed || session.destroyed) {
          session = await connected(plane.port);
          if (session === null) continue;
          session.on("error", (error) => problems.push(String(error)));
        }
        const outcome = await oneRequest(session);
        requests++;
        if (outcome !== "200 hello") problems.push(outcome);
      }
      session?.close();
    };
    const clients = [run(), run(), run()];
    for (let round = 0; round < 30; round++) {
      const version = round % 2 === 0 ? ("1.3" as const) : ("1.2" as const);
      await plane.apply({ listener: { engine: "sluice", tls_min_version: version } });
      const before = requests;
      await eventually(() => requests > before + 3);
    }
    isOver = true;
    await Promise.all(clients);
    expect(problems).toEqual([]);
  });
});

/**
 * Null when the connection was reset in its handshake: without `net.ipv4.tcp_migrate_req` the kernel does that to those which wait
 * for the former listener (docs/install.md), and then no request was sent.
 */
async function connected(port: number): Promise<http2.ClientHttp2Session | null> {
  const session = http2.connect(`https://localhost:${port}`, { rejectUnauthorized: false });
  const outcome = Promise.withResolvers<http2.ClientHttp2Session | null>();
  session.once("connect", () => outcome.resolve(session));
  session.once("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "ECONNRESET") outcome.resolve(null);
    else outcome.reject(error);
  });
  return outcome.promise;
}

function oneRequest(session: http2.ClientHttp2Session): Promise<string> {
  return new Promise((resolve) => {
    const stream = session.request({ ":path": "/" });
    let text = "";
    let status = 0;
    stream.on("response", (headers) => {
      status = Number(headers[":status"]);
    });
    stream.on("data", (piece: Buffer) => {
      text += piece.toString();
    });
    stream.on("error", (error) => resolve(String(error)));
    stream.on("close", () => resolve(`${status} ${text}`));
  });
}
