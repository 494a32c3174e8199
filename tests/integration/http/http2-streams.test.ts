// HTTP/2 streams and their upstream requests: the end of one ends the other, and nothing else.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type ClientHttp2Session, connect } from "node:http2";
import { selfSigned } from "../../support/certificate.ts";
import { type Field, H2Client } from "../../support/h2-client.ts";
import { eventually } from "../../support/poll.ts";
import { type ScriptedScene, startScriptedScene } from "../../support/scripted-scene.ts";

let scene: ScriptedScene;
let session: ClientHttp2Session;
const clients: H2Client[] = [];
beforeAll(async () => {
  scene = await startScriptedScene({
    tls: await selfSigned(),
    listener: { max_body_bytes: 100_000 },
  });
  session = connect(scene.gateway.url, { rejectUnauthorized: false });
});
afterAll(async () => {
  session.close();
  for (const client of clients) client.close();
  await scene.stop();
});

async function open(): Promise<H2Client> {
  const client = await H2Client.connect({ port: scene.port, tls: true });
  clients.push(client);
  return client;
}

const request = (path: string, method = "GET"): Field[] => [
  [":method", method],
  [":scheme", "https"],
  [":authority", "h"],
  [":path", path],
];
const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const lastConnection = () => scene.origin.connections[scene.origin.requests.at(-1)!.connection]!;

/** All other responses only begin. */
function answerOnly(complete: string, begin: string): void {
  scene.origin.answer = ({ target }, connection) => {
    if (target === complete) return OK;
    connection.write(begin);
    return null;
  };
}
const OTHER = { outcome: "200", body: "ok" };

describe("a target that breaks off", () => {
  const beginnings: [begin: string, why: string][] = [
    [
      `HTTP/1.1 200 OK\r\nContent-Length: 5000000\r\n\r\n${"x".repeat(1000)}`,
      "in a body of known length",
    ],
    [
      `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3e8\r\n${"x".repeat(1000)}\r\n`,
      "in a chunked body",
    ],
    [
      `HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: ${"x".repeat(1000)}\n\n`,
      "in events, by a reset",
    ],
  ];
  test.each(beginnings)("%j: the stream is reset, and others continue (%s)", async (begin, why) => {
    answerOnly("/other", begin);
    const client = await open();
    const stream = client.headers(request("/"));
    await client.untilBody(stream, "xxx");
    const connection = lastConnection();
    if (why.includes("reset")) connection.reset();
    else connection.end();
    const result = await client.result(stream);
    expect(result).toMatchObject({ outcome: "reset", isComplete: false, status: 200 });
    expect(result.reset).not.toBe(0);
    expect(await client.result(client.headers(request("/other")))).toMatchObject(OTHER);
  });

  test("before its response: 502 on the stream", async () => {
    scene.origin.answer = "close";
    const client = await open();
    const result = await client.result(client.headers(request("/", "POST")));
    expect(result).toMatchObject({ outcome: "502" });
    expect(result.body).toContain("502 Bad Gateway");
  });

  test("with malformed bytes: 502", async () => {
    scene.origin.answer = "nonsense\r\n\r\n";
    const client = await open();
    expect(await client.result(client.headers(request("/")))).toMatchObject({ outcome: "502" });
  });
});

