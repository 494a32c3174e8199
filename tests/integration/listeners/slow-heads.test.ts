// Clients that send heads slowly on listeners with our own engine: 408 in time, and other clients are not disturbed.
import { afterEach, describe, expect, test } from "bun:test";
import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { cleanupsOf } from "../../support/cleanups.ts";
import { H2Client } from "../../support/h2-client.ts";
import { eventually } from "../../support/poll.ts";
import { connectRaw, type RawConnection, sendRaw } from "../../support/raw-http.ts";
import { type ScriptedScene, startScriptedScene } from "../../support/scripted-scene.ts";
import { usePeople } from "./people.ts";
import { ask, useListeners } from "./world.ts";

/** In the place of 15 seconds. */
const TIME = 300;
const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const GET = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";

const cleanups = cleanupsOf(afterEach);

type Options = NonNullable<Parameters<typeof startScriptedScene>[0]>;

async function start(listener: object = {}, rest: Options = {}): Promise<ScriptedScene> {
  const scene = await startScriptedScene({
    ...rest,
    settings: { limits: { head_read_timeout: TIME } },
    listener: { max_connections: 100, ...listener },
  });
  scene.origin.answer = OK;
  cleanups.push(() => scene.stop());
  return scene;
}

async function open(port: number): Promise<RawConnection> {
  const client = await connectRaw({ port });
  cleanups.push(() => client.close());
  return client;
}

function trickle(client: RawConnection | Socket, piece: string): void {
  const timer = setInterval(() => client.write(piece), 50);
  cleanups.push(() => clearInterval(timer));
}

/** Longer than any head may take, and than the timer of the engine needs to see it. */
async function outlast(client: { readonly isClosed: boolean }): Promise<void> {
  const until = performance.now() + 2500;
  await eventually(() => client.isClosed || performance.now() > until);
}

async function expectPatience({ port }: ScriptedScene): Promise<void> {
  const client = await open(port);
  trickle(client, "G");
  await outlast(client);
  expect(client.isClosed).toBeFalse();
  client.reset();
}

