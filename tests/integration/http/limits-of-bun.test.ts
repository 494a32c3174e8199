// Limits of Bun.serve as docs/limits-of-bun.md lists them: a failing test here means that Bun has changed, and the page must too.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { type ScriptedScene, GET, startScriptedScene } from "../../support/scripted-scene.ts";
import { connectRaw } from "../../support/raw-http.ts";
import { read } from "../../support/raw-exchange.ts";
import { H2Client } from "../../support/h2-client.ts";
import { eventually } from "../../support/poll.ts";

let scene: ScriptedScene;
beforeAll(async () => {
  scene = await startScriptedScene({
    listener: { engine: "bun" },
    service: { response_buffer_bytes: 100 },
    // The gateway's own limits would apply first.
    settings: { limits: { max_aborted_per_connection: 0, max_aborted_per_address: 0 } },
  });
});
afterAll(() => scene.stop());

const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const lastTarget = () => scene.origin.requests.at(-1)?.target;

test("a streamed body loses its Content-Length", async () => {
  scene.origin.answer = (_request, connection) => {
    connection.write(`HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n${"x".repeat(500)}`);
    return null;
  };
  const client = await connectRaw({ port: scene.port });
  client.write(GET);
  await client.until("xxx");
  scene.origin.connections.at(-1)?.write("y".repeat(500));
  await client.until((received) => read(received, false).answers.length === 1);
  client.close();
  const [answer] = read(client.received, false).answers;
  expect(answer).toMatchObject({ status: 200, isComplete: true });
  expect(answer?.body.length).toBe(1000);
  expect(answer?.header("content-length")).toBeNull();
  expect(answer?.header("transfer-encoding")).toBe("chunked");
});

test("trailers of a response are dropped", async () => {
  const { received } = await scene.ask(
    "HTTP/1.1 200 OK\r\nTrailer: X-T\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-T: v\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: h\r\nTE: trailers\r\n\r\n",
  );
  expect(received.toLowerCase()).not.toContain("x-t");
});

test("103 Early Hints do not reach the client", async () => {
  const { interim } = await scene.ask(`HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n${OK}`);
  expect(interim).toEqual([]);
});

test("reason phrases are Bun's", async () => {
  const { answers } = await scene.ask("HTTP/1.1 404 Gone Fishing\r\nContent-Length: 2\r\n\r\nok");
  expect(answers[0]?.reason).toBe("Not Found");
});

test("a client that half-closes after its request gets no response, and the request may have been processed", async () => {
  const before = scene.origin.requests.length;
  scene.origin.answer = null;
  const client = await connectRaw({ port: scene.port });
  client.write(GET);
  await scene.origin.untilRequests(before + 1);
  client.end();
  expect(await client.untilClosed()).toBe("");
});

test("an empty line after a request is read as the next one: 400 instead of the response", async () => {
  const { outcome } = await scene.ask(OK, "GET /after HTTP/1.1\r\nHost: h\r\n\r\n\r\n");
  expect(outcome).toBe("400");
});

test("a GET with Expect gets two 100s", async () => {
  const request = "GET / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\n\r\n";
  expect(await scene.ask(OK, request)).toMatchObject({ interim: [100, 100], outcome: "200" });
});

test("an HTTP/1.0 client that requests keep-alive gets no confirmation", async () => {
  const request = "GET / HTTP/1.0\r\nHost: h\r\nConnection: keep-alive\r\n\r\n";
  const { answers } = await scene.ask(OK, request);
  expect(answers[0]?.header("connection")).toBeNull();
});

test("an HTTP/1.0 client gets a body of unknown length up to the end of the connection, never chunks", async () => {
  const { answers, received, isClosed } = await scene.ask(
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nc8\r\n" +
      `${"x".repeat(200)}\r\n0\r\n\r\n`,
    "GET / HTTP/1.0\r\nHost: h\r\n\r\n",
    { answers: 2 },
  );
  expect(answers[0]).toMatchObject({ status: 200, body: "x".repeat(200), isComplete: true });
  expect(received).not.toMatch(/chunked/i);
  expect(isClosed).toBe(true);
});

test.each([
  ["/\xe9", "/%EF%BF%BD"],
  ["/?q=\xe9", "/?q=%EF%BF%BD"],
  ["/\xc3\xa9", "/%C3%A9"],
  ['/"<>`{}', "/%22%3C%3E%60%7B%7D"],
  ["/?q='\"<>", "/?q=%27%22%3C%3E"],
])(
  "%j goes upstream as %s: bytes that a URL cannot hold are read as UTF-8 and escaped",
  async (target, upstream) => {
    expect((await scene.ask(OK, `GET ${target} HTTP/1.1\r\nHost: h\r\n\r\n`)).outcome).toBe("200");
    expect(lastTarget()).toBe(upstream);
  },
);

test.each([
  ["http://other/x", "/x", "another authority"],
  ["http://u:p@other:81/x", "/x", "one with a user"],
  ["http://other", "/", "nothing but an authority"],
  ["http://h#y", "/", "a fragment behind the authority"],
  ["http://h#y/x?q", "/x?q", "a fragment with a slash, which is no path to others"],
])("absolute form: of %s only %s is known (%s)", async (target, path) => {
  const { outcome } = await scene.ask(OK, `GET ${target} HTTP/1.1\r\nHost: h\r\n\r\n`);
  expect([outcome, lastTarget()]).toEqual(["200", path]);
  expect(scene.origin.requests.at(-1)?.header("host")).toBe("h");
});

test.each([
  ...["/x#y", "/#", "/x?q#y", "//h/x#y", "*#y"],
  ...["http://h/x#y", "http://h/#", "http://h/x?q#y", "http://h?q#y", "https://other/x#y"],
])("a fragment that is not hidden gets 400: %s", async (target) => {
  const before = scene.origin.requests.length;
  const { outcome } = await scene.ask(OK, `GET ${target} HTTP/1.1\r\nHost: h\r\n\r\n`);
  expect([outcome, scene.origin.requests.length]).toEqual(["400", before]);
});

test("HTTP/2: after 1,000 resets, of which 33 come back each second, a connection ends with GOAWAY", async () => {
  scene.origin.answer = OK;
  const client = await H2Client.connect({ port: scene.port });
  const fields = [
    [":method", "GET"],
    [":scheme", "http"],
    [":authority", "h"],
    [":path", "/"],
  ] as const;
  for (let count = 0; count < 1000; count++) client.resetStream(client.headers(fields));
  expect((await client.result(client.headers(fields))).status).toBe(200);
  await eventually(() => {
    for (let count = 0; count < 10; count++) client.resetStream(client.headers(fields));
    return client.goAway;
  });
  const ENHANCE_YOUR_CALM = 11;
  expect(client.goAway).toBe(ENHANCE_YOUR_CALM);
  await eventually(() => client.isClosed);
});
