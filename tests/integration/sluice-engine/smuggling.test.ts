// Smuggling on our own engine: counters that overflow, upgrades that are none, HTTP/2 where none is spoken, characters that narrow.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  type LenientScene,
  refused,
  served,
  startLenientScene,
} from "../../support/lenient-scene.ts";
import { connectRaw } from "../../support/raw-http.ts";

let scene: LenientScene;
beforeAll(async () => {
  scene = await startLenientScene({ listener: { engine: "sluice", max_header_bytes: 262_144 } });
});
afterAll(() => scene.stop());

const SMUGGLED = "GET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n";
const post = (fields: string, body: string) =>
  `POST /a HTTP/1.1\r\nHost: h\r\n${fields}\r\n\r\n${body}`;

describe("a name as long as a counter of others holds is a name (HAProxy CVE-2021-40346)", () => {
  // One byte for the length of a name, two for it, and what is left of either.
  const lengths = [255, 256, 257, 270, 271, 4096, 65_535, 65_536, 65_550];
  test.each(
    ["Content-Length0", "Transfer-Encoding0"].flatMap((begin) =>
      lengths.map((length) => [begin, length] as const),
    ),
  )("%s… of %d bytes", async (begin, length) => {
    const name = begin.padEnd(length, "a");
    const seen = await scene.probe(
      post(`${name}:\r\nContent-Length: ${SMUGGLED.length}`, SMUGGLED),
    );
    expect(seen).toMatchObject(served(["POST /a"]));
    expect(seen.executed[0]?.body).toBe(SMUGGLED);
    const framing = seen.executed[0]?.fields.filter(([field]) =>
      /^(?:content-length|transfer-encoding)$/.test(field),
    );
    expect(framing).toEqual([["content-length", String(SMUGGLED.length)]]);
  });

  test.each([65_535, 65_536, 65_600])("a value of %d bytes", async (length) => {
    const seen = await scene.probe(
      post(`X: ${"v".repeat(length)}\r\nContent-Length: 2`, `ab${SMUGGLED}`),
      { answers: 2 },
    );
    // What follows the body is a request of its own, and no other.
    expect(seen).toMatchObject(served(["POST /a", "GET /smuggled"]));
    expect(seen.executed[0]?.header("x")).toHaveLength(length);
  });
});

describe("a framing field that two parsers read differently is refused", () => {
  const rows: [fields: string, why: string][] = [
    ["Transfer-Encoding: chunked\r\n , identity", "a list over two lines (node CVE-2022-32215)"],
    ["Transfer-Encoding: chunked\r\n\t, chunked", "the same with a tab"],
    ["Transfer-Encoding: chunkedfoo\r\nContent-Length: 2", "a longer word (node CVE-2022-32213)"],
    ["Dummy: x\rTransfer-Encoding: chunked", "a bare CR (node CVE-2022-32214)"],
    ["Dummy: x\nContent-Length: 2", "a bare LF (node CVE-2022-32214)"],
    [": x\r\nContent-Length: 36", "an empty name (HAProxy CVE-2023-25725)"],
    ["Content-Length:\r\nContent-Length: 36", "an empty length first (HAProxy CVE-2023-40225)"],
    ["Content-Length:", "an empty length (HAProxy CVE-2023-40225)"],
    ["Content-Length: 36\0", "NUL behind the length"],
    ["\0Content-Length: 36", "NUL before the name"],
    ["Content-Length\0: 36", "NUL behind the name"],
    ["Content-Length: 3 6", "a space in the length"],
  ];
  test.each(rows)("%j: %s", async (fields) => {
    expect(await scene.probe(post(fields, SMUGGLED))).toMatchObject(refused("400"));
  });
});

