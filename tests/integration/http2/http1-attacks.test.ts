// Attacks on our own engine over HTTP/1.1 that Bun.serve's tests do not have: pipelining, memory, responses that could be split.
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import type { ClientStream } from "../../../src/dataplane/server/client-stream.ts";
import { startDataPlane } from "../../support/data-plane.ts";
import { eventually } from "../../support/poll.ts";
import { exchange, read } from "../../support/raw-exchange.ts";
import { connectRaw, sendRaw } from "../../support/raw-http.ts";
import { type ScriptedScene, startScriptedScene } from "../../support/scripted-scene.ts";
import { type BareEngine, head, startEngine } from "./bare-engine.ts";

let scene: ScriptedScene;
beforeAll(async () => {
  scene = await startScriptedScene({
    service: { response_buffer_bytes: 100 },
    route: { paths: [{ type: "prefix", value: "/" }] },
    listener: { engine: "sluice", max_header_bytes: 16_384 },
    settings: { limits: { body_read_timeout: 300 } },
  });
});
afterAll(() => scene.stop());

const engines: BareEngine[] = [];
afterEach(() => Promise.all(engines.splice(0).map((engine) => engine.stop())));
function serving(serve: (stream: ClientStream) => void, bounds = {}): number {
  const engine = startEngine(serve, bounds);
  engines.push(engine);
  return engine.port;
}

const get = (target = "/", fields = "", version = "1.1") =>
  `GET ${target} HTTP/${version}\r\nHost: h\r\n${fields}\r\n`;
const post = (fields: string, body: string) => `POST / HTTP/1.1\r\nHost: h\r\n${fields}\r\n${body}`;
const HANDSHAKE =
  "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const NEXT = get("/next");

describe("a request is refused though Node's parser accepts it", () => {
  test.each([
    ["GET / RTSP/1.0", "RTSP, read as HTTP/1.0"],
    ["POST / RTSP/1.1", "RTSP, read as HTTP/1.1"],
    ["PLAY / RTSP/1.0", "a method of RTSP"],
    ["SOURCE / ICE/1.0", "ICE"],
    ["GET  / HTTP/1.1", "two spaces"],
    ["GET /  HTTP/1.1", "two spaces"],
    ["\nGET / HTTP/1.1", "a bare LF before it"],
    ["\r\rGET / HTTP/1.1", "bare CRs before it"],
  ])("%j: %s", async (line) => {
    const before = scene.origin.requests.length;
    // In one packet, and byte by byte: what is refused must not depend on it.
    for (const size of [1000, 1]) {
      scene.origin.answer = OK;
      const client = await connectRaw({ port: scene.port });
      const bytes = `${line}\r\nHost: h\r\n\r\n`;
      for (let at = 0; at < bytes.length && !client.isClosed; at += size) {
        client.write(bytes.slice(at, at + size));
        await Bun.sleep(0);
      }
      expect(read(await client.untilClosed(), true).outcome).toBe("400");
    }
    expect(scene.origin.requests.length).toBe(before);
  });
});

test("a request may arrive in pieces of any size", async () => {
  scene.origin.answer = OK;
  const bytes = post("Transfer-Encoding: chunked\r\n", "2;x=y\r\nhi\r\n0\r\nX-T: 1\r\n\r\n");
  for (const size of [1, 2, 3, 7]) {
    const client = await connectRaw({ port: scene.port });
    const both = get() + bytes + post("Content-Length: 3\r\n", "abc");
    for (let at = 0; at < both.length; at += size) {
      client.write(both.slice(at, at + size));
      await Bun.sleep(0);
    }
    await client.until((received) => read(received, false).answers.length === 3);
    client.close();
    expect(read(client.received, false).outcome).toBe("200 200 200");
    const [sent, next] = scene.origin.requests.slice(-2);
    expect(sent?.body.replace(/\d?\r\n/g, "")).toBe("hiX-T: ");
    expect(next?.body).toBe("abc");
  }
});

