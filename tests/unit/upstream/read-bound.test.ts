// What one read of a pooled connection brings, after a client was slow and for the next exchange.
import { afterAll, expect, test } from "bun:test";
import { createServer, type Server, type Socket } from "node:net";
import { FixedAddress } from "../../../src/dataplane/names/addresses.ts";
import type { UpstreamConnection } from "../../../src/dataplane/upstream/connection.ts";
import { ConnectionPool } from "../../../src/dataplane/upstream/pool.ts";
import { eventually } from "../../support/poll.ts";

const PIECE = Buffer.alloc(1_000_000);
/** What a bound read brings at most, twice what the system is asked for. */
const BOUND = 131_072;

const peers: Socket[] = [];
const target: Server = createServer((socket) => peers.push(socket.on("error", () => {})));
afterAll(() => {
  for (const peer of peers) peer.destroy();
  target.close();
});

/** Bytes of the longest read of what arrives while the connection does not read. */
async function longestRead(connection: UpstreamConnection): Promise<number> {
  let [longest, left] = [0, PIECE.length];
  const arrived = Promise.withResolvers<void>();
  connection.handler = {
    connected() {},
    received(chunk) {
      longest = Math.max(longest, chunk.length);
      left -= chunk.length;
      if (left === 0) arrived.resolve();
    },
    drained() {},
    ended: () => arrived.reject(new Error("the connection ended")),
  };
  connection.pause();
  peers[0]?.write(PIECE);
  await eventually(() => peers[0]?.writableLength === 0);
  connection.resume();
  await arrived.promise;
  connection.handler = null;
  return longest;
}

test("a connection whose client was slow reads as much as before for the next one", async () => {
  await new Promise<void>((resolve) => target.listen(0, "127.0.0.1", resolve));
  const { port } = target.address() as { port: number };
  const addresses = new FixedAddress({ host: "127.0.0.1" });
  const pool = new ConnectionPool(
    { hostname: "127.0.0.1", port, addresses, tls: null },
    { size: 8, idleTimeout: 60_000, maxRequests: 0 },
  );
  const connection = pool.acquire();
  await eventually(() => connection.isOpen && peers.length === 1);
  connection.boundReads();
  expect(await longestRead(connection)).toBeLessThanOrEqual(BOUND);
  pool.release(connection, 0);
  expect(pool.acquire()).toBe(connection);
  // The system opens its window a step at a time.
  await eventually(async () => (await longestRead(connection)) > BOUND);
  pool.close();
  connection.destroy();
});
