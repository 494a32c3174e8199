// HTTP/1.1 on our own engine: what other engines lose, clients that leave or stay, limits and the end of connections.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { connect } from "node:net";
import { reply } from "../../support/origin.ts";
import { eventually } from "../../support/poll.ts";
import { read } from "../../support/raw-exchange.ts";
import { connectRaw, parseResponse, sendRaw } from "../../support/raw-http.ts";
import { type ScriptedScene, startScriptedScene } from "../../support/scripted-scene.ts";

let scene: ScriptedScene;
beforeAll(async () => {
  scene = await startScriptedScene({
    listener: { engine: "sluice", max_header_bytes: 262_144, max_connections: 50 },
    settings: { limits: { head_read_timeout: 1000 } },
  });
});
afterAll(() => scene.stop());

const get = (target = "/", fields = "", version = "1.1") =>
  `GET ${target} HTTP/${version}\r\nHost: h\r\n${fields}\r\n`;
const CHUNKED = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

describe("a message passes as it was sent", () => {
  test("names and order of a request's fields", async () => {
    await scene.ask(reply(), get("/", "X-Mixed-CASE: 1\r\nx-lower: 2\r\nX-UPPER: 3\r\n"));
    const head = scene.origin.requests.at(-1)?.head ?? "";
    expect(head).toContain("\r\nX-Mixed-CASE: 1\r\nx-lower: 2\r\nX-UPPER: 3\r\n");
  });

  test("names and order of a response's fields, and the reason phrase", async () => {
    const { received } = await scene.ask(
      "HTTP/1.1 299 Fine by me\r\nX-Mixed-CASE: 1\r\nx-lower:2\r\nContent-Length: 2\r\nX-Z:  3\r\n\r\nok",
    );
    expect(received).toStartWith(
      "HTTP/1.1 299 Fine by me\r\nX-Mixed-CASE: 1\r\nx-lower:2\r\nX-Z:  3\r\n",
    );
    expect(received).toMatch(/\r\nContent-Length: 2\r\n/);
    expect(received).toEndWith("\r\n\r\nok");
  });

  test("a Date of the target stays, and a missing one is added once", async () => {
    const date = "Tue, 01 Jan 2019 00:00:00 GMT";
    const with_ = await scene.ask(reply("ok", { headers: `Date: ${date}\r\n` }));
    expect(with_.received.match(/^date: .*$/gim)).toEqual([`Date: ${date}`]);
    const without = await scene.ask(reply());
    expect(without.received.match(/^date: .*$/gim)).toHaveLength(1);
  });

  test("a request id of the target is replaced by the gateway's", async () => {
    const { received } = await scene.ask(reply("ok", { headers: "X-Request-Id: target\r\n" }));
    expect(received.match(/^x-request-id: .*$/gim)).toEqual([
      expect.stringMatching(/^X-Request-Id: [\da-f-]{36}$/),
    ]);
  });

  test("trailers reach a client that takes them, and no other", async () => {
    const answer = `${CHUNKED}2\r\nok\r\n0\r\nX-Sum: 1\r\n\r\n`;
    const ask = (fields: string) => {
      scene.origin.answer = answer;
      return sendRaw(get("/", fields), { port: scene.port });
    };
    const taking = await ask("TE: trailers\r\nConnection: TE, close\r\n");
    expect(taking).toEndWith("\r\n\r\n2\r\nok\r\n0\r\nX-Sum: 1\r\n\r\n");
    const plain = await ask("Connection: close\r\n");
    expect(plain).toEndWith("\r\n\r\nok");
    expect(plain.toLowerCase()).not.toContain("x-sum");
  });

  test("a body of 3 MB with a length and one in chunks are complete", async () => {
    const body = "0123456789".repeat(300_000);
    const sized = await scene.ask(reply(body));
    expect(sized.answers[0]).toMatchObject({ body, isComplete: true });
    const chunks = `${(1_500_000).toString(16)}\r\n${body.slice(0, 1_500_000)}\r\n`.repeat(2);
    const chunked = await scene.ask(`${CHUNKED}${chunks}0\r\n\r\n`);
    expect(chunked.answers[0]).toMatchObject({ body, isComplete: true });
  });

  test("a head of 200 KB passes, and one over the limit gets 431 with a page", async () => {
    const long = await scene.ask(reply(), get("/", `X: ${"v".repeat(200_000)}\r\n`));
    expect(long.outcome).toBe("200");
    expect(scene.origin.requests.at(-1)?.header("x")).toHaveLength(200_000);
    const tooLong = await scene.ask(reply(), get("/", `X: ${"v".repeat(263_000)}\r\n`));
    expect(tooLong.outcome).toBe("431");
    expect(tooLong.answers[0]?.body).toContain("request id: ");
  });
});

