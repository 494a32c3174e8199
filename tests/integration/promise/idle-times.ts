// What takes longer than an idle connection may last, as cases for any gateway; knows not how the gateway was started.
import { expect } from "bun:test";
import type { SlowClient, SlowConnection } from "./slow-clients.ts";

export interface IdleScene {
  readonly client: SlowClient;
  readonly port: number;
  /** The listener's idle time-out. */
  readonly idleMs: number;
}

/** Bun looks at idle connections every four seconds, and may need two looks. */
const GRANULARITY_MS = 8000;

export interface SlowOrigin {
  readonly port: number;
  stop(): void;
}

/** Counts what is uploaded to /upload; answers /late and the second event of /events after the milliseconds in the query. */
export function startSlowOrigin(): SlowOrigin {
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    async fetch(request) {
      const { pathname, searchParams } = new URL(request.url);
      const pauseMs = Number(searchParams.get("ms"));
      if (pathname === "/upload") return new Response(await digest(request.body));
      if (pathname === "/events")
        return new Response(twoEvents(pauseMs), {
          headers: { "content-type": "text/event-stream" },
        });
      await Bun.sleep(pauseMs);
      return new Response("here");
    },
  });
  return { port: server.port!, stop: () => void server.stop(true) };
}

async function digest(body: ReadableStream<Uint8Array> | null): Promise<string> {
  const hash = new Bun.CryptoHasher("sha256");
  let bytes = 0;
  for await (const chunk of body ?? []) {
    bytes += chunk.length;
    hash.update(chunk);
  }
  return `${bytes} ${hash.digest("hex")}`;
}

function twoEvents(pauseMs: number): ReadableStream {
  return new ReadableStream({
    async start(controller) {
      controller.enqueue("data: first\n\n");
      await Bun.sleep(pauseMs);
      controller.enqueue("data: second\n\n");
      controller.close();
    },
  });
}

/** An upload that never stops for long and lasts longer than the idle time-out. */
export async function uploadsFor(
  { client, port }: IdleScene,
  upload: { readonly forMs: number; readonly bytesEachSecond: number },
): Promise<SlowConnection> {
  const everyMs = 250;
  const count = Math.ceil(upload.forMs / everyMs);
  const chunk = Buffer.alloc(Math.round((upload.bytesEachSecond * everyMs) / 1000), "slow");
  const sent = new Bun.CryptoHasher("sha256");
  for (let i = 0; i < count; i++) sent.update(chunk);
  async function* chunks() {
    for (let i = 0; i < count; i++) {
      yield chunk;
      await Bun.sleep(everyMs);
    }
  }
  const bytes = count * chunk.length;
  const connection = client.open(port);
  const answer = await connection.ask({ path: "/upload", upload: { bytes, chunks: chunks() } });
  expect(answer).toEqual({ status: 200, body: `${bytes} ${sent.digest("hex")}` });
  return connection;
}

/** An answer whose first byte takes longer than the idle time-out. */
export async function waitsFor(
  { client, port }: IdleScene,
  pauseMs: number,
): Promise<SlowConnection> {
  const connection = client.open(port);
  const answer = await connection.ask({ path: `/late?ms=${pauseMs}` });
  expect(answer).toEqual({ status: 200, body: "here" });
  return connection;
}

/** An event stream that is silent for longer than the idle time-out. */
export async function listensFor(
  { client, port }: IdleScene,
  pauseMs: number,
): Promise<SlowConnection> {
  const connection = client.open(port);
  const begin = performance.now();
  let firstAfter = Number.POSITIVE_INFINITY;
  const { status, body } = await connection.ask({
    path: `/events?ms=${pauseMs}`,
    onBody: (text) => {
      if (text.includes("first")) firstAfter = Math.min(firstAfter, performance.now() - begin);
    },
  });
  expect(status).toBe(200);
  expect(body).toContain("data: first");
  expect(body).toContain("data: second");
  // It was passed on when it came, not with the second one.
  expect(firstAfter).toBeLessThan(pauseMs / 2);
  return connection;
}

/** A connection that was slow is as good as any: it takes another request, and is closed when it has been idle. */
export async function isUsedAndThenClosed(
  { idleMs }: IdleScene,
  connection: SlowConnection,
): Promise<void> {
  expect(await connection.ask({ path: "/late?ms=0" })).toEqual({ status: 200, body: "here" });
  await closesIdle(connection, idleMs);
}

/** Fails when an idle connection stays open for longer than it may. */
export async function closesIdle(connection: SlowConnection, idleMs: number): Promise<void> {
  const limit = Promise.withResolvers<string>();
  const timer = setTimeout(() => limit.resolve("open"), idleMs + GRANULARITY_MS);
  const outcome = await Promise.race([connection.closed.then(() => "closed"), limit.promise]);
  clearTimeout(timer);
  connection.close();
  expect(outcome, "an idle connection").toBe("closed");
}
