// Trailers and the field Trailer in both directions, on each engine and with targets of HTTP/1.1 and HTTP/2: where they pass they are announced.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { connect } from "node:http2";
import { type RunningDataPlane, startDataPlane } from "../../support/data-plane.ts";
import { engines } from "../../support/engines.ts";
import { type Origin, reply, startOrigin } from "../../support/origin.ts";
import { eventually } from "../../support/poll.ts";
import { connectRaw, sendRaw } from "../../support/raw-http.ts";
import { type Http2Target, startHttp2Target } from "../upstream-http2/target.ts";

/** What may pass, what may not, and what is no name. */
const ANNOUNCED = "X-Sum, Content-Length, set-cookie, not valid, x-other, Transfer-Encoding, Host";
const PASSED = "X-Sum, x-other";
/** More than the gateway collects before it begins to respond. */
const LONG = "b".repeat(400_000);

/** The requests of the HTTP/2 target: fields, body and trailers. */
interface Seen {
  readonly trailer: string | undefined;
  readonly body: string;
  readonly trailers: Readonly<Record<string, unknown>>;
}

let http1: Origin;
let http2: Http2Target;
const seen: Seen[] = [];
beforeAll(async () => {
  http1 = startOrigin({
    answer: ({ method, target }) =>
      target.startsWith("/response")
        ? `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: ${ANNOUNCED}\r\n\r\n${method === "HEAD" ? "" : chunked(target)}`
        : reply(),
  });
  http2 = await startHttp2Target((stream, fields) => {
    let body = "";
    let trailers: Readonly<Record<string, unknown>> = {};
    stream.on("data", (piece: Buffer) => (body += piece.toString("latin1")));
    stream.on("trailers", (last) => (trailers = { ...last }));
    stream.on("end", () => {
      seen.push({ trailer: fields.trailer, body, trailers });
      const hasTrailers = fields[":path"]?.startsWith("/response") === true;
      const announced = hasTrailers ? { trailer: ANNOUNCED } : {};
      stream.respond({ ":status": 200, ...announced }, { waitForTrailers: hasTrailers });
      stream.on("wantTrailers", () => stream.sendTrailers({ "x-sum": "1", "x-other": "2" }));
      stream.end(fields[":path"] === "/response/long" ? LONG : "ok");
    });
  });
});
afterAll(() => {
  http1.stop();
  http2.stop();
});

function chunked(target: string): string {
  const body = target === "/response/long" ? LONG : "ok";
  return `${body.length.toString(16)}\r\n${body}\r\n0\r\nX-Sum: 1\r\nx-other: 2\r\nSet-Cookie: a=b\r\n\r\n`;
}

