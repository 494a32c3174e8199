// What the full engine does over HTTP/1.1 where docs/limits-of-bun.md lists a limit of Bun.serve: the column of the full engine.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { connectRaw } from "../../support/raw-http.ts";
import { read } from "../../support/raw-exchange.ts";
import { type ScriptedScene, startScriptedScene } from "../../support/scripted-scene.ts";

let scene: ScriptedScene;
beforeAll(async () => {
  scene = await startScriptedScene({
    service: { response_buffer_bytes: 100 },
    listener: { engine: "full" },
  });
});
afterAll(() => scene.stop());

const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const post = (fields: string, body: string) => `POST / HTTP/1.1\r\nHost: h\r\n${fields}\r\n${body}`;
const chunked = (body: string) => post("Transfer-Encoding: chunked\r\n", body);
const get = (target = "/", fields = "") => `GET ${target} HTTP/1.1\r\nHost: h\r\n${fields}\r\n`;

describe("a request is served", () => {
  test.each([
    { why: "with a body of GET", request: `${get("/", "Content-Length: 3\r\n")}abc` },
    { why: "after an empty line", request: `\r\n${get()}` },
    { why: "with trailers, which are dropped", request: chunked("2\r\nhi\r\n0\r\nX-T: 1\r\n\r\n") },
    {
      why: "with an escaped quote in a chunk extension",
      request: chunked('2;a="b\\"c"\r\nhi\r\n0\r\n\r\n'),
    },
    { why: "with a target in absolute form", request: get("http://other/x") },
    { why: "with Expect, whose GET gets no 100", request: get("/", "Expect: 100-continue\r\n") },
  ])("$why", async ({ request }) => {
    const { answers, interim } = await scene.ask(OK, request);
    expect([interim, answers.map(({ status }) => status)]).toEqual([[], [200]]);
    expect(scene.origin.requests.at(-1)?.header("x-t") ?? null).toBeNull();
  });

  test("behind the one before it, pipelined: the responses keep the order", async () => {
    const { answers } = await scene.ask(
      ({ target }) => `HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n${target}`,
      get("/1") + get("/2"),
      { answers: 2 },
    );
    expect(answers.map(({ body }) => body)).toEqual(["/1", "/2"]);
  });

  test("with a 100 for Expect in any case", async () => {
    scene.origin.answer = OK;
    const client = await connectRaw({ port: scene.port });
    client.write(post("Expect: 100-CONTINUE\r\nContent-Length: 2\r\n", ""));
    await client.until("HTTP/1.1 100 Continue\r\n\r\n");
    client.write("hi");
    await client.until((received) => read(received, false).answers.length === 1);
    client.close();
    expect(read(client.received, false).interim).toEqual([100]);
  });
});

describe("a request gets 400", () => {
  test.each([
    { why: "OPTIONS *", request: "OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n" },
    { why: "CONNECT", request: "CONNECT h:80 HTTP/1.1\r\nHost: h\r\n\r\n" },
    { why: "an unknown method", request: "BREW / HTTP/1.1\r\nHost: h\r\n\r\n" },
    { why: "bytes that are not ASCII", request: get("/ä") },
    { why: "no Host in HTTP/1.0", request: "GET / HTTP/1.0\r\n\r\n" },
    {
      why: "Chunked in another case",
      request: post("Transfer-Encoding: CHUNKED\r\n", "0\r\n\r\n"),
    },
  ])("for $why", async ({ request }) => {
    const before = scene.origin.requests.length;
    const { answers } = await scene.ask(OK, request);
    expect(answers.map(({ status }) => status)).toEqual([400]);
    expect(scene.origin.requests.length).toBe(before);
  });
});

test("a body without the empty line after its last chunk does not reach the target as complete", async () => {
  const before = scene.origin.requests.length;
  const client = await connectRaw({ port: scene.port });
  client.write(chunked("2\r\nhi\r\n0\r\n"));
  client.end();
  await client.untilClosed();
  expect(read(client.received, true).answers).toEqual([]);
  expect(scene.origin.requests.length).toBe(before);
});

test.each([1, 2, 3])(
  "a request may begin with a packet of %d bytes that the HTTP/2 preface has too",
  async (bytes) => {
    scene.origin.answer = OK;
    const request = post("Content-Length: 2\r\n", "hi").replace(
      "POST",
      `${"PRI".slice(0, bytes)}X`,
    );
    const known = post("Content-Length: 2\r\n", "hi");
    for (const [text, status] of [
      [known, 200],
      [request, 400],
    ] as const) {
      const client = await connectRaw({ port: scene.port });
      // Each packet is read by itself.
      for (const part of [text.slice(0, bytes), text.slice(bytes, 4), text.slice(4)]) {
        client.write(part);
        await Bun.sleep(5);
      }
      await client.until((received) => read(received, false).answers.length === 1);
      client.close();
      expect(read(client.received, false).answers.map((answer) => answer.status)).toEqual([status]);
    }
  },
);

test("an early response arrives although the client goes on sending", async () => {
  const target = `/${"x".repeat(9000)}`;
  const client = await connectRaw({ port: scene.port });
  client.write(`POST ${target} HTTP/1.1\r\nHost: h\r\nContent-Length: 50000000\r\n\r\n`);
  const body = Buffer.alloc(1_000_000, 97);
  for (let sent = 0; sent < 20 && !client.isClosed; sent++) {
    client.write(body);
    await Bun.sleep(1);
  }
  await client.until((received) => received.includes("\r\n\r\n"));
  expect(client.received).toStartWith("HTTP/1.1 414");
  client.close();
});

test("a client that half-closes after its request has gone, as on the standard engine", async () => {
  const before = scene.origin.requests.length;
  scene.origin.answer = null;
  const client = await connectRaw({ port: scene.port });
  client.write(get());
  await scene.origin.untilRequests(before + 1);
  client.end();
  expect(await client.untilClosed()).toBe("");
});

describe("a response", () => {
  test("that is streamed keeps its Content-Length", async () => {
    const { answers } = await scene.ask(
      `HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n${"x".repeat(1000)}`,
    );
    expect(answers[0]?.header("content-length")).toBe("1000");
    expect(answers[0]?.body.length).toBe(1000);
  });

  test("comes after its 103", async () => {
    const { interim, received } = await scene.ask(
      `HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n${OK}`,
    );
    expect(interim).toEqual([103]);
    expect(received.toLowerCase()).toContain("link: </x>");
  });

  test("has the usual reason phrase", async () => {
    const { answers } = await scene.ask("HTTP/1.1 404 Gone Fishing\r\nContent-Length: 2\r\n\r\nok");
    expect(answers[0]?.reason).toBe("Not Found");
  });

  test("confirms keep-alive of an HTTP/1.0 client", async () => {
    const { answers } = await scene.ask(
      OK,
      "GET / HTTP/1.0\r\nHost: h\r\nConnection: keep-alive\r\n\r\n",
    );
    expect(answers[0]?.header("connection")).toBe("keep-alive");
  });
});