describe("pipelined behind", () => {
  test.each([
    ["HEAD", "HEAD / HTTP/1.1\r\nHost: h\r\n\r\n", OK, "200 200"],
    ["a 204", get(), "HTTP/1.1 204 No Content\r\n\r\n", "204 200"],
    ["a 304", get(), "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", "304 200"],
    [
      "a streamed response",
      get(),
      `HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\n${"GET ".repeat(2250)}`,
      "200 200",
    ],
    ["a chunked response", get(), "HTTP/1.1 200 OK\r\n\r\nx", "200 200"],
    [
      "a request of HTTP/1.0 that keeps the connection",
      get("/", "Connection: keep-alive\r\n", "1.0"),
      OK,
      "200 200",
    ],
  ])("%s: the next request is served", async (_, first, answer, outcome) => {
    scene.origin.answer = ({ target, method }) =>
      target === "/next" ? OK : method === "HEAD" ? answer.slice(0, -2) : answer;
    if (!answer.includes("\r\n\r\nx")) {
      const methods = [first.slice(0, first.indexOf(" "))];
      const seen = await exchange(first + NEXT, { port: scene.port, methods, answers: 2 });
      expect([seen.outcome, seen.rest]).toEqual([outcome, ""]);
      return;
    }
    scene.origin.answer = ({ target }, connection) => {
      if (target === "/next") return OK;
      connection.write(answer);
      connection.end();
      return null;
    };
    const seen = await exchange(first + NEXT, { port: scene.port, answers: 2 });
    expect(seen.outcome).toBe(outcome);
  });

  test.each([
    ["a refused request", get("/#x"), "400"],
    ["a request whose target is not valid", get("/%zz"), "400"],
    ["Connection: close", get("/", "Connection: close\r\n"), "200"],
    ["a request of HTTP/1.0", get("/", "", "1.0"), "200"],
    ["CONNECT", "CONNECT h:80 HTTP/1.1\r\nHost: h\r\n\r\n", "400"],
    ["an upgrade that the target declines", get("/", HANDSHAKE), "200"],
    ["an upgrade that never passes", get("/", "Connection: upgrade\r\nUpgrade: h2c\r\n"), "200"],
    [
      "an upgrade with a body",
      post("Connection: upgrade\r\nUpgrade: websocket\r\nContent-Length: 3\r\n", "abc"),
      "200",
    ],
    [
      "a body that does not wait for 100",
      post("Expect: 100-continue\r\nContent-Length: 2000000\r\n", ""),
      "413",
    ],
    ["a malformed chunk", post("Transfer-Encoding: chunked\r\n", "zz\r\n"), "400"],
    [
      "a chunk that is too long",
      post("Transfer-Encoding: chunked\r\n", "1\r\nab\r\n0\r\n\r\n"),
      "400",
    ],
    [
      "a chunk extension that does not end",
      post("Transfer-Encoding: chunked\r\n", `1;${"x".repeat(5000)}`),
      "400",
    ],
    ["a head over 16 KB", get("/", `X: ${"x".repeat(17_000)}\r\n`), "431"],
    ["a request line over 16 KB", get(`/${"x".repeat(17_000)}`), "414"],
  ])("%s: it is not", async (_, first, outcome) => {
    scene.origin.answer = OK;
    const limited = first.includes("2000000");
    const other = limited
      ? await startScriptedScene({ listener: { engine: "sluice", max_body_bytes: 1000 } })
      : scene;
    const before = other.origin.requests.length;
    const seen = await exchange(first + NEXT, { port: other.port, answers: 3 });
    expect([seen.outcome, seen.isClosed, seen.rest]).toEqual([outcome, true, ""]);
    const after = other.origin.requests.slice(before);
    expect(after.map(({ target }) => target)).not.toContain("/next");
    if (limited) await other.stop();
  });

  test("a response that comes before the body: the body is dropped, the next request is served", async () => {
    const plane = await startDataPlane({ listener: { engine: "sluice" } });
    for (const fields of ["Content-Length: 5\r\n", "Transfer-Encoding: chunked\r\n"]) {
      const body = fields.startsWith("C") ? "hello" : "5\r\nhello\r\n0\r\n\r\n";
      const client = await connectRaw({ port: plane.port });
      client.write(post(fields, ""));
      await client.until((received) => read(received, false).outcome === "404");
      client.write(body + NEXT);
      await client.until((received) => read(received, false).outcome === "404 404");
      client.close();
    }
    await plane.stop();
  });
});

