// Clients that leave after each byte of a request and of its response, on a route with all plugins: nothing stays counted or open.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type OriginConnection, type OriginRequest, reply } from "../../support/origin.ts";
import { plugins } from "../../support/plugins.ts";
import { exchange } from "../../support/raw-exchange.ts";
import {
  all,
  type AllPlugins,
  FIELDS,
  JSON_BODY,
  NEVER_STORED,
  startAllPlugins,
  ways,
} from "./all-plugins.ts";

const requests = {
  get: `GET /api/v1/a HTTP/1.1\r\n${FIELDS}\r\n`,
  sized: `POST /api/v1/a HTTP/1.1\r\n${FIELDS}Accept-Encoding: gzip\r\nContent-Type: application/json\r\nContent-Length: ${JSON_BODY.length}\r\n\r\n${JSON_BODY}`,
  chunked: `POST /api/v1/a HTTP/1.1\r\n${FIELDS}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n${JSON_BODY.length.toString(16)}\r\n${JSON_BODY}\r\n0\r\n\r\n`,
} as const;

const PIECES = 12;
/** Whether the target's response comes in pieces. */
let isSlow = false;

async function respond(_: OriginRequest, connection: OriginConnection) {
  if (!isSlow)
    return reply(JSON_BODY, { headers: `Content-Type: application/json\r\n${NEVER_STORED}` });
  connection.write(
    `HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n${NEVER_STORED}Transfer-Encoding: chunked\r\n\r\n`,
  );
  for (let piece = 0; piece < PIECES; piece++) {
    connection.write("a\r\n0123456789\r\n");
    await new Promise(setImmediate);
  }
  return "0\r\n\r\n";
}

let scene: AllPlugins;
beforeAll(async () => {
  scene = await startAllPlugins(respond);
});
afterAll(() => scene.stop());

/** All counts are back to nothing, and the next requests are served. */
async function expectQuiet(): Promise<void> {
  for (const request of Object.values(requests)) await scene.expectQuiet(request);
}

/** Requests whose client left before the end. */
const aborted = () => scene.gateway.log.filter(({ fields }) => fields["status"] === 499).length;

test("all built-in plugins are on, and the route serves", async () => {
  expect(scene.instances.length).toBe(plugins.length);
  expect(scene.instances.length).toBeGreaterThan(30);
  await expectQuiet();
});

/** Of responses the way alone makes a difference, and the length of the request does not. */
const readers = [
  ...ways.map((way) => ["get", way] as const),
  ["sized", "reset"],
  ["chunked", "destroy"],
] as const;
const rows = Object.keys(requests).flatMap((name) =>
  ways.map((way) => [name as keyof typeof requests, way] as const),
);

describe.each([
  ["at once", false],
  ["in pieces", true],
] as const)("a response %s:", (_, slow) => {
  beforeAll(() => {
    isSlow = slow;
  });

  test.each(rows)("a request (%s) that ends after each of its bytes, by %s", async (name, way) => {
    const request = requests[name];
    await all(request.length + 1, (sent) => scene.leave(request, { sent, way }));
    await expectQuiet();
  });

  test.each(readers)(
    "a request (%s) whose response is read up to each of its bytes, by %s",
    async (name, way) => {
      // With its length or in chunks, as it comes: the end of the connection shows the end of a shorter one.
      const request = requests[name].replace("Host:", "Connection: close\r\nHost:");
      const { received } = await exchange(request, { port: scene.gateway.port });
      const before = aborted();
      await all(received.length, (at) => scene.leave(request, { read: at + 1, way }));
      // Behind FIN the client gets the whole response.
      if (slow && name === "get" && way !== "end") expect(aborted()).toBeGreaterThan(before);
      await expectQuiet();
    },
  );
});

test("no plugin has failed meanwhile", () => {
  expect(scene.failures()).toEqual([]);
});