describe("several requests on a connection", () => {
  test("pipelined ones are answered in order, one at the target at a time", async () => {
    const before = scene.origin.requests.length;
    const gates = [1, 2, 3].map(() => Promise.withResolvers<string>());
    let next = 0;
    scene.origin.answer = () => gates[next++]?.promise ?? null;
    const client = await connectRaw({ port: scene.port });
    client.write(get("/1") + get("/2") + get("/3", "Connection: close\r\n"));
    for (const [at, gate] of gates.entries()) {
      await scene.origin.untilRequests(before + at + 1);
      gate.resolve(reply(`answer ${at}`));
    }
    const { answers } = read(await client.untilClosed(), true);
    expect(answers.map(({ body }) => body)).toEqual(["answer 0", "answer 1", "answer 2"]);
    expect(scene.origin.requests.slice(before).map(({ target }) => target)).toEqual([
      "/1",
      "/2",
      "/3",
    ]);
  });

  test("HTTP/1.0 keeps a connection that asks for it", async () => {
    scene.origin.answer = reply();
    const kept = await connectRaw({ port: scene.port });
    kept.write(get("/", "Connection: keep-alive\r\n", "1.0"));
    await kept.until("\r\n\r\nok");
    expect(kept.received).toContain("Connection: keep-alive\r\n");
    kept.write(get("/", "", "1.0"));
    const { answers } = read(await kept.untilClosed(), true);
    expect(answers).toHaveLength(2);
    expect(answers[1]?.header("connection")).toBe("close");
  });

  test("a chunked response to HTTP/1.0 ends with the connection", async () => {
    scene.origin.answer = `${CHUNKED}2\r\nok\r\n0\r\n\r\n`;
    const received = await sendRaw(get("/", "", "1.0"), { port: scene.port });
    expect(parseResponse(received)).toMatchObject({ status: 200, body: "ok" });
    expect(received).not.toMatch(/transfer-encoding/i);
  });

  test("megabytes behind a refusal do not destroy it", async () => {
    const size = 20_000_000;
    scene.origin.answer = reply();
    const client = await connectRaw({ port: scene.port });
    client.write(`POST / HTTP/1.1\r\nHost: bad host\r\nContent-Length: ${size}\r\n\r\n`);
    client.write(Buffer.alloc(8_000_000));
    expect(parseResponse(await client.untilClosed()).status).toBe(400);
  });
});

describe("Expect: 100-continue is the target's to decide", () => {
  const HEAD = "POST /up HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n";

  /** The head of the next request with Expect, as the target gets it without the body. */
  async function begin(answer: (write: (bytes: string) => void) => void) {
    const arrived = Promise.withResolvers<string>();
    const server = Bun.listen({
      hostname: "127.0.0.1",
      port: 0,
      socket: {
        data(socket, chunk) {
          arrived.resolve(chunk.toString("latin1"));
          if (chunk.includes("hello")) socket.write(reply("stored"));
          else answer((bytes) => void socket.write(bytes));
        },
      },
    });
    await scene.gateway.apply({
      services: [{ name: "origin", targets: [{ port: server.port }] }],
    });
    const client = await connectRaw({ port: scene.port });
    client.write(HEAD);
    const head = await arrived.promise;
    return {
      client,
      head,
      async stop() {
        client.close();
        await scene.gateway.apply({
          services: [{ name: "origin", targets: [{ port: scene.origin.port }] }],
        });
        server.stop(true);
      },
    };
  }

  test("its 100 reaches the client, and then the body the target", async () => {
    const { client, head, stop } = await begin((write) => write("HTTP/1.1 100 Continue\r\n\r\n"));
    expect(head).toContain("\r\nExpect: 100-continue\r\n");
    expect(head).toEndWith("\r\n\r\n");
    await client.until("HTTP/1.1 100 Continue\r\n\r\n");
    client.write("hello");
    await client.until("stored");
    await stop();
  });

  test("its refusal reaches the client instead of a 100, and the connection ends", async () => {
    const { client, stop } = await begin((write) => write(reply("no", { status: "417 No" })));
    const received = await client.untilClosed();
    expect(received).toStartWith("HTTP/1.1 417 No\r\n");
    expect(received).toContain("Connection: close\r\n");
    await stop();
  });

  test("of a target that says nothing the client is not left waiting", async () => {
    const { client, stop } = await begin(() => {});
    await client.until("HTTP/1.1 100 Continue\r\n\r\n");
    client.write("hello");
    await client.until("stored");
    await stop();
  });
});

