// Request bodies: Expect, trailers, pipelining, HTTP/1.0, and clients that disconnect midway.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { engines } from "../../support/engines.ts";
import {
  type LenientScene,
  refused,
  served,
  startLenientScene,
} from "../../support/lenient-scene.ts";
import { eventually } from "../../support/poll.ts";
import { exchange, read } from "../../support/raw-exchange.ts";
import { connectRaw } from "../../support/raw-http.ts";

describe.each(engines)("%s engine:", (engine) => {
  let scene: LenientScene;
  let limited: LenientScene;
  beforeAll(async () => {
    scene = await startLenientScene({ listener: { engine } });
    limited = await startLenientScene({
      settings: { limits: { body_read_timeout: 300 } },
      listener: { engine, max_body_bytes: 1000 },
    });
  });
  afterAll(() => Promise.all([scene.stop(), limited.stop()]));

  const post = (fields: string, body = "") =>
    `POST /a HTTP/1.1\r\nHost: h\r\n${fields}\r\n\r\n${body}`;

  describe("Expect: 100-continue", () => {
    test("gets its 100 before the body arrives, from the gateway unless its own engine asks the target", async () => {
      scene.origin.forget();
      const client = await connectRaw({ port: scene.gateway.port });
      client.write(post("Content-Length: 2\r\nExpect: 100-continue"));
      expect(await client.until("\r\n\r\n")).toBe("HTTP/1.1 100 Continue\r\n\r\n");
      client.write("ab");
      const answers = await client.until("/a");
      expect(read(answers, false)).toMatchObject({ interim: [100], outcome: "200" });
      client.close();
      expect(scene.origin.executed[0]?.body).toBe("ab");
      expect(scene.origin.executed[0]?.header("expect")).toBe(
        engine === "sluice" ? "100-continue" : null,
      );
    });

    test("applies to chunked bodies and to those sent at once", async () => {
      const chunked = post(
        "Transfer-Encoding: chunked\r\nExpect: 100-continue",
        "2\r\nab\r\n0\r\n\r\n",
      );
      for (const bytes of [chunked, post("Content-Length: 2\r\nExpect: 100-continue", "ab")]) {
        const seen = await scene.probe(bytes);
        expect(seen).toMatchObject({ ...served(["POST /a"]), interim: [100] });
        // Our own engine lets the target decide.
        expect(seen.executed[0]?.header("expect")).toBe(
          engine === "sluice" ? "100-continue" : null,
        );
      }
    });

    // docs/limits-of-bun.md: RFC 9110 section 10.1.1 compares it without case.
    test("in another case gets no 100 from Bun.serve: clients wait a moment and send the body", async () => {
      const seen = await scene.probe(post("Content-Length: 2\r\nExpect: 100-Continue", "ab"));
      const interim = engine === "bun" ? [] : [100];
      expect(seen).toMatchObject({ ...served(["POST /a"]), interim });
      expect(seen.executed[0]?.header("expect")).toBe(engine === "sluice" ? "100-continue" : null);
    });

    test("an unknown expectation is ignored and not forwarded", async () => {
      const seen = await scene.probe(post("Content-Length: 2\r\nExpect: miracles", "ab"));
      expect(seen).toMatchObject({ ...served(["POST /a"]), interim: [] });
      expect(seen.executed[0]?.header("expect")).toBeNull();
    });
  });

  describe("trailers", () => {
    test.each([
      ["X-A: b", "a trailer"],
      ["Transfer-Encoding: chunked", "a framing field as trailer"],
      ["Content-Length: 5", "a framing field as trailer"],
      ["no field", "rubbish"],
    ])(
      "of a request with the trailer %j (%s) no field reaches the origin, but a plain one through our own engine; Bun.serve responds with 400",
      async (trailer) => {
        const isDropped = engine !== "bun" && trailer === "X-A: b";
        const seen = await scene.probe(
          post("Transfer-Encoding: chunked", `2\r\nab\r\n0\r\n${trailer}\r\n\r\n`),
          { answers: isDropped ? 1 : 2 },
        );
        if (isDropped) expect(seen).toMatchObject(served(["POST /a"]));
        else if (engine !== "bun")
          expect(seen).toMatchObject({ ...refused("400"), isClosed: true });
        else
          expect(seen).toMatchObject({
            outcome: "400",
            ambiguous: [],
            canary: "200 /canary",
            isClosed: true,
          });
        // Only our own engine hands trailers on, but none of framing.
        const isPassed = engine === "sluice" && isDropped;
        for (const received of scene.origin.received)
          if (isPassed) expect(received).toContain(`\r\n0\r\n${trailer}\r\n\r\n`);
          else expect(received.slice(received.indexOf("\r\n\r\n"))).not.toContain(trailer);
        // Bun hands the body over as complete before it looks at the trailers: the origin may have processed it.
        expect(seen.executed.every(({ body }) => body === "ab")).toBe(true);
      },
    );

    test("TE and Trailer are not forwarded, because the gateway supports no trailers", async () => {
      const seen = await scene.probe(
        post("TE: trailers\r\nTrailer: X-A\r\nConnection: TE\r\nContent-Length: 2", "ab"),
      );
      expect(seen).toMatchObject(served(["POST /a"]));
      for (const name of ["te", "trailer", "connection"])
        expect(seen.executed[0]?.header(name)).toBeNull();
    });
  });

  describe("several requests on one connection", () => {
    test("sequential, with and without body, each get their own response", async () => {
      scene.origin.forget();
      const client = await connectRaw({ port: scene.gateway.port });
      const requests = [
        "GET /1 HTTP/1.1\r\nHost: h\r\n\r\n",
        "POST /2 HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nab",
        "POST /3 HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n",
        "PUT /4 HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n",
        "GET /5 HTTP/1.1\r\nHost: h\r\n\r\n",
      ];
      for (const [index, bytes] of requests.entries()) {
        client.write(bytes);
        await client.until((received) => read(received, false).answers.length === index + 1);
      }
      expect(read(client.received, false).answers.map(({ body }) => body)).toEqual([
        "/1",
        "/2",
        "/3",
        "/4",
        "/5",
      ]);
      client.close();
      expect(scene.origin.lines).toEqual(["GET /1", "POST /2", "POST /3", "PUT /4", "GET /5"]);
      expect(scene.origin.ambiguous).toEqual([]);
    });

    // docs/limits-of-bun.md: Bun closes the connection when a request arrives behind a pending one.
    test("pipelined: Bun.serve closes the connection without a response; the second request is not processed", async () => {
      const seen = await scene.probe(
        "GET /1 HTTP/1.1\r\nHost: h\r\n\r\nGET /2 HTTP/1.1\r\nHost: h\r\n\r\n",
        { answers: 2 },
      );
      if (engine !== "bun") {
        expect(seen).toMatchObject(served(["GET /1", "GET /2"]));
        expect(seen.answers.map(({ body }) => body)).toEqual(["/1", "/2"]);
        return;
      }
      expect(seen).toMatchObject({ outcome: "closed", isClosed: true, canary: "200 /canary" });
      expect(seen.lines).not.toContain("GET /2");
    });

    test("bytes behind a body are the next request, never part of this one", async () => {
      const seen = await scene.probe(
        post("Content-Length: 2", "abGET /2 HTTP/1.1\r\nHost: h\r\n\r\n"),
        {
          answers: 2,
        },
      );
      if (engine !== "bun") expect(seen).toMatchObject(served(["POST /a", "GET /2"]));
      else expect(seen.lines).not.toContain("GET /2");
      expect(seen).toMatchObject({ ambiguous: [], canary: "200 /canary" });
      for (const { method, body } of seen.executed)
        expect(body).toBe(method === "POST" ? "ab" : "");
    });

    test("a rejection closes the connection, since the following bytes cannot be trusted", async () => {
      for (const bytes of [
        "GET /a HTTP/1.1\r\nHost: a b\r\n\r\n",
        "GET /#x HTTP/1.1\r\nHost: h\r\n\r\n",
      ]) {
        const client = await connectRaw({ port: scene.gateway.port });
        client.write(bytes);
        const { answers } = read(await client.untilClosed(), true);
        expect(answers[0]).toMatchObject({ status: 400, isComplete: true });
      }
    });
  });

  describe("HTTP/1.0 clients", () => {
    test("get a response, and the connection closes", async () => {
      const seen = await scene.probe("GET /a HTTP/1.0\r\nHost: h\r\n\r\n", { answers: 2 });
      expect(seen).toMatchObject({ ...served(["GET /a"]), isClosed: true });
      expect(seen.executed[0]?.head).toStartWith("GET /a HTTP/1.1\r\n");
    });

    test("may send a body with a length", async () => {
      const seen = await scene.probe("POST /a HTTP/1.0\r\nHost: h\r\nContent-Length: 2\r\n\r\nab");
      expect(seen).toMatchObject(served(["POST /a"]));
      expect(seen.executed[0]?.body).toBe("ab");
    });

    test("may not send a chunked one, which HTTP/1.0 lacks", async () => {
      const bytes = "POST /a HTTP/1.0\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
      expect(await scene.probe(bytes)).toMatchObject(refused("400"));
    });

    test("with Connection: keep-alive get a response", async () => {
      const seen = await scene.probe(
        "GET /a HTTP/1.0\r\nHost: h\r\nConnection: keep-alive\r\n\r\n",
      );
      expect(seen).toMatchObject(served(["GET /a"]));
      expect(seen.executed[0]?.header("connection")).toBeNull();
    });
  });

  describe("a client that disconnects within its body", () => {
    const rows = [
      ["of known length", post("Content-Length: 20", "ab")],
      ["chunked", post("Transfer-Encoding: chunked", "2\r\nab\r\n")],
      ["chunked, in the middle of a chunk", post("Transfer-Encoding: chunked", "9\r\nab")],
      ["chunked, before the last line", post("Transfer-Encoding: chunked", "2\r\nab\r\n0\r\n")],
      ["long", post("Content-Length: 100000", "b".repeat(50_000))],
    ] as const;
    const ways = ["close", "reset", "end"] as const;
    test.each(rows.flatMap(([name, bytes]) => ways.map((way) => [name, way, bytes] as const)))(
      "%s, by %s: the origin's connection is closed and it never sees a complete request",
      async (name, way, bytes) => {
        scene.origin.forget();
        const client = await connectRaw({ port: scene.gateway.port });
        client.write(bytes);
        if (!name.startsWith("chunked, in"))
          await eventually(() => scene.origin.received.some((text) => text.includes("POST /a")));
        client[way]();
        await eventually(() => scene.origin.openConnections <= 1);
        const after = await exchange("GET /b HTTP/1.1\r\nHost: h\r\n\r\n", {
          port: scene.gateway.port,
        });
        expect(after.answers[0]?.body).toBe("/b");
        if (name.startsWith("chunked, before")) {
          // Bun treats the last chunk as the end of the body, before its empty line.
          expect(scene.origin.executed.every(({ body }) => ["ab", ""].includes(body))).toBe(true);
        } else expect(scene.origin.lines).toEqual(["GET /b"]);
        expect(scene.origin.ambiguous).toEqual([]);
        client.close();
      },
    );
  });

  describe("a body that is rejected midway", () => {
    test("stops arriving: 408, and the origin never sees it complete", async () => {
      const seen = await limited.probe(post("Content-Length: 20", "ab"));
      expect(seen).toMatchObject(refused("408"));
      expect(seen.answers[0]?.header("proxy-status")).toContain("http_request");
    });

    test("stops arriving in a chunk: the same", async () => {
      expect(await limited.probe(post("Transfer-Encoding: chunked", "2\r\nab\r\n"))).toMatchObject(
        refused("408"),
      );
    });

    test("grows over the limit while it is streamed: 413, and the origin's connection is not reused", async () => {
      limited.origin.forget();
      const client = await connectRaw({ port: limited.gateway.port });
      client.write(post("Transfer-Encoding: chunked", `2bc\r\n${"b".repeat(700)}\r\n`));
      await eventually(() => limited.origin.received.some((text) => text.includes("bbb")));
      client.write(`2bc\r\n${"b".repeat(700)}\r\n`);
      await client.until((received) => read(received, false).outcome === "413");
      client.close();
      expect(limited.origin.lines).toEqual([]);
      const after = await exchange("GET /b HTTP/1.1\r\nHost: h\r\n\r\n", {
        port: limited.gateway.port,
      });
      expect(after.answers[0]?.body).toBe("/b");
      expect(limited.origin.lines).toEqual(["GET /b"]);
    });
  });
});
