// Target responses that are not HTTP/1.1, or whose end is ambiguous: the client gets 502 and the connection is not reused. Those with one
// meaning are refused with `response_parsing: "strict"` alone: ../upstreams/lenient-responses.test.ts has what becomes of them otherwise.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { engines } from "../../support/engines.ts";
import { eventually } from "../../support/poll.ts";
import {
  GET,
  type ScriptedScene,
  startScriptedScene,
  startScriptedScenes,
} from "../../support/scripted-scene.ts";

describe.each(engines)("%s engine:", (engine) => {
  let scene: ScriptedScene;
  let streaming: ScriptedScene;
  let strict: ScriptedScene;
  beforeAll(async () => {
    ({ scene, streaming } = await startScriptedScenes(engine));
    const service = { response_parsing: "strict" } as const;
    strict = await startScriptedScene({ listener: { engine }, service });
  });
  afterAll(() => Promise.all([scene.stop(), streaming.stop(), strict.stop()]));

  /** Targets that have sent no surplus bytes yet: later their connections rest before they are used again. */
  const replaceTargets = async () => {
    await Promise.all([scene.stop(), streaming.stop()]);
    ({ scene, streaming } = await startScriptedScenes(engine));
  };

  const OK = "HTTP/1.1 200 OK\r\n";
  const HEAD = "HEAD / HTTP/1.1\r\nHost: h\r\n\r\n";

  describe("a malformed response is 502, and its connection is closed", () => {
    const rows: [answer: string, token: string, why: string][] = [
      ["HTTP/2 200 OK\r\nContent-Length: 2\r\n\r\nok", "http_protocol_error", "another version"],
      ["http/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "http_protocol_error", "lower case"],
      ["HTTP/1.1 099 OK\r\nContent-Length: 2\r\n\r\nok", "http_protocol_error", "status below 100"],
      ["HTTP/1.1 600 OK\r\nContent-Length: 2\r\n\r\nok", "http_protocol_error", "status over 599"],
      ["HTTP/1.1 20 OK\r\nContent-Length: 2\r\n\r\nok", "http_protocol_error", "two digits"],
      ["HTTP/1.1 2000 OK\r\nContent-Length: 2\r\n\r\nok", "http_protocol_error", "four digits"],
      ["HTTP/1.1 2x0 OK\r\nContent-Length: 2\r\n\r\nok", "http_protocol_error", "no digits"],
      ["SSH-2.0-OpenSSH_9.2\r\n\r\n", "http_protocol_error", "another protocol"],
      ["\x15\x03\x01\x00\x02\x02\x46\r\n\r\n", "http_protocol_error", "TLS where none is expected"],
      [`${OK}X: a\rb\r\nContent-Length: 2\r\n\r\nok`, "http_protocol_error", "bare CR"],
      [`${OK}X: a\0b\r\nContent-Length: 2\r\n\r\nok`, "http_protocol_error", "NUL"],
      [`${OK}: a\r\nContent-Length: 2\r\n\r\nok`, "http_protocol_error", "no name"],
      [`${OK}X(: a\r\nContent-Length: 2\r\n\r\nok`, "http_protocol_error", "no token"],
      [
        `${OK}X\xe9: a\r\nContent-Length: 2\r\n\r\nok`,
        "http_protocol_error",
        "a name that is not ASCII",
      ],
      [
        `${OK}Content-Length: 2\r\nContent-Length: 3\r\n\r\nok`,
        "http_protocol_error",
        "two lengths",
      ],
      [`${OK}Content-Length: +2\r\n\r\nok`, "http_protocol_error", "a sign"],
      [`${OK}Content-Length: -1\r\n\r\nok`, "http_protocol_error", "a sign"],
      [`${OK}Content-Length: 0x2\r\n\r\nok`, "http_protocol_error", "hexadecimal"],
      [`${OK}Content-Length:\r\n\r\nok`, "http_protocol_error", "empty"],
      [
        `${OK}Content-Length: 99999999999999999999\r\n\r\nok`,
        "http_protocol_error",
        "over 64 bits",
      ],
      [
        `${OK}Transfer-Encoding: gzip, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n`,
        "http_protocol_error",
        "a coding that we cannot undo",
      ],
      [`${OK}Transfer-Encoding: chunked\r\n\r\nzz\r\n`, "http_protocol_error", "no chunk size"],
      [
        `${OK}Transfer-Encoding: chunked\r\n\r\n2\r\nokX0\r\n\r\n`,
        "http_protocol_error",
        "no line end behind a chunk",
      ],
      [
        `${OK}Transfer-Encoding: chunked\r\n\r\n+2\r\nok\r\n0\r\n\r\n`,
        "http_protocol_error",
        "a sign in a chunk size",
      ],
      [
        `${OK}Transfer-Encoding: chunked\r\n\r\n0x2\r\nok\r\n0\r\n\r\n`,
        "http_protocol_error",
        "a prefix in a chunk size",
      ],
      [
        `${OK}Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nok`,
        "http_protocol_error",
        "a chunk size over 64 bits",
      ],
      [
        `${OK}Transfer-Encoding: chunked\r\n\r\n2;${"x".repeat(5000)}\r\nok\r\n0\r\n\r\n`,
        "http_protocol_error",
        "an endless extension",
      ],
      [
        `${OK}Transfer-Encoding: chunked\r\n\r\n0\r\nX: ${"x".repeat(5000)}`,
        "http_protocol_error",
        "an endless trailer",
      ],
      [
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
        "http_protocol_error",
        "it has no request",
      ],
      [
        `${OK}X: ${"x".repeat(70_000)}\r\n\r\n`,
        "http_response_header_section_size",
        "a head over 64 KiB",
      ],
      [`${OK}${"X: y\r\n".repeat(20_000)}`, "http_response_header_section_size", "an endless head"],
    ];
    const strictRows: [answer: string, why: string][] = [
      ["HTTP/1.2 200 OK\r\nContent-Length: 2\r\n\r\nok", "another version"],
      ["HTTP/1.1  200 OK\r\nContent-Length: 2\r\n\r\nok", "two spaces"],
      ["\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "an empty line first"],
      ["HTTP/1.1 200 OK\nContent-Length: 2\n\nok", "bare LF everywhere"],
      [`${OK}X: y\nContent-Length: 2\r\n\r\nok`, "bare LF hides a field"],
      [`${OK}X: a\r\n b\r\nContent-Length: 2\r\n\r\nok`, "obs-fold"],
      [`${OK}X: a\r\n b: c\r\nContent-Length: 2\r\n\r\nok`, "obs-fold with a colon"],
      [`${OK}X : a\r\nContent-Length: 2\r\n\r\nok`, "space before the colon"],
      [`${OK}Content-Length : 2\r\n\r\nok`, "space before the colon"],
      [`${OK}Xa\r\nContent-Length: 2\r\n\r\nok`, "no colon"],
      [
        `${OK}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n`,
        "both framings",
      ],
      [
        `${OK}Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n2\r\nok\r\n0\r\n\r\n`,
        "both framings",
      ],
      [`${OK}Content-Length: 2, 2\r\n\r\nok`, "a list"],
      [
        `${OK}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n`,
        "chunked twice",
      ],
      [`${OK}Transfer-Encoding: identity\r\n\r\nok`, "identity"],
      [`${OK}Transfer-Encoding:\r\n\r\nok`, "an empty coding"],
      [
        "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        "chunked in HTTP/1.0",
      ],
      [`${OK}Content-Length: 2\r\n\r\nokX`, "a byte behind the body"],
      [
        `${OK}Content-Length: 2\r\n\r\nok${OK}Content-Length: 4\r\n\r\nevil`,
        "a second answer, which would go to the next client",
      ],
      [`${OK}Content-Length: 0\r\n\r\nX`, "a byte behind an empty body"],
      [
        `${OK}Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\nX`,
        "a byte behind the last chunk",
      ],
      [`${OK}Transfer-Encoding: chunked\r\n\r\n2\nok\n0\n\n`, "bare LF in chunks"],
      ["HTTP/1.1 204 No Content\r\n\r\nok", "204 has no body"],
      ["HTTP/1.1 304 Not Modified\r\nContent-Length: 2\r\n\r\nok", "304 has no body"],
    ];
    test.each(
      rows.map(
        ([answer, token, why]) =>
          [why, JSON.stringify(answer).slice(0, 80), answer, token] as const,
      ),
    )("%s: %s", async (_, __, answer, token) => {
      for (const each of [scene, strict]) {
        const served = await each.askTwice(answer);
        expect(served.outcome).toBe("502");
        expect(served.answers[0]?.header("proxy-status")).toContain(`error=${token};`);
        expect(served.connections).toBe(1);
        expect(each.openConnections()).toBe(1);
      }
    });

    test.each(
      strictRows.map(
        ([answer, why]) => [why, JSON.stringify(answer).slice(0, 80), answer] as const,
      ),
    )("strict: %s: %s", async (_, __, answer) => {
      const served = await strict.askTwice(answer);
      expect(served).toMatchObject({ outcome: "502", connections: 1 });
      expect(served.answers[0]?.header("proxy-status")).toContain("error=http_protocol_error;");
      expect(strict.openConnections()).toBe(1);
    });

    test("strict: a response to HEAD with a body", async () => {
      const served = await strict.askTwice(`${OK}Content-Length: 2\r\n\r\nok`, HEAD);
      expect(served).toMatchObject({ outcome: "502", connections: 1 });
    });

    test("a response without a request is not used for the next one", async () => {
      const plain = `${OK}Content-Length: 5\r\n\r\nplain`;
      await scene.ask(plain);
      const kept = scene.origin.connections.findLast(({ isClosed }) => !isClosed);
      kept?.write(`${OK}Content-Length: 4\r\n\r\nevil`);
      await eventually(() => kept?.isClosed);
      expect((await scene.ask(plain)).answers[0]?.body).toBe("plain");
    });
  });

  describe("the head's size at its limit", () => {
    beforeAll(replaceTargets);

    const headOf = (bytes: number) => {
      const rest = `${OK}Content-Length: 2\r\nX: \r\n\r\n`;
      return `${OK}Content-Length: 2\r\nX: ${"x".repeat(bytes - rest.length)}\r\n\r\n`;
    };

    test.each([
      [65_536, "200"],
      [65_537, "502"],
    ])("%d bytes: %s", async (bytes, outcome) => {
      const served = await scene.askTwice(`${headOf(bytes)}ok`);
      expect(served).toMatchObject({ outcome, connections: outcome === "200" ? 0 : 1 });
    });

    test.each([
      [1024, "200"],
      [1025, "502"],
    ])("%d bytes with max_response_head_bytes 1024: %s", async (bytes, outcome) => {
      const small = await startScriptedScene({
        settings: { limits: { max_response_head_bytes: 1024 } },
      });
      const served = await small.askTwice(`${headOf(bytes)}ok`);
      expect(served).toMatchObject({ outcome, connections: outcome === "200" ? 0 : 1 });
      await small.stop();
    });
  });

  describe("well-formed responses pass, and the connection is reused when possible", () => {
    beforeAll(replaceTargets);

    const rows: [answer: string, body: string, connections: number, why: string][] = [
      [`${OK}Content-Length: 2\r\n\r\nok`, "ok", 0, "a length"],
      [
        `${OK}Content-Length: 2\r\nContent-Length: 2\r\n\r\nok`,
        "ok",
        0,
        "the same length twice (RFC 9110 section 8.6)",
      ],
      [`${OK}Content-Length: 0\r\n\r\n`, "", 0, "nothing"],
      ["HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok", "ok", 0, "no reason and no space"],
      ["HTTP/1.1 200 \r\nContent-Length: 2\r\n\r\nok", "ok", 0, "no reason"],
      [`${OK}Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n`, "ok", 0, "chunks"],
      [
        `${OK}transfer-encoding: Chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n`,
        "ok",
        0,
        "codings have no case",
      ],
      [`${OK}Transfer-Encoding: chunked\r\n\r\n2;a=b\r\nok\r\n0\r\n\r\n`, "ok", 0, "an extension"],
      [
        `${OK}Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX: y\r\n\r\n`,
        "ok",
        0,
        "a trailer, which is dropped",
      ],
      [`${OK}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n`, "", 0, "no chunk"],
      [
        `${OK}Connection: close\r\nContent-Length: 2\r\n\r\nok`,
        "ok",
        1,
        "the target wants to close",
      ],
      [
        `${OK}Connection: Keep-Alive, Close\r\nContent-Length: 2\r\n\r\nok`,
        "ok",
        1,
        "close in a list",
      ],
      ["HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", "ok", 1, "HTTP/1.0 closes"],
      [
        "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok",
        "ok",
        0,
        "HTTP/1.0 that keeps",
      ],
      [
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
        "ok",
        0,
        "100 is skipped",
      ],
      [
        "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
        "ok",
        0,
        "103 is skipped",
      ],
      [
        `${"HTTP/1.1 102 Processing\r\n\r\n".repeat(8)}HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok`,
        "ok",
        0,
        "eight interim responses",
      ],
      [
        `${"HTTP/1.1 103 Early Hints\r\nLink: ".padEnd(32_764, "x")}\r\n\r\n`.repeat(2) +
          "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
        "ok",
        0,
        "interim responses of 64 KB together",
      ],
    ];
    test.each(
      rows.map(([answer, body, connections, why]) => [why, answer, body, connections] as const),
    )("%s", async (_, answer, body, connections) => {
      for (const each of [scene, streaming]) {
        const served = await each.askTwice(answer);
        // docs/limits-of-bun.md: Bun.serve has no interim responses.
        const interim = engine !== "bun" ? [...answer.matchAll(/^HTTP\/1\.1 (10[23])/gm)] : [];
        expect(served).toMatchObject({
          outcome: "200",
          interim: interim.map(([, status]) => Number(status)),
          connections,
        });
        expect(served.answers[0]).toMatchObject({ body, isComplete: true });
        expect(served.answers[0]?.header("x")).toBeNull();
      }
    });

    test.each(["HTTP/1.1", "HTTP/1.0"])(
      "%s, ended by the close of the connection",
      async (version) => {
        const { answers } = await scene.ask((_request, connection) => {
          connection.write(`${version} 200 OK\r\n\r\nok`);
          connection.end();
          return null;
        });
        expect(answers[0]).toMatchObject({ status: 200, body: "ok", isComplete: true });
      },
    );

    test("in pieces of one byte", async () => {
      const bytes = `HTTP/1.1 100 C\r\n\r\n${OK}Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX: y\r\n\r\n`;
      const { answers } = await scene.ask(async (_request, connection) => {
        for (const byte of bytes) {
          connection.write(byte);
          await new Promise((resolve) => setImmediate(resolve));
        }
        return null;
      });
      expect(answers[0]).toMatchObject({ status: 200, body: "ok", isComplete: true });
    });

    test.each([
      ["HTTP/1.1 204 No Content\r\n\r\n", GET, null],
      ["HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n", GET, null],
      ["HTTP/1.1 304 Not Modified\r\nETag: x\r\n\r\n", GET, null],
      ["HTTP/1.1 304 Not Modified\r\nContent-Length: 25\r\n\r\n", GET, "25"],
      ["HTTP/1.1 304 Not Modified\r\n\r\n", HEAD, null],
      [`${OK}Content-Length: 25\r\n\r\n`, HEAD, "25"],
      [`${OK}Content-Length: 5000000\r\n\r\n`, HEAD, "5000000"],
      ["HTTP/1.1 404 Not Found\r\nContent-Length: 9\r\n\r\n", HEAD, "9"],
      [`${OK}X: y\r\n\r\n`, HEAD, null],
      [`${OK}Transfer-Encoding: chunked\r\n\r\n`, HEAD, null],
    ])("%j has no body, and declares the right length", async (answer, request, length) => {
      const served = await scene.askTwice(answer, request);
      expect(served.outcome).toBe(answer.slice(9, 12));
      expect(served.answers[0]).toMatchObject({ body: "", isComplete: true });
      expect(served.answers[0]?.header("content-length")).toBe(length);
      expect(served.rest).toBe("");
      // What speaks of a body rests for a moment.
      const rests = length !== null || answer.includes("chunked");
      expect(served.connections).toBeLessThanOrEqual(rests ? 1 : 0);
    });
  });
});