describe("an upgrade that is none", () => {
  const handshake = (fields: string) =>
    `GET /ws HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n${fields}\r\n`;
  const rows: [why: string, fields: string, body: string][] = [
    ["with a length (nghttpx CVE-2026-58055)", `Content-Length: ${SMUGGLED.length}\r\n`, SMUGGLED],
    ["with chunks", "Transfer-Encoding: chunked\r\n", `0\r\n\r\n${SMUGGLED}`],
    ["with both", `Content-Length: 5\r\nTransfer-Encoding: chunked\r\n`, `0\r\n\r\n${SMUGGLED}`],
  ];
  test.each(rows)("%s: the bytes behind it reach no target", async (_, fields, body) => {
    expect(await scene.probe(`${handshake(fields)}${body}`)).toMatchObject(refused("400"));
  });

  test("to a target that responds with 200: what follows is no request (Envoy CVE-2024-23326)", async () => {
    scene.origin.forget();
    const client = await connectRaw({ port: scene.gateway.port });
    client.write(`${handshake("")}${SMUGGLED}`);
    expect(await client.untilClosed()).toStartWith("HTTP/1.1 200 ");
    expect(scene.origin.lines).toEqual(["GET /ws"]);
    expect(scene.origin.ambiguous).toEqual([]);
  });
});

describe("HTTP/2 in cleartext", () => {
  const PREFACE = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  /** SETTINGS, then HEADERS of `GET /smuggled` (RFC 9113 section 6.2, with literals of RFC 7541). */
  const FRAMES = "\0\0\0\x04\0\0\0\0\0" + "\0\0\x03\x01\x05\0\0\0\x01\x82\x84\x86";

  test.each([PREFACE, `${PREFACE}${FRAMES}`, `${PREFACE}${SMUGGLED}`])(
    "where it is off, its preface is refused, with all that follows: %j",
    async (bytes) => {
      const without = await startLenientScene({ listener: { engine: "sluice", http2: false } });
      const seen = await without.probe(bytes, { answers: 2 });
      expect(seen).toMatchObject({ ...refused("505"), isClosed: true });
      await without.stop();
    },
  );

  test("no HTTP/1.1 follows its preface", async () => {
    const seen = await scene.probe(`${PREFACE}${SMUGGLED}`, { answers: 2 });
    expect(seen).toMatchObject({ lines: [], ambiguous: [], canary: "200 /canary", isClosed: true });
  });

  test.each([`\r\n${PREFACE}`, `${SMUGGLED}${PREFACE}`])(
    "it begins with nothing else: %j",
    async (bytes) => {
      const seen = await scene.probe(`${bytes}${FRAMES}`, { answers: 2 });
      expect(seen.received).toContain("HTTP/1.1 505 ");
    },
  );

  test.each(["h2c", "h2c, websocket", "HTTP/2.0"])(
    "an upgrade to %s is a request as any other, whose bytes behind it are another one",
    async (protocol) => {
      const seen = await scene.probe(
        `GET /a HTTP/1.1\r\nHost: h\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: ${protocol}\r\nHTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA\r\n\r\n${PREFACE}${FRAMES}`,
        { answers: 2 },
      );
      expect(seen.lines).toEqual(["GET /a"]);
      expect(seen).toMatchObject({ ambiguous: [], canary: "200 /canary", isClosed: true });
      expect(seen.executed[0]?.header("upgrade")).toBeNull();
      expect(seen.executed[0]?.header("http2-settings")).toBeNull();
    },
  );
});

describe("a character that narrows to CR or LF makes no line", () => {
  // Written as latin1, U+010D and U+010A would be bytes 13 and 10.
  const value = "a\u010d\u010aX-Evil: 1";

  test.each([
    ["request", "400"],
    ["response", "200"],
  ] as const)("in a field of a %s: %s", async (side, outcome) => {
    const plugin = {
      name: "transform",
      config: { [side]: { headers: { set: { "X-Own": value } } } },
    };
    await scene.gateway.apply({ plugins: [plugin] });
    const seen = await scene.probe("GET /a HTTP/1.1\r\nHost: h\r\n\r\n");
    expect(seen.outcome).toBe(outcome);
    expect(seen.received).not.toMatch(/\n *x-evil/i);
    for (const received of scene.origin.received) expect(received).not.toMatch(/\n *x-evil/i);
    await scene.gateway.apply({ removedPlugins: ["transform"] });
  });
});