describe.each([...engines])("%s engine:", (engine) => {
  const gateways: Record<string, RunningDataPlane> = {};
  beforeAll(async () => {
    for (const protocol of ["http", "h2c"] as const)
      gateways[protocol] = await startDataPlane({
        services: [
          {
            name: "app",
            protocol,
            // However many requests a session may have by the configuration.
            keepalive: { max_requests: 0 },
            targets: [{ port: protocol === "http" ? http1.port : http2.port }],
          },
        ],
        routes: [{ name: "all", service_id: "app" }],
        listener: { engine },
      });
  });
  afterAll(() => Promise.all(Object.values(gateways).map((gateway) => gateway.stop())));
  const port = (protocol: string) => gateways[protocol]?.port ?? 0;

  describe.each(["http", "h2c"])("of a response of an %s target", (protocol) => {
    const get = (path: string, fields: string) =>
      sendRaw(`GET ${path} HTTP/1.1\r\nHost: h\r\n${fields}\r\n`, { port: port(protocol) });
    const announcedIn = (response: string) =>
      /^trailer: (.*)$/im.exec(response.slice(0, response.indexOf("\r\n\r\n")))?.[1]?.trim();

    const passes = {
      bun: [],
      sluice: ["/response/short", "/response/long"],
    };
    test.each(["/response/short", "/response/long"])(
      "%s, to a client of HTTP/1.1",
      async (path) => {
        const taking = await get(path, "TE: trailers\r\nConnection: TE, close\r\n");
        const plain = await get(path, "Connection: close\r\n");
        const expected = (passes[engine] as string[]).includes(path);
        expect(announcedIn(taking)).toBe(expected ? PASSED : undefined);
        expect(/\r\n0\r\nX-Sum: 1\r\nX-Other: 2\r\n\r\n$/i.test(taking)).toBe(expected);
        expect(announcedIn(plain)).toBeUndefined();
        expect(plain.toLowerCase()).not.toContain("x-sum");
        // Without a body there is nothing that they could follow.
        const head = await sendRaw(
          `HEAD ${path} HTTP/1.1\r\nHost: h\r\nTE: trailers\r\nConnection: TE, close\r\n\r\n`,
          { port: port(protocol) },
        );
        expect(head).toStartWith("HTTP/1.1 200");
        expect(announcedIn(head)).toBeUndefined();
      },
    );

    if (engine === "sluice")
      test.each(["/response/short", "/response/long"])(
        "%s, to a client of HTTP/2",
        async (path) => {
          const session = connect(`http://127.0.0.1:${port(protocol)}`);
          const stream = session.request({ ":path": path });
          let [head, trailers]: Record<string, unknown>[] = [{}, {}];
          stream.on("response", (fields) => (head = fields));
          stream.on("trailers", (fields) => (trailers = fields));
          stream.resume();
          await new Promise((resolve) => stream.on("close", resolve));
          session.destroy();
          expect(head?.["trailer"]).toBe(PASSED);
          expect(trailers).toMatchObject({ "x-sum": "1", "x-other": "2" });
          expect(trailers).not.toContainKey("set-cookie");
        },
      );
  });

  describe("of a request", () => {
    const post = (protocol: string, { fields = "", trailers = "" }) =>
      sendRaw(
        `POST /request HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n${fields}Connection: close, X-Hop\r\n\r\n3\r\nabc\r\n0\r\n${trailers}\r\n`,
        { port: port(protocol) },
      );
    const isOwn = engine === "sluice";
    const fields = `Trailer: ${ANNOUNCED}, X-Forwarded-For, x-hop\r\n`;
    // Bun refuses requests with trailers.
    const trailers =
      engine === "bun"
        ? ""
        : "X-Sum: 1\r\nx-other: 2\r\nx-other: 3\r\nX-Forwarded-For: 10.0.0.1\r\nX-Hop: 4\r\n";

    test("to an HTTP/1.1 target", async () => {
      expect(await post("http", { fields, trailers })).toStartWith("HTTP/1.1 200");
      const request = http1.requests.at(-1);
      expect(request?.header("trailer")).toBe(isOwn ? PASSED : null);
      expect(request?.body.replace(/^3\r\nabc\r\n/, "")).toBe(
        isOwn ? "0\r\nX-Sum: 1\r\nx-other: 2\r\nx-other: 3\r\n\r\n" : "0\r\n\r\n",
      );
    });

    test("to an HTTP/2 target", async () => {
      seen.length = 0;
      expect(await post("h2c", { fields, trailers })).toStartWith("HTTP/1.1 200");
      await eventually(() => seen.length === 1);
      expect(seen[0]).toMatchObject({
        trailer: isOwn ? PASSED : undefined,
        body: "abc",
      });
      expect(Object.entries(seen[0]?.trailers ?? {})).toEqual(
        isOwn
          ? [
              ["x-sum", "1"],
              ["x-other", "2, 3"],
            ]
          : [],
      );
    });

    if (isOwn)
      test("of 1,200 requests to an HTTP/2 target, which ends a session after 1,000 empty frames", async () => {
        seen.length = 0;
        const before = http2.requests.length;
        const client = await connectRaw({ port: port("h2c") });
        const request = `POST /request HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-Sum: 1\r\n\r\n`;
        for (let count = 1; count <= 1200; count++) {
          client.write(request);
          await client.until((received) => received.split("HTTP/1.1 200").length > count);
        }
        client.close();
        expect(seen.filter(({ trailers: last }) => last["x-sum"] === "1")).toHaveLength(1200);
        // None was sent again because a session ended in the middle of it.
        expect(http2.requests.length - before).toBe(1200);
      });

    test.each(["http", "h2c"])("without any, to an %s target", async (protocol) => {
      seen.length = 0;
      expect(await post(protocol, {})).toStartWith("HTTP/1.1 200");
      if (protocol === "h2c")
        expect(seen).toEqual([{ trailer: undefined, body: "abc", trailers: {} }]);
      else expect(http1.requests.at(-1)).toMatchObject({ body: "3\r\nabc\r\n0\r\n\r\n" });
    });

    test.each(["http", "h2c"])("of a request with a length, to an %s target", async (protocol) => {
      seen.length = 0;
      const head = `POST /request HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nTrailer: X-Sum\r\n`;
      const response = await sendRaw(`${head}Connection: close\r\n\r\nabc`, {
        port: port(protocol),
      });
      expect(response).toStartWith("HTTP/1.1 200");
      if (protocol === "h2c") expect(seen[0]?.trailer).toBeUndefined();
      else expect(http1.requests.at(-1)?.header("trailer")).toBeNull();
    });
  });
});
