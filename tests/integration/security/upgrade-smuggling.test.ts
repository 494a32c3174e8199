// Upgrades that are not: a connection with an attempted upgrade never carries a request of another client.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type LenientScene, startLenientScene } from "../../support/lenient-scene.ts";
import { eventually } from "../../support/poll.ts";
import { read } from "../../support/raw-exchange.ts";
import { connectRaw } from "../../support/raw-http.ts";
import { GET, type ScriptedScene, startScriptedScene } from "../../support/scripted-scene.ts";

let scene: ScriptedScene;
let lenient: LenientScene;
beforeAll(async () => {
  scene = await startScriptedScene();
  lenient = await startLenientScene();
});
afterAll(() => Promise.all([scene.stop(), lenient.stop()]));

const FIELDS =
  "Host: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
const HANDSHAKE = `GET /ws HTTP/1.1\r\n${FIELDS}\r\n`;
const SMUGGLED = "GET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n";
const PLAIN = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nplain";

describe("a target that does not upgrade (Envoy CVE-2024-23326)", () => {
  const answers: [answer: string, outcome: string, why: string][] = [
    ["HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "200", "200 is an answer, not an upgrade"],
    [
      "HTTP/1.1 200 OK\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 2\r\n\r\nok",
      "200",
      "200 that talks of an upgrade",
    ],
    ["HTTP/1.1 204 No Content\r\n\r\n", "204", "204"],
    ["HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nok", "403", "a refusal"],
    ["HTTP/1.1 426 Upgrade Required\r\nContent-Length: 2\r\n\r\nok", "426", "a refusal"],
    ["HTTP/1.1 101 Switching Protocols\r\n\r\n", "502", "101 to nothing"],
    [
      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n",
      "502",
      "101 to something else",
    ],
    [
      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
      "502",
      "101 without the proof",
    ],
    [
      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: AAAAAAAAAAAAAAAAAAAAAAAAAAA=\r\n\r\n",
      "502",
      "101 with a wrong proof",
    ],
    [
      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n",
      "502",
      "Connection does not name it",
    ],
    [
      "HTTP/1.0 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n",
      "502",
      "HTTP/1.0 has no upgrade",
    ],
  ];
  test.each(answers)("%j: %s (%s), and the connection is not reused", async (answer, outcome) => {
    scene.origin.answer = ({ target }) => (target === "/ws" ? answer : PLAIN);
    const client = await connectRaw({ port: scene.port });
    client.write(HANDSHAKE);
    await client.until((received) => read(received, false, ["GET"]).outcome === outcome);
    client.close();
    for (let i = 0; i < 3; i++) expect((await scene.ask(PLAIN)).answers[0]?.body).toBe("plain");
    const asked = scene.origin.connections.filter(({ received }) => received.includes("GET /ws"));
    expect(asked.length).toBeGreaterThan(0);
    await eventually(() => asked.every(({ isClosed }) => isClosed));
    for (const { received } of asked)
      expect(received.split(" HTTP/1.1\r\n").length - 1).toBeLessThanOrEqual(2);
    for (const { received } of asked)
      expect(received.slice(received.indexOf("GET /ws"))).not.toContain("GET / ");
  });

  test("bytes that a client sends before the upgrade never become a request", async () => {
    for (const answer of [
      "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
      "HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n",
    ]) {
      scene.origin.answer = ({ target }) => (target === "/ws" ? answer : PLAIN);
      const client = await connectRaw({ port: scene.port });
      client.write(`${HANDSHAKE}${SMUGGLED}`);
      await client.untilClosed();
      expect((await scene.ask(PLAIN)).answers[0]?.body).toBe("plain");
      for (const { received } of scene.origin.connections)
        expect(received).not.toContain("smuggled");
    }
  });
});

describe("an upgrade with a body (nghttpx CVE-2026-58055)", () => {
  const lines: [request: string, outcome: string, lines: string[], why: string][] = [
    [
      `GET /ws HTTP/1.1\r\n${FIELDS}Content-Length: ${SMUGGLED.length}\r\n\r\n${SMUGGLED}`,
      "400",
      [],
      "a length",
    ],
    [
      `GET /ws HTTP/1.1\r\n${FIELDS}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
      "400",
      [],
      "chunked",
    ],
    [
      `POST /ws HTTP/1.1\r\n${FIELDS}Content-Length: ${SMUGGLED.length}\r\n\r\n${SMUGGLED}`,
      "200",
      ["POST /ws"],
      "POST is no handshake: a plain request with a body",
    ],
    [
      `POST /ws HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: ${SMUGGLED.length}\r\n\r\n${SMUGGLED}`,
      "200",
      ["POST /ws"],
      "h2c is never spoken",
    ],
    [
      `PUT /ws HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: TLS/1.0\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n`,
      "200",
      ["PUT /ws"],
      "TLS is never spoken",
    ],
  ];
  test.each(lines)("%j: %s", async (request, outcome, expected) => {
    const seen = await lenient.probe(request);
    expect(seen).toMatchObject({ outcome, lines: expected, ambiguous: [], canary: "200 /canary" });
    for (const { header } of seen.executed) {
      expect(header("upgrade")).toBeNull();
      expect(header("connection")).toBeNull();
    }
  });
});

describe("an upgrade to anything but a WebSocket is a plain request", () => {
  test.each([
    "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA",
    "Connection: Upgrade\r\nUpgrade: h2c",
    "Connection: Upgrade\r\nUpgrade: TLS/1.0, HTTP/1.1",
    "Connection: Upgrade\r\nUpgrade: h2c, websocket",
    "Connection: Upgrade\r\nUpgrade:",
    "Upgrade: websocket",
    "Connection: keep-alive\r\nUpgrade: websocket",
  ])("%j", async (fields) => {
    const seen = await lenient.probe(`GET /x HTTP/1.1\r\nHost: h\r\n${fields}\r\n\r\n`);
    expect(seen).toMatchObject({
      outcome: "200",
      lines: ["GET /x"],
      ambiguous: [],
      canary: "200 /canary",
    });
    for (const name of ["upgrade", "connection", "http2-settings"])
      expect(seen.executed[0]?.header(name)).toBeNull();
  });

  test("a target that switches all the same gets no second request, and the client 502", async () => {
    const served = await scene.askTwice(
      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n",
      GET.replace("Host: h\r\n", "Host: h\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n"),
    );
    expect(served).toMatchObject({ outcome: "502", connections: 1 });
  });
});