describe("many requests in one packet", () => {
  test("are answered in order, without recursion", async () => {
    let count = 0;
    const port = serving((stream) => {
      count++;
      stream.respond(head(200), [Buffer.from(stream.url.slice(1))], false);
    });
    const total = 20_000;
    const client = await connectRaw({ port });
    client.write(Array.from({ length: total }, (_, index) => get(`/${index}`)).join(""));
    await client.until((received) => received.endsWith(`\r\n\r\n${total - 1}`));
    client.close();
    expect(count).toBe(total);
    const bodies = [...client.received.matchAll(/\r\n\r\n(\d+)/g)].map(([, body]) => Number(body));
    expect(bodies).toEqual(Array.from({ length: total }, (_, index) => index));
  });

  test("of a client that reads nothing are served until its buffers are full", async () => {
    let count = 0;
    const piece = Buffer.alloc(20_000, 97);
    const port = serving((stream) => {
      count++;
      stream.respond(head(200), [piece], true);
    });
    const client = await connectRaw({ port });
    client.pause();
    client.write(get().repeat(20_000));
    let seen = -1;
    // Until it stands still.
    await eventually(async () => {
      const before = seen;
      seen = count;
      await Bun.sleep(50);
      return count > 0 && count === before;
    });
    // 20 MB; the kernel's buffers have a few.
    expect(count).toBeLessThan(1000);
    client.resume();
    await client.until((received) => received.length > 30_000_000);
    client.close();
  });
});

test("a malformed body gets 400 though the target has its beginning, and the target never sees it complete", async () => {
  const before = scene.origin.requests.length;
  const client = await connectRaw({ port: scene.port });
  client.write(post("Transfer-Encoding: chunked\r\n", "2\r\nab\r\n"));
  // On a new connection or on a kept one.
  await eventually(
    () =>
      scene.origin.connections.some(({ received }) => received.includes("\r\nab")) ||
      client.isClosed,
  );
  client.write("xyz\r\n");
  expect(read(await client.untilClosed(), true).outcome).toBe("400");
  expect(scene.origin.requests.length).toBe(before);
});

test("a body that stops gets 408", async () => {
  const { outcome, isClosed } = await exchange(post("Content-Length: 20\r\n", "ab"), {
    port: scene.port,
    answers: 2,
  });
  expect([outcome, isClosed]).toEqual(["408", true]);
});

test("the rest of a long body after the response ends the connection, and is not kept", async () => {
  let requests = 0;
  const port = serving((stream) => {
    requests++;
    stream.respond(head(404), [], false);
  });
  const client = await connectRaw({ port });
  client.write(post("Content-Length: 100000000\r\n", ""));
  await client.until("404");
  client.write(Buffer.alloc(10_000_000, 97));
  await client.untilClosed();
  expect(requests).toBe(1);
});

describe("no field splits the response", () => {
  const evil: [string, string][] = [
    ["x-a", "1\r\nevil: 1"],
    ["x-b", "1\u010d\u010aevil: 1"],
    ["x-c", "1\0"],
    ["evil:", "1"],
    ["x\r\nevil", "1"],
    ["x\u010aevil", "1"],
    ["", "evil"],
    ["x-good", "good"],
  ];
  test("of an interim response, of trailers", async () => {
    const port = serving((stream) => {
      stream.sendInterim(103, evil);
      stream.sendInterim(101, evil);
      stream.sendInterim(200, evil);
      stream.setTrailers([...evil, ["content-length", "7"], ["transfer-encoding", "chunked"]]);
      const writer = stream.start(head(200), { wanted() {}, cancelled() {} }, false);
      stream.sendInterim(103, evil);
      writer.write(Buffer.from("hi"));
      writer.end(() => {});
    });
    const received = await sendRaw(get("/", "TE: trailers\r\nConnection: TE, close\r\n"), { port });
    expect(received).not.toContain("evil");
    expect(received).not.toContain("content-length");
    expect(received.match(/x-good: good\r\n/g)?.length).toBe(2);
    expect(read(received, true)).toMatchObject({ interim: [103], outcome: "200" });
  });
});