describe("a head that does not arrive in time gets 408", () => {
  test("the first one, even when bytes arrive regularly", async () => {
    const scene = await start();
    const client = await open(scene.port);
    client.write("GET / HTTP/1.1\r\nHost: h\r\n");
    trickle(client, "X-A: 1\r\n");
    const [head = "", body] = (await client.untilClosed()).split("\r\n\r\n");
    expect(head).toStartWith("HTTP/1.1 408 Request Timeout\r\n");
    const fields = head.toLowerCase();
    expect(fields).toContain("connection: close");
    expect(fields).toContain(`content-length: ${body?.length}`);
    expect(fields).toMatch(/\r\ndate: .* gmt/);
    expect(fields).toContain("proxy-status: ");
    expect(body).toContain("the request head did not arrive in time");
    expect(scene.origin.requests).toEqual([]);
    expect(scene.origin.connections).toEqual([]);
    const lines = scene.gateway.log.filter(({ message }) => message === "connections refused");
    expect(lines.map(({ fields }) => [fields["reason"], fields["client"]])).toEqual([
      ["the head of a request did not arrive in time", "127.0.0.1"],
    ]);
  });

  test.each([
    { what: "a GET", request: GET },
    { what: "an upload", request: "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc" },
    {
      what: "an upload in chunks",
      request:
        "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    },
  ])("the next one behind $what", async ({ request }) => {
    const scene = await start();
    const client = await open(scene.port);
    client.write(request);
    await client.until("\r\n\r\nok");
    trickle(client, "G");
    const received = await client.untilClosed();
    expect(received.split("HTTP/1.1 ").map((part) => part.slice(0, 3))).toEqual(["", "200", "408"]);
    expect(scene.origin.requests.length).toBe(1);
  });

  test("behind a PROXY header", async () => {
    const scene = await start({ proxy_protocol: true, trusted_proxies: ["127.0.0.1"] });
    const client = await open(scene.port);
    client.write("PROXY TCP4 203.0.113.5 203.0.113.9 4000 80\r\nGET / HTTP/1.1\r\n");
    trickle(client, "X-A: 1\r\n");
    expect(await client.untilClosed()).toStartWith("HTTP/1.1 408 ");
    expect(scene.gateway.log.at(-1)?.fields["client"]).toBe("203.0.113.5");
  });

  test("a client that sends no request is closed without a response", async () => {
    const scene = await start();
    const client = await open(scene.port);
    expect(await client.untilClosed()).toBe("");
    expect(scene.origin.requests).toEqual([]);
  });

  test("a client that continues sending afterwards is closed all the same", async () => {
    const scene = await start({ max_connections: 1 });
    // Half open: it does not close its side after the other's FIN.
    const socket = connect({ port: scene.port, host: "127.0.0.1", allowHalfOpen: true });
    let received = "";
    socket.on("data", (data) => (received += data.toString("latin1")));
    socket.on("error", () => undefined);
    cleanups.push(() => socket.destroy());
    trickle(socket, "G");
    await eventually(() => received.includes(" 408 "));
    const last = GET.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n");
    await eventually(async () => (await sendRaw(last, { port: scene.port })).includes("200 OK"), {
      intervalMs: 200,
    });
  });
});

describe("no other client is disconnected", () => {
  test("a connection between two requests", async () => {
    const scene = await start();
    const client = await open(scene.port);
    for (let request = 1; request <= 2; request++) {
      client.write(GET);
      await client.until((received) => received.split("\r\n\r\nok").length === request + 1);
      await outlast(client);
    }
    expect(client.isClosed).toBeFalse();
  });

  test("a request with a slow target, and a slow upload", async () => {
    const scene = await start({ body_min_rate: 0 });
    const [poll, upload] = [await open(scene.port), await open(scene.port)];
    scene.origin.answer = async (request) => {
      if (request.method === "GET") await outlast(poll);
      return OK;
    };
    poll.write(GET);
    upload.write("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\n");
    const timer = setInterval(() => upload.write("x"), 50);
    await outlast(upload);
    clearInterval(timer);
    upload.write("x".repeat(1000));
    for (const client of [poll, upload])
      expect(await client.until("\r\n\r\nok")).toStartWith("HTTP/1.1 200 ");
  });

  test("HTTP/2 without TLS", async () => {
    const scene = await start();
    const client = await H2Client.connect({ port: scene.port });
    cleanups.push(() => client.close());
    const get = async () => {
      const stream = client.headers([
        [":method", "GET"],
        [":scheme", "http"],
        [":authority", "h"],
        [":path", "/"],
      ]);
      return (await client.result(stream)).status;
    };
    expect(await get()).toBe(200);
    const PING = 6;
    const timer = setInterval(() => client.frame(PING, 0, 0, Buffer.alloc(8)), 50);
    await outlast(client);
    clearInterval(timer);
    expect(await get()).toBe(200);
  });

  test("a head that arrives byte by byte, but in time", async () => {
    const scene = await start();
    const client = await open(scene.port);
    for (const byte of GET) {
      client.write(byte);
      await Bun.sleep(0);
    }
    expect(await client.until("\r\n\r\nok")).toStartWith("HTTP/1.1 200 ");
    expect(scene.origin.requests.length).toBe(1);
  });

  test("on Bun's engine, whose timeouts apply", async () => {
    const scene = await start({ engine: "bun", max_connections: 0 });
    await expectPatience(scene);
  });

  test("with 0, where they apply as well", async () => {
    const scene = await startScriptedScene({
      settings: { limits: { head_read_timeout: 0 } },
      listener: { max_connections: 100 },
    });
    cleanups.push(() => scene.stop());
    await expectPatience(scene);
  });
});

test.each([
  ["no HTTP at all", "SSH-2.0-OpenSSH_9.2\r\n", "400"],
  ["a greeting of TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "400"],
  ["a head that is too long", `GET / HTTP/1.1\r\nHost: h\r\nX: ${"x".repeat(17_000)}`, "431"],
])("an invalid head gets a response at once, on both engines: %s", async (_, text, status) => {
  const own = await start({ max_header_bytes: 16_384 });
  for (const { port } of [own, await start({ engine: "bun", max_connections: 0 })]) {
    const client = await open(port);
    client.write(text);
    expect(await client.untilClosed()).toStartWith(`HTTP/1.1 ${status} `);
  }
});

describe("where clients present certificates, inside TLS", () => {
  const { api, listener } = useListeners();
  const people = usePeople(api);

  test("408, and requests in time pass", async () => {
    await api.call("PATCH /settings", { body: { limits: { head_read_timeout: TIME } } });
    const port = await listener("asking slowly", people.required());
    const shown = people.shown(people.good);
    expect((await ask(port, { servername: "a.test", ...shown })).text).toContain(" 200 OK");
    const options = { host: "127.0.0.1", port, rejectUnauthorized: false, servername: "a.test" };
    const text = await new Promise<string>((resolve) => {
      let received = "";
      const socket = connectTls({ ...options, ...shown }, () => {
        socket.write("GET / HTTP/1.1\r\nHost: a.test\r\n");
        const timer = setInterval(() => socket.write("X-A: 1\r\n"), 50);
        socket.on("close", () => clearInterval(timer));
      });
      socket.on("data", (data: Buffer) => (received += data.toString("latin1")));
      socket.on("error", () => undefined);
      socket.on("close", () => resolve(received));
    });
    expect(text).toStartWith("HTTP/1.1 408 ");
  });
});
