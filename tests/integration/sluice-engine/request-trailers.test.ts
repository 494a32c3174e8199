// Trailers of requests: which reach the target, and which a client could only use to speak in the gateway's name.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { type LenientScene, startLenientScene } from "../../support/lenient-scene.ts";
import { sendRaw } from "../../support/raw-http.ts";

let scene: LenientScene;
beforeAll(async () => {
  scene = await startLenientScene({ listener: { engine: "sluice" } });
});
afterAll(() => scene.stop());

/** The status for the client, and what the target gets after the last chunk. */
async function trailed(trailers: string, fields = "Connection: close\r\n") {
  const head = `POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n${fields}\r\n`;
  const port = scene.gateway.port;
  const answer = await sendRaw(`${head}3\r\nabc\r\n0\r\n${trailers}\r\n`, { port });
  const received = scene.origin.received.join("");
  return {
    status: answer.slice(9, 12),
    seen: received.slice(received.lastIndexOf("\r\n0\r\n") + 5),
  };
}

test.each([
  ["X-Checksum: 1\r\n", "X-Checksum: 1\r\n"],
  ["x-a: 1\r\nX-A: 2\r\n", "x-a: 1\r\nX-A: 2\r\n"],
  ["X-Empty:\r\n", "X-Empty: \r\n"],
  ["X-Long: " + "v".repeat(4000) + "\r\n", "X-Long: " + "v".repeat(4000) + "\r\n"],
  // Of those the target believes the gateway alone.
  ["X-Real-IP: 10.0.0.1\r\nX-Kept: 1\r\n", "X-Kept: 1\r\n"],
  ["X-Forwarded-For: 10.0.0.1\r\n", ""],
  ["X_Forwarded_For: 10.0.0.1\r\n", ""],
  ["X-Forwarded-User: admin\r\n", ""],
  ["Forwarded: for=10.0.0.1\r\n", ""],
  ["Via: 1.1 other\r\nCDN-Loop: other\r\n", ""],
  ["X-Consumer-Username: admin\r\n", ""],
  ["Client-Cert: :MII=:\r\n", ""],
  ["X-Request-Id: other\r\n", ""],
  // RFC 9110 section 6.5.1.
  ["Authorization: Basic YTpi\r\nCookie: a=b\r\n", ""],
  ["Content-Type: text/html\r\nIf-Match: x\r\n", ""],
])("of %j the target gets %j", async (trailers, expected) => {
  expect(await trailed(trailers)).toEqual({ status: "200", seen: `${expected}\r\n` });
});

test("a trailer that Connection names is of the connection", async () => {
  const { seen } = await trailed("X-Hop: 1\r\nX-Kept: 1\r\n", "Connection: x-hop, close\r\n");
  expect(seen).toBe("X-Kept: 1\r\n\r\n");
});

test.each([
  "Host: other\r\n",
  "Content-Length: 3\r\n",
  "Transfer-Encoding: chunked\r\n",
  "X Y: 1\r\n",
  "X-Long: " + "v".repeat(4097) + "\r\n",
])("a request with the trailer %j is refused", async (trailers) => {
  expect((await trailed(trailers)).status).toBe("400");
});
