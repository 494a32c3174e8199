// Targets in processes of Node, killed under load: idempotent requests go elsewhere, and nothing is left behind.
import { afterAll, expect, test } from "bun:test";
import { cleanupsOf } from "../../support/cleanups.ts";
import { startDataPlane } from "../../support/data-plane.ts";
import { eventually } from "../../support/poll.ts";

const stops = cleanupsOf(afterAll);

/** Responds after some milliseconds with the request's body, or with its name. */
const PROGRAM = `
const server = require("node:http2").createServer();
server.on("stream", (stream) => {
  const pieces = [];
  stream.on("error", () => {});
  stream.on("data", (piece) => pieces.push(piece));
  stream.on("end", () => setTimeout(() => {
    if (stream.destroyed) return;
    const body = Buffer.concat([...pieces, Buffer.from(process.argv[1])]);
    // With a length the gateway has nothing sent to the client when half a response is lost, and can retry.
    stream.respond({ ":status": 200, "content-length": body.length });
    stream.end(body);
  }, 5));
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
`;

async function nodeTarget(name: string) {
  const child = Bun.spawn(["node", "-e", PROGRAM, name], { stdout: "pipe", stderr: "inherit" });
  stops.push(() => child.kill(9));
  const { value } = await child.stdout.getReader().read();
  return { port: Number(new TextDecoder().decode(value)), child };
}

test("requests go to the other target when one is killed", async () => {
  const [first, second] = await Promise.all([nodeTarget("first"), nodeTarget("second")]);
  const gateway = await startDataPlane({
    services: [
      {
        name: "app",
        protocol: "h2c",
        retries: { budget_percent: 100 },
        targets: [{ port: first.port }, { port: second.port }],
      },
    ],
    routes: [{ name: "all", service_id: "app" }],
  });
  stops.push(() => gateway.stop());
  const seen = new Map<string, number>();
  let isOver = false;
  const client = async () => {
    while (!isOver) {
      const response = await fetch(gateway.url);
      const result = `${response.status} ${await response.text()}`;
      seen.set(result, (seen.get(result) ?? 0) + 1);
    }
  };
  const clients = Array.from({ length: 20 }, client);
  await eventually(() => (seen.get("200 first") ?? 0) > 50 && (seen.get("200 second") ?? 0) > 50);
  first.child.kill(9);
  await first.child.exited;
  const before = seen.get("200 second") ?? 0;
  await eventually(() => (seen.get("200 second") ?? 0) > before + 200);
  isOver = true;
  await Promise.all(clients);
  expect([...seen.keys()].sort()).toEqual(["200 first", "200 second"]);
  expect(gateway.targets.active(gateway.targets.rowOf("app-0"))).toBe(0);
  expect(gateway.targets.active(gateway.targets.rowOf("app-1"))).toBe(0);
});

test("a large body reaches Node and comes back unchanged", async () => {
  const target = await nodeTarget("!");
  const gateway = await startDataPlane({
    services: [{ name: "app", protocol: "h2c", targets: [{ port: target.port }] }],
    routes: [{ name: "all", service_id: "app" }],
  });
  stops.push(() => gateway.stop());
  const body = new Uint8Array(8_000_000).map((_, index) => index % 251);
  const results = await Promise.all(
    [1, 2, 3].map(async () => {
      const response = await fetch(gateway.url, { method: "POST", body });
      const bytes = Buffer.from(await response.arrayBuffer());
      return bytes.subarray(0, body.length).equals(body) && bytes.subarray(body.length).toString();
    }),
  );
  expect(results).toEqual(["!", "!", "!"]);
});
