// The limits on client requests, each at its boundary: the last that passes and the first that does not.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { engines } from "../../support/engines.ts";
import {
  type LenientScene,
  refused,
  served,
  startLenientScene,
} from "../../support/lenient-scene.ts";

const MAX_BODY = 100_000;
const MAX_HEAD = 2048;

describe.each(engines)("%s engine:", (engine) => {
  let scene: LenientScene;
  let small: LenientScene;
  beforeAll(async () => {
    scene = await startLenientScene({ listener: { engine, max_body_bytes: MAX_BODY } });
    small = await startLenientScene({
      listener: { engine, max_header_bytes: MAX_HEAD },
      settings: { limits: { max_target_bytes: 300, max_header_fields: 20 } },
    });
  });
  afterAll(() => Promise.all([scene.stop(), small.stop()]));

  const target = (length: number) => `/${"a".repeat(length - 1)}`;
  const get = (path: string, fields = "") => `GET ${path} HTTP/1.1\r\nHost: h\r\n${fields}\r\n`;
  const numbered = (count: number) =>
    Array.from({ length: count }, (_, i) => `X-${i}: v\r\n`).join("");

  describe("length of the target", () => {
    test.each([
      [8192, "200"],
      [8193, "414"],
      [12_000, "414"],
    ])("%d bytes by default: %s", async (length, outcome) => {
      const path = target(length);
      const seen = await scene.probe(get(path));
      expect(seen).toMatchObject(outcome === "200" ? served([`GET ${path}`]) : refused(outcome));
    });

    test("the query counts", async () => {
      const path = `/${"a".repeat(100)}?${"q".repeat(8192 - 102)}`;
      expect(path.length).toBe(8192);
      expect(await scene.probe(get(path))).toMatchObject(served([`GET ${path}`]));
      expect(await scene.probe(get(`${path}q`))).toMatchObject(refused("414"));
    });

    test.each([
      [300, "200"],
      [301, "414"],
    ])("%d bytes with max_target_bytes 300: %s", async (length, outcome) => {
      const path = target(length);
      const seen = await small.probe(get(path));
      expect(seen).toMatchObject(outcome === "200" ? served([`GET ${path}`]) : refused(outcome));
    });

    test("what counts is the canonical path, which goes upstream", async () => {
      const seen = await small.probe(get(`/${"%61".repeat(200)}`));
      expect(seen).toMatchObject(served([`GET ${target(201)}`]));
    });

    test("over 16 KB Bun returns 431 itself, without a page", async () => {
      const seen = await scene.probe(get(target(17_000)));
      if (engine === "sluice") return expect(seen).toMatchObject(refused("414"));
      expect(seen).toMatchObject(refused("431"));
      expect(seen.answers[0]?.header("x-request-id")).toBeNull();
    });
  });

  describe("number of fields", () => {
    // Host is one of them.
    test.each([
      [100, "200"],
      [101, "431"],
    ])("%d by default: %s", async (count, outcome) => {
      const seen = await scene.probe(get("/a", numbered(count - 1)));
      expect(seen).toMatchObject(outcome === "200" ? served(["GET /a"]) : refused(outcome));
      const last = seen.executed[0]?.header(`x-${count - 2}`);
      if (outcome === "200") expect(last).toBe("v");
    });

    test.each([
      [20, "200"],
      [21, "431"],
    ])("%d with max_header_fields 20: %s", async (count, outcome) => {
      const seen = await small.probe(get("/a", numbered(count - 1)));
      expect(seen).toMatchObject(outcome === "200" ? served(["GET /a"]) : refused(outcome));
    });

    test.each([150, 1000])("%d: rejected, by Bun itself from 199 on", async (count) => {
      expect(await scene.probe(get("/a", numbered(count)))).toMatchObject(refused("431"));
    });

    test("repeated fields count once, as forwarded: Bun joins them and has its own limit", async () => {
      const repeated = (count: number) => get("/a", "X: v\r\n".repeat(count));
      // Our own engine forwards each line and counts it.
      if (engine === "sluice")
        return expect(await scene.probe(repeated(150))).toMatchObject(refused("431"));
      expect(await scene.probe(repeated(150))).toMatchObject(served(["GET /a"]));
      expect(await scene.probe(repeated(1000))).toMatchObject(refused("431"));
    });
  });

  describe("bytes of the head", () => {
    /** A head of exactly so many bytes, request line and empty line included. */
    function headOf(bytes: number): string {
      const empty = get("/a", "X: \r\n");
      return get("/a", `X: ${"v".repeat(bytes - empty.length)}\r\n`);
    }

    test.each([
      [MAX_HEAD, "200"],
      [MAX_HEAD + 1, "431"],
      [8192, "431"],
    ])("%d with max_header_bytes 2048: %s", async (bytes, outcome) => {
      const head = headOf(bytes);
      expect(head.length).toBe(bytes);
      const seen = await small.probe(head);
      expect(seen).toMatchObject(outcome === "200" ? served(["GET /a"]) : refused(outcome));
    });

    test("the request line counts", async () => {
      const half = headOf(MAX_HEAD);
      const seen = await small.probe(half.replace("GET /a", "GET /aa"));
      expect(seen).toMatchObject(refused("431"));
    });

    // Bun's parser knows its own limit to a few hundred bytes.
    const [passes, isRefused] = engine === "sluice" ? [32_768, 32_769] : [16_000, 16_500];

    test(`the default: ${passes} bytes pass, and more get 431`, async () => {
      expect(await scene.probe(headOf(passes))).toMatchObject(served(["GET /a"]));
      expect(await scene.probe(headOf(isRefused))).toMatchObject(refused("431"));
      expect(await scene.probe(headOf(200_000))).toMatchObject(refused("431"));
    });
  });

  describe("bytes of the body", () => {
    const declared = (bytes: number, method = "POST") =>
      `${method} /a HTTP/1.1\r\nHost: h\r\nContent-Length: ${bytes}\r\n\r\n${"b".repeat(bytes)}`;
    const chunked = (bytes: number, size = 10_000) => {
      let body = "";
      for (let left = bytes; left > 0; left -= size) {
        const length = Math.min(size, left);
        body += `${length.toString(16)}\r\n${"b".repeat(length)}\r\n`;
      }
      return `POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n${body}0\r\n\r\n`;
    };

    test("declared: exactly the limit passes", async () => {
      const seen = await scene.probe(declared(MAX_BODY));
      expect(seen).toMatchObject(served(["POST /a"]));
      expect(seen.executed[0]?.body.length).toBe(MAX_BODY);
    });

    test.each(["POST", "PUT", "PATCH", "DELETE"])(
      "declared: one byte more in a %s gets 413 before the target gets it",
      async (method) => {
        expect(await scene.probe(declared(MAX_BODY + 1, method))).toMatchObject(refused("413"));
      },
    );

    test("declared and not sent: 413 at once", async () => {
      const bytes = `POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: ${MAX_BODY + 1}\r\n\r\n`;
      expect(await scene.probe(bytes)).toMatchObject(refused("413"));
    });

    test("chunked: exactly the limit passes", async () => {
      const seen = await scene.probe(chunked(MAX_BODY));
      expect(seen).toMatchObject(served(["POST /a"]));
      expect(seen.executed[0]?.body.length).toBe(MAX_BODY);
    });

    test.each([MAX_BODY + 1, 3 * MAX_BODY])(
      "chunked: %d bytes get 413, and the target never sees a complete request",
      async (bytes) => {
        expect(await scene.probe(chunked(bytes))).toMatchObject(refused("413"));
      },
    );

    test("without a limit a body of any length passes", async () => {
      const seen = await small.probe(declared(3_000_000));
      expect(seen).toMatchObject(served(["POST /a"]));
      expect(seen.executed[0]?.body.length).toBe(3_000_000);
    });
  });
});