describe("a client that has sent FIN", () => {
  test("gets its response, and then the end", async () => {
    const gate = Promise.withResolvers<string>();
    scene.origin.answer = () => gate.promise;
    const before = scene.origin.requests.length;
    const client = await connectRaw({ port: scene.port });
    client.write(get());
    client.end();
    await scene.origin.untilRequests(before + 1);
    // Longer than the gateway waits before it looks whether the client is there.
    await client.until("HTTP/1.1 100 Continue\r\n\r\n");
    gate.resolve(reply("late"));
    const received = await client.untilClosed();
    expect(parseResponse(received.replace("HTTP/1.1 100 Continue\r\n\r\n", ""))).toMatchObject({
      status: 200,
      body: "late",
    });
  });

  test("within a chunked response gets the rest of it, whole", async () => {
    const rest = Promise.withResolvers<void>();
    scene.origin.answer = async (_, connection) => {
      connection.write(`${CHUNKED}4\r\nhalf\r\n`);
      await rest.promise;
      return "4\r\nrest\r\n0\r\n\r\n";
    };
    const client = await connectRaw({ port: scene.port });
    client.write(get());
    await client.until("half\r\n");
    client.end();
    await client.until("half\r\n0");
    rest.resolve();
    const { answers } = read(await client.untilClosed(), true);
    expect(answers[0]).toMatchObject({ status: 200, body: "halfrest", isComplete: true });
  });

  test.each([
    ["nothing", ""],
    ["half a head", "GET /half HTTP/1.1\r\nHo"],
    ["half a body", "POST /half HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nhalf"],
  ])("gets the responses to all its requests, with %s behind them", async (_, half) => {
    const before = scene.origin.requests.length;
    scene.origin.answer = async ({ target }) => {
      await new Promise(setImmediate);
      return reply(target);
    };
    const client = await connectRaw({ port: scene.port });
    const body = "POST /3 HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nab";
    client.write(`${get("/1")}${get("/2")}${body}${half}`);
    client.end();
    const { answers } = read(await client.untilClosed(), true);
    expect(answers.map((answer) => answer.body)).toEqual(["/1", "/2", "/3"]);
    expect(scene.origin.requests.slice(before).map(({ target }) => target)).toEqual([
      "/1",
      "/2",
      "/3",
    ]);
    expect(answers.map((answer) => answer.header("connection"))).toEqual([
      null,
      null,
      half === "" ? "close" : null,
    ]);
  });

  test("half a body is no request: nothing complete reaches the target", async () => {
    const before = scene.origin.requests.length;
    const client = await connectRaw({ port: scene.port });
    client.write("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nhalf");
    client.end();
    expect(await client.untilClosed()).toBe("");
    expect(scene.origin.requests.length).toBe(before);
  });
});

describe("a client that has gone", () => {
  test.each([
    ["while the target thinks", ""],
    ["within a chunked response", `${CHUNKED}4\r\nhalf\r\n`],
    [
      "within an event stream",
      `${CHUNKED.replace("\r\n\r\n", "\r\nContent-Type: text/event-stream\r\n\r\n")}4\r\nhalf\r\n`,
    ],
  ])("%s: the exchange ends, though nothing more is sent", async (_, begin) => {
    const before = scene.origin.connections.length;
    const opened = Promise.withResolvers<{ readonly isClosed: boolean }>();
    scene.origin.answer = (__, connection) => {
      if (begin !== "") connection.write(begin);
      opened.resolve(connection);
      return null;
    };
    const socket = connect({ port: scene.port, host: "127.0.0.1" });
    socket.write(get());
    const target = await opened.promise;
    if (begin !== "") await new Promise((resolve) => socket.once("data", resolve));
    // A close as browsers and killed programs do it: FIN, then resets.
    socket.destroy();
    await eventually(() => target.isClosed);
    expect(scene.origin.connections.length).toBeGreaterThanOrEqual(before);
  });
});

describe("a head that does not arrive", () => {
  test("half of one: 408 with a page, and the end", async () => {
    const client = await connectRaw({ port: scene.port });
    client.write("GET / HTTP/1.1\r\nHost: h\r\nX-Half: ");
    const { status, body } = parseResponse(await client.untilClosed());
    expect(status).toBe(408);
    expect(body).toContain("request id: ");
  });

  test("byte by byte: 408 all the same", async () => {
    const client = await connectRaw({ port: scene.port });
    client.write("GET / HTTP/1.1\r\nHost: h\r\nX: ");
    const timer = setInterval(() => client.write("v"), 20);
    const received = await client.untilClosed();
    clearInterval(timer);
    expect(parseResponse(received).status).toBe(408);
  });

  test("nothing: the end without a response", async () => {
    const client = await connectRaw({ port: scene.port });
    expect(await client.untilClosed()).toBe("");
  });

  test("bytes of another protocol: 400 at once", async () => {
    const received = await sendRaw(Buffer.from("\x16\x03\x01\x02\x00\x01", "latin1"), {
      port: scene.port,
    });
    expect(parseResponse(received).status).toBe(400);
  });
});

test("above max_connections a connection is closed, and the others are served", async () => {
  scene.origin.answer = reply();
  const clients = await Promise.all(
    Array.from({ length: 50 }, () => connectRaw({ port: scene.port })),
  );
  for (const client of clients) client.write(get());
  await Promise.all(clients.map((client) => client.until("ok")));
  const refused = await connectRaw({ port: scene.port });
  refused.write(get());
  expect(await refused.untilClosed()).toBe("");
  for (const client of clients) client.close();
  await eventually(async () => {
    const again = await connectRaw({ port: scene.port });
    again.write(get("/", "Connection: close\r\n"));
    return (await again.untilClosed()).endsWith("ok");
  });
});
