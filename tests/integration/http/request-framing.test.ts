// The gateway and every origin must agree on the length of a request body: all odd forms over raw sockets.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { engines } from "../../support/engines.ts";
import {
  type LenientScene,
  refused,
  served,
  startLenientScene,
} from "../../support/lenient-scene.ts";

describe.each(engines)("%s engine:", (engine) => {
  let scene: LenientScene;
  beforeAll(async () => {
    scene = await startLenientScene({ listener: { engine } });
  });
  afterAll(() => scene.stop());

  const SMUGGLED = "GET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n";
  const post = (fields: string, body: string) =>
    `POST /a HTTP/1.1\r\nHost: h\r\n${fields}\r\n\r\n${body}`;

  describe("a request with an ambiguous length is rejected and never forwarded", () => {
    const rows: [fields: string, body: string, why: string][] = [
      [
        "Content-Length: 4\r\nTransfer-Encoding: chunked",
        `0\r\n\r\n${SMUGGLED}`,
        "CL.TE: a target that honours the length reads the second request apart",
      ],
      [
        "Transfer-Encoding: chunked\r\nContent-Length: 4",
        `0\r\n\r\n${SMUGGLED}`,
        "TE.CL, the same in the other order",
      ],
      [
        "Content-Length: 1\r\nContent-Length: 2",
        "ab",
        "two lengths: some take the first, some the last",
      ],
      ["Content-Length: 0\r\nContent-Length: 36", SMUGGLED, "a request hidden between two lengths"],
      [
        "Content-Length: 2\r\nContent-Length: 2",
        "ab",
        "Bun joins them to `2, 2`, which is no number",
      ],
      ["Content-Length: 2, 2", "ab", "a list, though of equal numbers"],
      ["Content-Length: 2, 3", "ab", "a list"],
      ["Content-Length : 2", "ab", "space before the colon hides the field from some"],
      ["Transfer-Encoding : chunked", `0\r\n\r\n${SMUGGLED}`, "space before the colon"],
      ["Transfer-Encoding\t: chunked", `0\r\n\r\n${SMUGGLED}`, "tab before the colon"],
      ["Transfer-Encoding:\r\n chunked", `0\r\n\r\n${SMUGGLED}`, "obs-fold"],
      ["X-A: b\r\n\tTransfer-Encoding: chunked", `0\r\n\r\n${SMUGGLED}`, "obs-fold with a tab"],
      ["X-A: b\r\n Content-Length: 36", SMUGGLED, "obs-fold that hides a length"],
      ["X-A: b\nTransfer-Encoding: chunked", `0\r\n\r\n${SMUGGLED}`, "bare LF hides a field"],
      ["X-A: b\rTransfer-Encoding: chunked", `0\r\n\r\n${SMUGGLED}`, "bare CR hides a field"],
      ["Transfer-Encoding: chunked\r\nTransfer-Encoding: identity", "0\r\n\r\n", "two codings"],
      ["Transfer-Encoding: identity\r\nTransfer-Encoding: chunked", "0\r\n\r\n", "two codings"],
      ["Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", "0\r\n\r\n", "chunked twice"],
      [": x\r\nContent-Length: 2", "ab", "an empty name (HAProxy CVE-2023-25725)"],
    ];
    test.each(rows)("%j %j: %s", async (fields, body) => {
      const seen = await scene.probe(post(fields, body), { answers: 2 });
      expect(seen).toMatchObject(refused("400"));
      expect(seen.isClosed).toBe(true);
    });
  });

  describe("a Content-Length that is not plain digits is rejected", () => {
    const values: [value: string, why: string][] = [
      ["", "empty (node CVE-2022-32213 and others)"],
      ["+2", "a sign, which strtol takes"],
      ["-2", "a sign"],
      ["-0", "a sign"],
      ["2 2", "white space inside"],
      ["0x2", "hexadecimal, which Number() takes"],
      ["1e1", "an exponent, which Number() takes"],
      ["2.0", "a fraction, which Number() takes"],
      ["2a", "rubbish behind, which parseInt takes"],
      ["2;", "a parameter"],
      ["'2'", "quotes"],
      ["2_0", "a digit separator"],
      ["\x0b2", "vertical tab, which isspace takes"],
      ["2\x0c", "form feed"],
      ["2\0", "NUL, where C strings end"],
      ["\xb2", "a digit only to Unicode"],
      ["9223372036854775808", "over 63 bits"],
      [
        "18446744073709551618",
        "over 64 bits: 2 when cut off (HAProxy CVE-2021-40346 was of this kind)",
      ],
      ["99999999999999999999999", "far over 64 bits"],
    ];
    test.each(values)("%j: %s", async (value) => {
      expect(await scene.probe(post(`Content-Length: ${value}`, "ab"))).toMatchObject(
        refused("400"),
      );
    });

    test.each([
      ["9007199254740993", "more than a JavaScript number holds exactly"],
      ["1000000000000000", "more digits than the gateway takes"],
    ])("%j: %s", async (value) => {
      const seen = await scene.probe(post(`Content-Length: ${value}`, "ab"));
      expect(seen.outcome).toMatch(/^4(?:00|13)$/);
      expect(seen).toMatchObject({ lines: [], ambiguous: [], canary: "200 /canary" });
    });
  });

  describe("whitespace around a length and leading zeros are removed", () => {
    test.each(["2", " 2 ", "\t2", "2\t ", "002", "0000000000002"])("%j", async (value) => {
      const seen = await scene.probe(post(`Content-Length: ${value}`, "ab"));
      expect(seen).toMatchObject(served(["POST /a"]));
      expect(seen.executed[0]?.body).toBe("ab");
      expect(seen.executed[0]?.head).toContain("\r\nContent-Length: 2");
    });

    test.each(["0", "00", "000000"])("%j is no body", async (value) => {
      const seen = await scene.probe(post(`Content-Length: ${value}`, ""));
      expect(seen).toMatchObject(served(["POST /a"]));
      expect(seen.executed[0]?.head).toContain("\r\nContent-Length: 0");
    });
  });

  describe("any transfer coding but exactly `chunked` is rejected", () => {
    const values: [value: string, why: string][] = [
      ["", "empty"],
      ["chunked, chunked", "twice"],
      ["chunked,chunked", "twice"],
      ["gzip, chunked", "a coding that we cannot undo"],
      ["chunked, gzip", "chunked is not the last"],
      ["identity, chunked", "identity, which RFC 9112 no longer knows"],
      ["identity", "identity"],
      ["gzip", "no chunked: the end is unknown"],
      [",chunked", "an empty element, which Bun lets through"],
      ["chunked,", "an empty element, which Bun lets through"],
      [" , chunked", "an empty element"],
      ["xchunked", "ends in chunked"],
      ["chunkedx", "begins with chunked"],
      ["chunkedchunked", "contains chunked"],
      ["chunked;q=1", "a parameter"],
      ['"chunked"', "quoted"],
      ["'chunked'", "quoted"],
      ["x: chunked", "looks like a field"],
      ["chun ked", "space inside"],
      ["chu\tnked", "tab inside"],
      ["\x0bchunked", "vertical tab (node CVE-2019-15605)"],
      ["chunked\x0b", "vertical tab"],
      ["chunked\x0c", "form feed"],
      ["\0chunked", "NUL"],
      ["chunked\0", "NUL"],
      ["\xa0chunked", "no-break space"],
      ["Chunked", "another case: stricter than RFC 9112 section 7, since some compare bytes"],
      ["CHUNKED", "another case"],
      ["cow", "unknown"],
    ];
    test.each(values)("%j: %s", async (value) => {
      const bytes = post(`Transfer-Encoding: ${value}`, `2\r\nab\r\n0\r\n\r\n`);
      expect(await scene.probe(bytes)).toMatchObject(refused("400"));
    });

    test.each(["chunked", " chunked", "\tchunked", "chunked\t", "chunked  "])(
      "%j is chunked",
      async (value) => {
        const seen = await scene.probe(post(`Transfer-Encoding: ${value}`, `2\r\nab\r\n0\r\n\r\n`));
        expect(seen).toMatchObject(served(["POST /a"]));
        expect(seen.executed[0]?.body).toBe("ab");
      },
    );
  });

  describe("names that only look like a framing field frame nothing and do not reach the origin", () => {
    const rows: [fields: string, why: string][] = [
      [
        "Transfer_Encoding: chunked\r\nContent-Length: 5",
        "`_` is `-` to CGI and to much middleware",
      ],
      ["Content_Length: 36\r\nContent-Length: 5", "`_` is `-`"],
      ["content_length: 0\r\nContent-Length: 5", "`_` is `-`"],
      ["Content-Length: 5\r\nConnection: content-length", "a client must not strip the framing"],
      ["Content-Length: 5\r\nConnection: close, content-length", "the same in a list"],
    ];
    test.each(rows)("%j: %s", async (fields) => {
      const seen = await scene.probe(post(fields, "0\r\n\r\n"));
      expect(seen).toMatchObject(served(["POST /a"]));
      expect(seen.executed[0]?.body).toBe("0\r\n\r\n");
      const framing = seen.executed[0]?.fields.filter(([name]) => /length|encoding/.test(name));
      expect(framing).toEqual([["content-length", "5"]]);
    });
  });

  describe("a malformed chunked body is rejected, and the origin never sees it complete", () => {
    const rows: [body: string, why: string][] = [
      ["zz\r\n", "no size"],
      ["\r\nab", "an empty size"],
      ["2\r\nabc\r\n0\r\n\r\n", "longer than its size"],
      ["2\r\na\r\n0\r\n\r\n", "shorter than its size"],
      ["2\r\nab0\r\n\r\n", "no line end after the data"],
      ["2\r\nab\r0\r\n\r\n", "bare CR after the data"],
      ["2\r\nab\n0\r\n\r\n", "bare LF after the data"],
      ["2\nab\n0\n\n", "bare LF everywhere"],
      ["2\nab\r\n0\r\n\r\n", "bare LF after the size"],
      ["2\r\r\nab\r\n0\r\n\r\n", "two CR after the size"],
      ["2;a\nb\r\nab\r\n0\r\n\r\n", "bare LF in an extension: some end the line there"],
      ['2;x="\r\n"\r\nab\r\n0\r\n\r\n', "a line end in quotes"],
      ["-1\r\nab", "a sign"],
      ["+2\r\nab\r\n0\r\n\r\n", "a sign"],
      ["0x2\r\nab\r\n0\r\n\r\n", "a prefix: 0 to some, 2 to others"],
      [" 2\r\nab\r\n0\r\n\r\n", "space before the size"],
      ["2 \r\nab\r\n0\r\n\r\n", "space after the size"],
      ["2_0\r\nab\r\n0\r\n\r\n", "a digit separator"],
      ["2\0\r\nab\r\n0\r\n\r\n", "NUL"],
      ["ffffffffffffffff\r\nab", "2^64 - 1"],
      ["10000000000000002\r\nab\r\n0\r\n\r\n", "over 64 bits: 2 when cut off"],
      ["fffffffffffffffff\r\nab", "over 64 bits"],
      ["7fffffffffffffff\r\nab\r\nzz", "2^63 - 1"],
    ];
    test.each(rows)("%j: %s", async (body) => {
      const seen = await scene.probe(post("Transfer-Encoding: chunked", `${body}${SMUGGLED}`), {
        answers: 2,
      });
      expect(seen.outcome).toMatch(engine !== "bun" ? /^400$/ : /^(?:400|413|closed)$/);
      expect(seen).toMatchObject({
        lines: [],
        ambiguous: [],
        canary: "200 /canary",
        isClosed: true,
      });
    });

    test.each([
      ["2;x\r\nab\r\n0\r\n\r\n", "an extension"],
      ['2;x="y;z"\r\nab\r\n0\r\n\r\n', "a quoted extension"],
      ["000000000002\r\nab\r\n0\r\n\r\n", "leading zeros"],
      ["2\r\nab\r\n00000\r\n\r\n", "a last chunk of several zeros"],
      ["2\r\nab\r\n0;x=y\r\n\r\n", "an extension of the last chunk"],
      ["1\r\na\r\n1\r\nb\r\n0\r\n\r\n", "two chunks"],
    ])("%j is well formed: %s", async (body) => {
      const seen = await scene.probe(post("Transfer-Encoding: chunked", body));
      expect(seen).toMatchObject(served(["POST /a"]));
      expect(seen.executed[0]?.body).toBe("ab");
      expect(seen.executed[0]?.head).toContain("\r\nTransfer-Encoding: chunked");
    });
  });
});
