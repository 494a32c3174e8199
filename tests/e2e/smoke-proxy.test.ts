// Traffic through the whole product, from source and as the executable: plain, TLS, HTTP/2, bodies both ways, WebSockets.
import { describe, expect } from "bun:test";
import { connectRaw, parseResponse, sendRaw } from "../support/raw-http.ts";
import { curl } from "../support/curl.ts";
import { type Gateway, startGateway } from "../support/gateway.ts";
import { needs } from "../support/needs.ts";
import { eventually } from "../support/poll.ts";
import { variants } from "../support/variants.ts";

/** A typical application; its response describes the request. */
function startApplication() {
  return Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request, server) {
      const { pathname, search } = new URL(request.url);
      if (pathname === "/socket" && server.upgrade(request)) return undefined;
      const body = await request.text();
      return Response.json(
        {
          method: request.method,
          target: pathname + search,
          host: request.headers.get("host"),
          proto: request.headers.get("x-forwarded-proto"),
          size: body.length,
          sha256: new Bun.CryptoHasher("sha256").update(body).digest("hex"),
        },
        { headers: { "x-application": "yes", "set-cookie": "a=1" } },
      );
    },
    websocket: {
      message(socket, message) {
        socket.send(message);
      },
    },
  });
}

describe.each([...variants])("traffic $name", ({ binary, needed }) => {
  const { afterAll, beforeAll, test } = needs(...needed, "curl");
  const application = startApplication();
  let gateway: Gateway;
  let plain: string;
  let secure: string;

  beforeAll(async () => {
    gateway = await startGateway({ binary });
    plain = `http://127.0.0.1:${gateway.httpPort}`;
    secure = `https://127.0.0.1:${gateway.httpsPort}`;
    const targets = [{ host: "127.0.0.1", port: application.port }];
    await gateway.ok("POST", "/api/v1/services", { name: "app", targets });
    await gateway.ok("POST", "/api/v1/routes", {
      name: "app",
      service_id: "app",
      hosts: ["app.test"],
    });
  });
  afterAll(async () => {
    await gateway.stop();
    await application.stop(true);
  });

  const host = ["--header", "Host: app.test"];
  const ask = async (url: string, args: string[] = []) => {
    const answer = await curl(url, [...host, ...args]);
    return { ...answer, json: () => JSON.parse(answer.text()) };
  };

  const ways = [
    { way: "HTTP/1.1", secured: false, version: "1.1", args: ["--http1.1"] },
    { way: "HTTP/1.1 over TLS", secured: true, version: "1.1", args: ["--http1.1"] },
    { way: "HTTP/2 over TLS", secured: true, version: "2", args: ["--http2"] },
  ];
  describe.each(ways)("$way", ({ secured, version, args }) => {
    const base = () => (secured ? secure : plain);

    test("GET reaches the application with the client's host and scheme", async () => {
      const answer = await ask(`${base()}/a/b?c=%20d`, args);
      expect([answer.status, answer.version]).toEqual([200, version]);
      expect([answer.header("x-application"), answer.header("set-cookie")]).toEqual(["yes", "a=1"]);
      expect(answer.json()).toMatchObject({
        method: "GET",
        target: "/a/b?c=%20d",
        host: "app.test",
        proto: secured ? "https" : "http",
      });
    });

    test("HEAD has the headers of GET and no body", async () => {
      const [head, get] = [await ask(`${base()}/`, [...args, "--head"]), await ask(base(), args)];
      expect([head.status, head.size]).toEqual([200, 0]);
      expect(head.header("content-type")).toBe(get.header("content-type"));
      expect(head.header("x-application")).toBe("yes");
    });

    test.each([
      { why: "a small body of known length", bytes: 11, chunked: false },
      { why: "a large body of known length", bytes: 3_000_000, chunked: false },
      { why: "a large body of unknown length", bytes: 3_000_000, chunked: true },
    ])("POST carries $why to the last byte", async ({ bytes, chunked }) => {
      const body = "0123456789\n".repeat(Math.ceil(bytes / 11)).slice(0, bytes);
      const path = `${gateway.dataDir}/../upload-${process.pid}-${bytes}`;
      await Bun.write(path, body);
      const coding = chunked && version === "1.1" ? ["--header", "Transfer-Encoding: chunked"] : [];
      const upload = chunked
        ? ["--request", "POST", "--upload-file", path, ...coding]
        : ["--data-binary", `@${path}`];
      const answer = await ask(`${base()}/upload`, [...args, ...upload]);
      await Bun.file(path).delete();
      expect(answer.status).toBe(200);
      expect(answer.json()).toMatchObject({
        method: "POST",
        size: bytes,
        sha256: new Bun.CryptoHasher("sha256").update(body).digest("hex"),
      });
    });

    test("the gateway responds 404 for a host that no route matches", async () => {
      const answer = await curl(`${base()}/`, [...args, "--header", "Host: other.test"]);
      expect(answer.status).toBe(404);
      expect(answer.header("proxy-status")).toStartWith("sluice; error=destination_not_found");
      expect(answer.header("cache-control")).toBe("no-store");
    });
  });

  test("HEAD over a raw connection has no body", async () => {
    const request = "HEAD / HTTP/1.1\r\nHost: app.test\r\nConnection: close\r\n\r\n";
    const answer = parseResponse(await sendRaw(request, { port: gateway.httpPort }));
    expect([answer.status, answer.body]).toEqual([200, ""]);
  });

  test("a connection is reused for the next request", async () => {
    const client = await connectRaw({ port: gateway.httpPort });
    for (let i = 1; i <= 3; i++) {
      client.write("HEAD / HTTP/1.1\r\nHost: app.test\r\n\r\n");
      await eventually(() => client.received.split("HTTP/1.1 200").length === i + 1);
    }
    expect(client.isClosed).toBe(false);
    client.close();
  });

  test.each([
    { scheme: "ws", port: () => gateway.httpPort },
    { scheme: "wss", port: () => gateway.httpsPort },
  ])("a WebSocket echoes text and bytes over $scheme", async ({ scheme, port }) => {
    const options = { headers: { Host: "app.test" }, tls: { rejectUnauthorized: false } };
    const url = `${scheme}://127.0.0.1:${port()}/socket`;
    const socket = new WebSocket(url, options as unknown as string[]);
    socket.binaryType = "arraybuffer";
    const received: unknown[] = [];
    socket.onmessage = ({ data }) =>
      received.push(typeof data === "string" ? data : new Uint8Array(data as ArrayBuffer).length);
    const closed = Promise.withResolvers<number>();
    socket.onclose = ({ code }) => closed.resolve(code);
    await eventually(() => socket.readyState === WebSocket.OPEN);
    socket.send("hello");
    socket.send(new Uint8Array(200_000));
    await eventually(() => received.length === 2);
    expect(received).toEqual(["hello", 200_000]);
    socket.close(1000);
    expect(await closed.promise).toBe(1000);
  });

  test("an application that is down causes a 502 that says so without an address", async () => {
    const closed = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
    closed.stop(true);
    await gateway.ok("POST", "/api/v1/services", {
      name: "down",
      targets: [{ host: "127.0.0.1", port: closed.port }],
    });
    await gateway.ok("POST", "/api/v1/routes", {
      name: "down",
      service_id: "down",
      hosts: ["down.test"],
    });
    const answer = await curl(plain, ["--header", "Host: down.test"]);
    expect([answer.status, answer.header("proxy-status")]).toEqual([
      502,
      expect.stringContaining("error=connection_refused"),
    ]);
    expect(answer.text()).not.toContain(String(closed.port));
  });
});