describe("a client that breaks off", () => {
  test.each([
    ["before the answer", ""],
    ["in the body", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nxxx\r\n"],
  ])(
    "%s: by RST_STREAM the request upstream is ended, and other streams continue",
    async (_, begin) => {
      const before = scene.origin.requests.length;
      answerOnly("/other", begin);
      const client = await open();
      const stream = client.headers(request("/"));
      await scene.origin.untilRequests(before + 1);
      const connection = lastConnection();
      if (begin !== "") await client.untilBody(stream, "xxx");
      client.resetStream(stream);
      await eventually(() => connection.isClosed);
      expect(await client.result(client.headers(request("/other")))).toMatchObject(OTHER);
    },
  );

  test("by closing the connection all its requests are ended", async () => {
    const before = scene.origin.requests.length;
    scene.origin.answer = null;
    const client = await open();
    for (let i = 0; i < 5; i++) client.headers(request(`/${i}`));
    await scene.origin.untilRequests(before + 5);
    const connections = scene.origin.requests
      .slice(before)
      .map(({ connection }) => scene.origin.connections[connection]!);
    client.close();
    await eventually(() => connections.every(({ isClosed }) => isClosed));
  });

  test("in its body: the origin never sees a whole request", async () => {
    const before = scene.origin.requests.length;
    const client = await open();
    scene.origin.answer = OK;
    const stream = client.headers(request("/", "POST"), { isLast: false });
    client.data(stream, "abc", { isLast: false });
    await eventually(() =>
      scene.origin.connections.some(({ received }) => received.endsWith("abc\r\n")),
    );
    client.resetStream(stream);
    await eventually(() =>
      scene.origin.connections.every((each) => each.isClosed || !each.received.endsWith("abc\r\n")),
    );
    expect(scene.origin.requests.length).toBe(before);
  });
});

describe("limits", () => {
  test.each([
    [100_000, "200"],
    [100_001, "413"],
  ])("a body of %d bytes: %s", async (bytes, outcome) => {
    scene.origin.answer = OK;
    const response = await ask({ ":path": "/", ":method": "POST" }, "b".repeat(bytes));
    expect(response.status).toBe(Number(outcome));
  });
});

describe("fields", () => {
  test.each([
    ["a length", "HTTP/1.1 200 OK\r\nContent-Length: 25\r\n\r\n", "25"],
    ["no length, of which 0 must not be made", "HTTP/1.1 200 OK\r\nX-A: b\r\n\r\n", undefined],
  ])("HEAD with %s", async (_, answer, length) => {
    scene.origin.answer = answer;
    const response = await ask({ ":path": "/", ":method": "HEAD" });
    expect(response.status).toBe(200);
    expect(response.fields["content-length"]).toBe(length as string);
  });

  test("a response has no HTTP/1.1 connection fields, and keeps its own", async () => {
    scene.origin.answer =
      "HTTP/1.1 200 OK\r\nConnection: keep-alive, X-Drop\r\nKeep-Alive: timeout=5\r\nX-Drop: 1\r\nUpgrade: h2c\r\nX-A: b\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n";
    const { fields, body } = await ask({ ":path": "/" });
    for (const name of ["connection", "keep-alive", "upgrade", "transfer-encoding", "x-drop"])
      expect(fields[name]).toBeUndefined();
    expect(fields["x-a"]).toBe("b");
    expect(fields["set-cookie"]).toEqual(["a=1", "b=2"]);
    expect(body).toBe("ok");
  });

  test("the target gets the scheme and name that the client used", async () => {
    scene.origin.answer = OK;
    await ask({ ":path": "/p?q", ":authority": "Name.Test:8443" });
    const seen = scene.origin.requests.at(-1)!;
    expect(seen.target).toBe("/p?q");
    expect(seen.header("host")).toBe("Name.Test:8443");
    expect(seen.header("x-forwarded-proto")).toBe("https");
    expect(seen.header("x-forwarded-host")).toBe("Name.Test:8443");
    expect(seen.head).not.toContain(":path");
  });
});

interface Response2 {
  readonly status: number;
  readonly fields: Record<string, string | string[] | undefined>;
  readonly body: string;
}

function ask(fields: Record<string, string>, content = ""): Promise<Response2> {
  const { promise, resolve, reject } = Promise.withResolvers<Response2>();
  const stream = session.request(fields, { endStream: content === "" });
  let body = "";
  let head: Record<string, unknown> = {};
  stream.on("response", (seen) => {
    head = seen;
  });
  stream.on("data", (chunk) => {
    body += String(chunk);
  });
  stream.on("end", () =>
    resolve({ status: Number(head[":status"]), fields: head as Response2["fields"], body }),
  );
  stream.on("error", reject);
  if (content !== "") stream.end(content);
  return promise;
}
