// Header fields of responses on the way to the client, and of requests on the way to the target.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { engines } from "../../support/engines.ts";
import { GET, type ScriptedScene, startScriptedScenes } from "../../support/scripted-scene.ts";

describe.each(engines)("%s engine:", (engine) => {
  let scene: ScriptedScene;
  let streaming: ScriptedScene;
  beforeAll(async () => {
    ({ scene, streaming } = await startScriptedScenes(engine));
  });
  afterAll(() => Promise.all([scene.stop(), streaming.stop()]));

  const answer = (lines: readonly string[], body = "ok") =>
    `HTTP/1.1 200 OK\r\n${lines.map((line) => `${line}\r\n`).join("")}Content-Length: ${body.length}\r\n\r\n${body}`;

  /** Fields of the response with that name, in order. */
  async function valuesOf(name: string, lines: readonly string[], each = scene): Promise<string[]> {
    const { answers } = await each.ask(answer(lines));
    expect(answers[0]).toMatchObject({ status: 200, body: "ok", isComplete: true });
    return (answers[0]?.fields ?? []).filter(([known]) => known === name).map(([, value]) => value);
  }

  describe("fields of a response", () => {
    test.each([
      [
        "set-cookie",
        ["Set-Cookie: a=1; Expires=Wed, 21 Oct 2026 07:28:00 GMT", "Set-Cookie: b=2"],
        ["a=1; Expires=Wed, 21 Oct 2026 07:28:00 GMT", "b=2"],
        "cookies stay apart",
      ],
      ["x-a", ["X-A: 1", "X-B: 2", "X-A: 3"], ["1, 3"], "repeated fields are joined"],
      ["vary", ["Vary: A", "Vary: B"], ["A, B"], "repeated lists are joined"],
      [
        "date",
        ["Date: Tue, 01 Jan 2019 00:00:00 GMT"],
        ["Tue, 01 Jan 2019 00:00:00 GMT"],
        "the target's Date is kept",
      ],
      ["server", ["Server: origin/1"], ["origin/1"], "the target's Server is kept"],
      ["server", [], [], "no Server is made up"],
      ["content-type", [], [], "no Content-Type is made up"],
      ["content-type", ["Content-Type: text/x"], ["text/x"], "a Content-Type is kept as it is"],
      [
        "content-encoding",
        ["Content-Encoding: gzip"],
        ["gzip"],
        "a content coding is the target's affair",
      ],
      ["x-a", ["X-A: caf\xe9 \xff"], ["caf\xe9 \xff"], "bytes over 127 pass"],
      ["x-a", ["X-A: \xc3\xa9"], ["\xc3\xa9"], "UTF-8 stays the same bytes"],
      ["x-a", ["X-A:"], [""], "an empty value"],
      ["constructor", ["constructor: v"], ["v"], "a name that objects have"],
      ["__proto__", ["__proto__: v"], ["v"], "a name that objects have"],
      ["tostring", ["toString: v", "hasOwnProperty: w"], ["v"], "a name that objects have"],
      ["x_a", ["X_A: v"], ["v"], "an underscore"],
      [
        "location",
        ["Location: http://internal:8080/x"],
        ["http://internal:8080/x"],
        "a location is not rewritten",
      ],
      ["via", ["Via: 1.1 other"], ["1.1 other"], "the target's Via"],
      ["etag", ['ETag: W/"x"'], ['W/"x"'], "an entity tag"],
      ["alt-svc", ['Alt-Svc: h3=":443"'], ['h3=":443"'], "not hop-by-hop"],
    ] as const)("%s of %j is %j: %s", async (name, lines, expected) => {
      for (const each of [scene, streaming]) {
        const values = await valuesOf(name, lines, each);
        // Our own engine forwards lines as they came.
        const isSplit = engine === "sluice" && name !== "set-cookie" && values.length > 0;
        expect(isSplit ? [values.join(", ")] : values).toEqual([...expected]);
      }
    });

    test.each([
      ["Connection: keep-alive"],
      ["Keep-Alive: timeout=5"],
      ["Proxy-Connection: keep-alive"],
      ["Proxy-Authenticate: Basic"],
      ["Trailer: X-A"],
      ["TE: trailers"],
      ["Upgrade: h2c"],
    ])("%s belongs to the connection and is removed", async (line) => {
      expect(await valuesOf(line.slice(0, line.indexOf(":")).toLowerCase(), [line])).toEqual([]);
      expect(
        await valuesOf(line.slice(0, line.indexOf(":")).toLowerCase(), [line.toUpperCase()]),
      ).toEqual([]);
    });

    test.each([
      ["Connection: x-secret"],
      ["Connection: close, X-Secret"],
      ["Connection: keep-alive,x-other , X-SECRET"],
      ["Connection: close\r\nConnection: x-secret"],
    ])("what %j names is removed", async (connection) => {
      expect(await valuesOf("x-secret", [connection, "X-Secret: 1", "X-Kept: 2"])).toEqual([]);
      expect(await valuesOf("x-kept", [connection, "X-Secret: 1", "X-Kept: 2"])).toEqual(["2"]);
      expect(await valuesOf("x-secret", ["X-Secret: 1", connection])).toEqual([]);
    });

    test("a target cannot remove its own Content-Length or Set-Cookie by naming it: the response stays framed", async () => {
      const { answers } = await scene.ask(
        answer(["Connection: content-length, transfer-encoding"]),
      );
      expect(answers[0]).toMatchObject({ status: 200, body: "ok", isComplete: true });
    });

    test.each([0, 1, 100, 14_999, 15_000, 15_001, 70_000, 300_000])(
      "a body of %d bytes keeps its length and its bytes, with a type and without",
      async (size) => {
        const body = "abcdefghij".repeat(size / 10 + 1).slice(0, size);
        for (const lines of [[], ["Content-Type: a/b"], ["Set-Cookie: a=1", "Set-Cookie: b=1"]]) {
          const { answers } = await scene.ask(answer(lines, body));
          expect(answers[0]?.header("content-length")).toBe(String(size));
          expect(answers[0]?.header("content-type")).toBe(
            lines.includes("Content-Type: a/b") ? "a/b" : null,
          );
          expect(answers[0]?.body === body).toBe(true);
        }
      },
    );

    test.each([
      200, 201, 202, 203, 206, 207, 226, 300, 301, 302, 303, 307, 308, 400, 401, 403, 404, 405, 410,
      418, 422, 429, 451, 500, 501, 502, 503, 504, 508, 511, 599,
    ])("status %d passes with body and fields", async (status) => {
      const { answers } = await scene.ask(
        `HTTP/1.1 ${status} Whatever\r\nX-A: b\r\nContent-Length: 2\r\n\r\nok`,
      );
      expect(answers[0]).toMatchObject({ status, body: "ok", isComplete: true });
      expect(answers[0]?.header("x-a")).toBe("b");
      expect(answers[0]?.header("proxy-status")).toBeNull();
    });
  });

  describe("fields of a request", () => {
    async function sent(lines: readonly string[], method = "GET") {
      const before = scene.origin.requests.length;
      const head = `${method} / HTTP/1.1\r\nHost: h\r\n${lines.map((line) => `${line}\r\n`).join("")}\r\n`;
      const { outcome } = await scene.ask(answer([]), head);
      expect(outcome).toBe("200");
      return scene.origin.requests[before]!;
    }

    test.each([
      "Connection: keep-alive",
      "Keep-Alive: timeout=5",
      "Proxy-Connection: keep-alive",
      "Proxy-Authenticate: Basic",
      "Proxy-Authorization: Basic eDp5",
      "TE: trailers",
      "Trailer: X-A",
      "Upgrade: h2c",
      "HTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA",
    ])("%s belongs to the connection and is removed", async (line) => {
      expect((await sent([line])).header(line.slice(0, line.indexOf(":")))).toBeNull();
    });

    test("repeated fields are joined, cookies with a semicolon", async () => {
      const request = await sent(["X-A: 1", "X-A: 2", "Cookie: a=1", "Cookie: b=2"]);
      // Our own engine forwards lines as they came. Cookies are one list to it as well (RFC 6265 section 5.4).
      expect(request.fields.filter(([name]) => name === "x-a")).toEqual(
        engine === "sluice"
          ? [
              ["x-a", "1"],
              ["x-a", "2"],
            ]
          : [["x-a", "1, 2"]],
      );
      expect(request.fields.filter(([name]) => name === "cookie")).toEqual([
        ["cookie", "a=1; b=2"],
      ]);
    });

    test("nothing is added that the client did not send", async () => {
      const request = await sent([]);
      expect(request.fields.map(([name]) => name).sort()).toEqual([
        "cdn-loop",
        "host",
        "via",
        "x-forwarded-for",
        "x-forwarded-host",
        "x-forwarded-port",
        "x-forwarded-proto",
        "x-real-ip",
        "x-request-id",
      ]);
    });

    test.each([
      ["Authorization: Bearer x"],
      ["Accept-Encoding: br, gzip"],
      ["User-Agent: x/1"],
      ['If-None-Match: "x"'],
      ["Range: bytes=0-1"],
      ["Origin: https://x"],
      ["Sec-Fetch-Mode: cors"],
      ['X-Custom: a, b; c="d, e"'],
    ])("%s passes as it is", async (line) => {
      const colon = line.indexOf(":");
      expect((await sent([line])).header(line.slice(0, colon))).toBe(line.slice(colon + 2));
    });

    test("Via is appended to", async () => {
      expect((await sent(["Via: 1.0 first"])).header("via")).toBe("1.0 first, 1.1 sluice");
    });

    test("GET without body has no framing field; POST without body says so", async () => {
      expect((await sent([])).header("content-length")).toBeNull();
      expect((await sent([], "POST")).header("content-length")).toBe("0");
      expect((await sent([], "DELETE")).header("content-length")).toBeNull();
    });
  });

  describe("loops (RFC 8586)", () => {
    const own = "sluice-test";
    const ask = (value: string) =>
      scene.ask(answer([]), GET.replace("\r\n\r\n", `\r\nCDN-Loop: ${value}\r\n\r\n`));

    test.each([own, `other, ${own}`, `${own}; a=b`, `other;x="y" ,${own},third`, ` ${own} `])(
      "the gateway's token in %j: 508",
      async (value) => {
        const before = scene.origin.requests.length;
        const { outcome, answers } = await ask(value);
        expect(outcome).toBe("508");
        expect(answers[0]?.header("proxy-status")).toContain("proxy_loop_detected");
        expect(scene.origin.requests.length).toBe(before);
      },
    );

    test("the gateway's token in one of two fields: 508", async () => {
      expect((await ask(`other\r\nCDN-Loop: ${own}`)).outcome).toBe("508");
    });

    test("the gateway's token that Connection names: also 508", async () => {
      expect((await ask(`${own}\r\nConnection: cdn-loop`)).outcome).toBe("508");
    });

    test.each(["other", "sluice-other", "sluice-tester; x", "xsluice-test"])(
      "%j of another gateway passes, and ours is appended",
      async (value) => {
        expect((await ask(value)).outcome).toBe("200");
        expect(scene.origin.requests.at(-1)?.header("cdn-loop")).toBe(`${value}, ${own}`);
      },
    );
  });
});
