// Responses of one turn of the event loop: how many writes a connection gets for them.
import { headOf } from "../../support/outgoing-head.ts";
import { expect, test } from "bun:test";
import type { Socket } from "bun";
import { fetchHandler } from "../../../src/dataplane/server/bun-stream.ts";
import type { ClientStream } from "../../../src/dataplane/server/client-stream.ts";
import { selfSigned } from "../../support/certificate.ts";
import { H2Client } from "../../support/h2-client.ts";
import { eventually } from "../../support/poll.ts";

const REQUESTS = 8;
const RECORD_HEADER_BYTES = 5;

/** A relay on TCP that counts the TLS records from the server: each write of the server is at least one. */
async function startRelay(port: number) {
  const relay = { port: 0, records: 0, stop: () => {} };
  let pending = Buffer.alloc(0);
  const server = Bun.listen<{ upstream: Promise<Socket> }>({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      open(client) {
        const upstream = Bun.connect({
          hostname: "127.0.0.1",
          port,
          socket: {
            data(_, chunk) {
              pending = Buffer.concat([pending, chunk]);
              while (pending.length >= RECORD_HEADER_BYTES) {
                const end = RECORD_HEADER_BYTES + pending.readUInt16BE(3);
                if (pending.length < end) break;
                pending = pending.subarray(end);
                relay.records++;
              }
              client.write(chunk);
            },
          },
        });
        client.data = { upstream };
      },
      data({ data: { upstream } }, chunk) {
        const bytes = Buffer.from(chunk);
        void upstream.then((socket) => socket.write(bytes));
      },
    },
  });
  relay.port = server.port;
  relay.stop = () => server.stop(true);
  return relay;
}

async function recordsFor(body: Uint8Array): Promise<number> {
  const streams: ClientStream[] = [];
  const options = {
    hostname: "127.0.0.1",
    port: 0,
    http2: true,
    tls: await selfSigned(),
    fetch: fetchHandler((stream) => void streams.push(stream)),
  };
  const server = Bun.serve(options as unknown as Parameters<typeof Bun.serve>[0]);
  const relay = await startRelay(server.port ?? 0);
  const client = await H2Client.connect({ port: relay.port, tls: true });
  const request = (path: string) =>
    client.headers([
      [":method", "GET"],
      [":scheme", "https"],
      [":authority", "h"],
      [":path", path],
    ]);
  const head = headOf({ "content-type": "text/plain" });
  // What begins a connection has been written when the first response is there.
  const first = request("/");
  await eventually(() => streams.length === 1);
  streams.shift()?.respond(head, [body], true);
  await client.result(first);
  const ids = Array.from({ length: REQUESTS }, (_, index) => request(`/${index}`));
  await eventually(() => streams.length === REQUESTS);
  const before = relay.records;
  // Each in an event of its own, as the responses of targets arrive.
  for (const stream of streams) setImmediate(() => stream.respond(head, [body], true));
  const results = await Promise.all(ids.map((id) => client.result(id)));
  const records = relay.records - before;
  for (const { outcome, body: received } of results) {
    expect(outcome).toBe("200");
    expect(received.length).toBe(body.length);
  }
  client.close();
  relay.stop();
  void server.stop(true);
  return records;
}

test("short ones leave an HTTP/2 connection in one write", async () => {
  expect(await recordsFor(Buffer.from("ok"))).toBe(1);
});

test("longer ones are written one by one, while their bodies are in the cache", async () => {
  expect(await recordsFor(Buffer.alloc(16_000, "x"))).toBeGreaterThanOrEqual(REQUESTS);
});
