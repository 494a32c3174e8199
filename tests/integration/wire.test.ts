// The connection that tests of fleets delay, hold and cut.
import { afterEach, expect, test } from "bun:test";
import { connect, createServer, type Socket } from "node:net";
import { cleanupsOf } from "../support/cleanups.ts";
import { eventually } from "../support/poll.ts";
import { Wire } from "../support/wire.ts";

const cleanups = cleanupsOf(afterEach);

/** A client of a server by way of a wire, and what each of the two has got. */
async function scene() {
  const got = { server: "", client: "" };
  const accepted = Promise.withResolvers<Socket>();
  const server = createServer((socket) => {
    socket.on("data", (piece) => (got.server += piece));
    socket.on("error", () => undefined);
    accepted.resolve(socket);
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  cleanups.push(() => server.close());
  const wire = await Wire.open({ target: (server.address() as { port: number }).port });
  cleanups.push(() => wire.close());
  const client = connect({ port: wire.port, host: "127.0.0.1" });
  client.on("data", (piece) => (got.client += piece));
  client.on("error", () => undefined);
  return { got, wire, client, server: await accepted.promise };
}

test("bytes stay in order when a delay ends before those that it delays have arrived", async () => {
  const { got, wire, client } = await scene();
  wire.delayMs = 300;
  client.write("a");
  client.write("b");
  await eventually(() => client.bytesWritten === 2);
  // Should the wire be slower to read it, this test says less, and does not fail.
  await Bun.sleep(50);
  wire.delayMs = 0;
  client.write("c");
  await eventually(() => got.server.length === 3);
  expect(got.server).toBe("abc");
});

test("one direction holds what it has until it is healed, and the other one goes on", async () => {
  const { got, wire, client, server } = await scene();
  wire.hold("to server");
  client.write("question");
  server.write("news");
  await eventually(() => got.client === "news");
  expect(got.server).toBe("");
  wire.heal();
  await eventually(() => got.server === "question");
});