describe("a response whose length is not the declared one breaks the connection", () => {
  test.each([
    ["longer", "abcdef", /^(?:HTTP\/1\.1 200[\s\S]*)?(?<!abcdef)$/],
    ["shorter", "ab", /(?:ab)?$/],
  ])("%s", async (_, body, pattern) => {
    const port = serving((stream) => {
      const declared = head(200, { "content-length": "4" });
      const writer = stream.start(declared, { wanted() {}, cancelled() {} }, false);
      writer.write(Buffer.from(body));
      writer.end(() => {});
    });
    const seen = await exchange(get() + NEXT, { port, answers: 2 });
    expect(seen.isClosed).toBe(true);
    expect(seen.received).toMatch(pattern);
    expect(seen.answers.filter(({ isComplete }) => isComplete)).toEqual([]);
  });
});

test("an exception of a handler ends its connection only", async () => {
  const port = serving((stream) => {
    if (stream.url.endsWith("/throws")) throw new Error("bug");
    stream.respond(head(200), [Buffer.from("ok")], false);
  });
  for (const bytes of [get("/throws"), get("/throws", HANDSHAKE), `${get("/throws")}${get()}`])
    expect(await sendRaw(bytes, { port })).toBe("");
  const { outcome } = await exchange(get(), { port });
  expect(outcome).toBe("200");
});

test("what a client sends behind an upgrade is its WebSocket's, and never a request", async () => {
  const before = scene.origin.requests.length;
  scene.origin.answer = (request, connection) => {
    const key = `${request.header("sec-websocket-key")}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`;
    const accept = new Bun.CryptoHasher("sha1").update(key).digest("base64");
    const fields = `Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n`;
    setTimeout(() => connection.write(`HTTP/1.1 101 Switching Protocols\r\n${fields}\r\n`), 50);
    return null;
  };
  const client = await connectRaw({ port: scene.port });
  // A masked text frame "hi" together with the handshake, and a request, which is no frame.
  const frame = "\x81\x82\0\0\0\0hi";
  client.write(get("/", HANDSHAKE) + frame);
  await client.until("HTTP/1.1 101 Switching Protocols\r\n");
  // The gateway sends the target frames with a mask of its own: 2 + 4 + 2 bytes.
  const sent = () => scene.origin.connections.at(-1)?.received.split("\r\n\r\n")[1] ?? "";
  await eventually(() => sent().startsWith("\x81\x82"));
  client.write(NEXT);
  await client.untilClosed();
  expect(scene.origin.requests.slice(before).map(({ target }) => target)).toEqual(["/"]);
});

describe("clients that leave", () => {
  const moments = {
    "within a request line": "GET /x",
    "within a head": "GET / HTTP/1.1\r\nHost:",
    "within a body": post("Content-Length: 9\r\n", "ab"),
    "within a chunk": post("Transfer-Encoding: chunked\r\n", "9\r\nab"),
    "before the response": get(),
    "before the response, with a pipelined request": get() + NEXT,
    "within an upgrade": get("/", HANDSHAKE),
  };
  test.each(Object.keys(moments) as (keyof typeof moments)[])(
    "%s: the gateway has nothing left of them",
    async (moment) => {
      scene.origin.answer = null;
      // Behind a whole request a client may send FIN and wait for the response.
      const isWhole = moments[moment].includes("\r\n\r\n") && moments[moment].startsWith("GET");
      for (const way of isWhole
        ? (["close", "reset"] as const)
        : (["close", "reset", "end"] as const))
        for (let index = 0; index < 20; index++) {
          const client = await connectRaw({ port: scene.port });
          client.write(moments[moment]);
          await Bun.sleep(index % 3);
          client[way]();
          if (way === "end") await client.untilClosed();
        }
      scene.origin.answer = OK;
      await eventually(() => scene.gateway.board.get(0, "active_requests") <= 0);
      expect((await scene.ask(OK)).outcome).toBe("200");
    },
  );
});
