// Routes with path_handling "raw": the target receives path and query byte for byte, over every protocol of the engine sluice.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import { selfSigned } from "../../support/certificate.ts";
import {
  type RouteSketch,
  type RunningDataPlane,
  startDataPlane,
} from "../../support/data-plane.ts";
import { H2Client } from "../../support/h2-client.ts";
import { type Origin, reply, startOrigin } from "../../support/origin.ts";
import { Random, seedOfRun } from "../../support/random.ts";
import { exchange } from "../../support/raw-exchange.ts";
import { connectRaw } from "../../support/raw-http.ts";

const KEY = "the key of the store";
const signed = (target: string) => createHmac("sha256", KEY).update(target).digest("hex");

/** Stands for an object store: it verifies the signature of the target as it has received it. */
function startStore(): Origin {
  return startOrigin({
    answer({ target, fields }) {
      const given = fields.find(([name]) => name.toLowerCase() === "x-signature")?.[1];
      if (given === undefined || given === signed(target)) return reply();
      return reply("SignatureDoesNotMatch", { status: "403 Forbidden" });
    },
  });
}

const raw: RouteSketch = {
  name: "store",
  hosts: ["s3.test", "*.s3.test"],
  service_id: "store",
  path_handling: "raw",
};
const canonical: RouteSketch = { name: "app", hosts: ["app.test"], service_id: "store" };
const routes = [raw, canonical];

type Ask = (
  target: string,
  more?: { readonly host?: string; readonly signature?: string; readonly method?: string },
) => Promise<{ readonly status: number | null; readonly target: string | null }>;

describe.each(["HTTP/1.1", "HTTP/1.1 over TLS", "HTTP/2", "HTTP/2 over TLS"])("%s", (protocol) => {
  let store: Origin;
  let gateway: RunningDataPlane;
  let client: H2Client;
  const isTls = protocol.endsWith("TLS");
  const isHttp2 = protocol.startsWith("HTTP/2");

  beforeAll(async () => {
    store = startStore();
    gateway = await startDataPlane({
      listener: { engine: "sluice", http2: true },
      ...(isTls ? { tls: await selfSigned() } : {}),
      services: [{ name: "store", targets: [{ port: store.port }] }],
      routes,
    });
    client = await H2Client.connect({ port: gateway.port, tls: isTls });
  });
  afterAll(async () => {
    client.close();
    await gateway.stop();
    store.stop();
  });

  const ask: Ask = async (target, { host = "s3.test", signature, method = "GET" } = {}) => {
    store.requests.length = 0;
    const added = signature === undefined ? [] : [["x-signature", signature] as const];
    let status: number | null;
    if (isHttp2) {
      const stream = client.headers([
        [":method", method],
        [":scheme", isTls ? "https" : "http"],
        [":authority", host],
        [":path", target],
        ...added,
      ]);
      ({ status } = await client.result(stream));
    } else {
      const lines = [`Host: ${host}`, ...added.map(([name, value]) => `${name}: ${value}`)];
      const head = `${method} ${target} HTTP/1.1\r\n${lines.join("\r\n")}\r\n\r\n`;
      const to = { port: gateway.port, tls: isTls, methods: [method] };
      status = (await exchange(head, to)).answers[0]?.status ?? null;
    }
    return { status, target: store.requests[0]?.target ?? null };
  };

  test.each([
    ["/", "the root"],
    ["/?", "an empty query"],
    ["/a/./b", "a dot segment"],
    ["/a/../b", "two dots"],
    ["/../../b", "above the root"],
    ["/a/..", "two dots at the end"],
    ["//x", "an empty segment"],
    ["//evil.test/x", "what an authority would be"],
    ["/a//b/", "an empty segment inside"],
    ["/%2e%2e/x", "escaped dots"],
    ["/%2E/x", "an escaped dot"],
    ["/a/..%2fb", "an escaped slash behind dots"],
    ["/..%5cb", "an escaped backslash behind dots"],
    ["/a%2fb", "a lower-case escape"],
    ["/a%2Fb", "an upper-case escape"],
    ["/A%7e", "an escaped unreserved character"],
    ["/%61", "an escaped letter"],
    ["/x;y", "a parameter"],
    ["/..;/x", "a parameter behind dots"],
    ["/x;a%2Fb", "an escaped slash in a parameter"],
    ["/a%00b", "an escaped NUL"],
    ["/a%0d%0ab", "an escaped line end"],
    ["/a\\b/..\\c", "backslashes"],
    ['/"<>^`{|}[]', "what only some clients escape"],
    ["/!$&'()*+,:@=~-_.", "what no client needs to escape"],
    ["/x?a=../b", "dots in the query"],
    ["/x?a=%2e%2E&b=%zz&c=%", "escapes in the query, also malformed ones"],
    ["/x/../y?a=\"<>'\\^`{|}?b", "characters in the query"],
    ["/%C3%BC/%c3%bc", "escaped UTF-8 in both cases"],
    ["/%ff", "escaped bytes that are no UTF-8"],
  ])("%s reaches the target as it is: %s", async (target) => {
    expect(await ask(target)).toEqual({ status: 200, target });
    expect(await ask(target, { host: "bucket.s3.test", method: "DELETE" })).toEqual({
      status: 200,
      target,
    });
  });

  test.each([
    ["/x#y", "a fragment"],
    ["/a/../x#y", "a fragment behind dots"],
    ["/x?a#b", "a fragment behind a query"],
    ["/%zz", "a malformed escape"],
    ["/a/../%", "a percent sign alone"],
    ["/%2", "half an escape"],
    ["/\u00fc", "a byte that is no ASCII"],
    ["/../\u00fc", "the same behind dots"],
    ["/x?\u00fc", "the same in the query"],
    ["/x\u007f", "DEL"],
  ])("%s gets 400: %s", async (target) => {
    const { status, target: seen } = await ask(target);
    expect(seen).toBeNull();
    expect(status).toBe(400);
  });

  test.each(["/a b", "/a\tb", "/a\u0001b", "x", "?x", "*"])(
    "%j reaches no target",
    async (target) => {
      const { status, target: seen } = await ask(target);
      expect(seen).toBeNull();
      expect([400, 505, null]).toContain(status);
    },
  );

  test.each([
    ["/a/..%2fb", 400, null],
    ["/..;/x", 400, null],
    ["/a%00b", 400, null],
    ["/%zz", 400, null],
    ["/a/../b", 200, "/b"],
    ["/a/./b", 200, "/a/b"],
    ["/a%2fb", 200, "/a%2Fb"],
    ["/A%7e", 200, "/A~"],
    ["//x", 200, "//x"],
  ])("%s is %d for a canonical route beside it", async (target, status, seen) => {
    expect(await ask(target, { host: "app.test" })).toEqual({ status, target: seen });
  });

  test.each(["/bucket/./key", "/bucket/a%7eb", "/bucket//key", "/bucket/../key", "/b/%2e%2e%2fx"])(
    "the signature of %s verifies, which it does not behind a canonical route",
    async (target) => {
      const signature = signed(target);
      expect(await ask(target, { signature })).toEqual({ status: 200, target });
      const canonical = await ask(target, { signature, host: "app.test" });
      expect([400, 403, 200]).toContain(canonical.status!);
      expect(canonical.status === 200).toBe(canonical.target === target);
      expect(target === "/bucket//key").toBe(canonical.status === 200);
    },
  );

  test("whatever the target is: the store receives exactly these bytes, or the client gets 400", async () => {
    const random = new Random(seedOfRun());
    const parts = ["/", "//", ".", "..", "%2e", "%2F", "%5c", "%00", "%zz", "%", ";", "\\", "?"];
    const others = ["a", "~", "#", '"', "{", "|", "\u00e9", "\u007f", "=", "&", "%C3%BC", "@", ":"];
    for (let round = 0; round < 400; round++) {
      let target = "/";
      for (let left = random.between(0, 12); left > 0; left--)
        target += random.pick(random.chance(0.6) ? parts : others);
      const [path = ""] = target.split("?");
      const isTarget = !/[^!-~]|#/.test(target) && !/%(?![0-9a-f]{2})/i.test(path);
      const seen = isTarget ? { status: 200, target } : { status: 400, target: null };
      expect({ asked: target, ...(await ask(target)) }).toEqual({ asked: target, ...seen });
    }
  });

  test("a path over the limit gets 414, also where its canonical form is short", async () => {
    const long = `/${"a/../".repeat(2000)}b`;
    expect(await ask(long)).toEqual({ status: 414, target: null });
    expect(await ask(long, { host: "app.test" })).toEqual({ status: 200, target: "/b" });
  });

  test("OPTIONS * stays *", async () => {
    expect(await ask("*", { method: "OPTIONS" })).toEqual({ status: 200, target: "*" });
  });

  if (!isHttp2)
    test.each([
      ["http://s3.test/a/../b%2f", "/a/../b%2f"],
      ["http://s3.test//x/./?a=../b", "//x/./?a=../b"],
      ["http://s3.test", "/"],
      ["http://s3.test?x=/../y", "/?x=/../y"],
      ["HTTP://S3.TEST/%2e", "/%2e"],
    ])("absolute form: %s reaches the target as %s", async (target, seen) => {
      expect(await ask(target, { host: "app.test" })).toEqual({ status: 200, target: seen });
    });
});

describe("beside the request line", () => {
  let store: Origin;
  let gateway: RunningDataPlane;
  beforeAll(() => {
    store = startStore();
  });
  afterAll(() => store.stop());

  async function serve(options: Partial<Parameters<typeof startDataPlane>[0]>): Promise<void> {
    store.requests.length = 0;
    gateway = await startDataPlane({
      listener: { engine: "sluice", http2: true },
      services: [{ name: "store", targets: [{ port: store.port }] }],
      routes,
      ...options,
    });
  }
  const get = (target: string) =>
    exchange(`GET ${target} HTTP/1.1\r\nHost: s3.test\r\n\r\n`, { port: gateway.port });

  test("a redirect to HTTPS names the path as it came, but challenges of the application stay", async () => {
    await serve({ routes: [{ ...raw, https_redirect: true }] });
    for (const path of ["/a/../b%2f?x", "/.well-known/acme-challenge/../../a", "//evil.test/"]) {
      const { answers } = await get(path);
      expect(answers[0]?.status).toBe(308);
      expect(answers[0]?.header("location")).toBe(`https://s3.test${path}`);
    }
    expect((await get("/.well-known/acme-challenge/t_o-ken")).outcome).toBe("200");
    await gateway.stop();
  });

  test("without an engine that knows it, the request gets 421 and no target", async () => {
    await serve({ listener: { engine: "bun" } });
    expect((await get("/a/../b")).outcome).toBe("421");
    expect((await get("/a")).outcome).toBe("421");
    expect((await get("/..%2fa")).outcome).toBe("400");
    expect(store.requests).toEqual([]);
    await gateway.stop();
  });

  test("it never follows the path of a service, and no plugin replaces it", async () => {
    await serve({
      services: [{ name: "store", path: "/base", targets: [{ port: store.port }] }],
    });
    expect((await get("/../x")).outcome).toBe("400");
    expect((await get("/x")).outcome).toBe("400");
    expect(store.requests).toEqual([]);
    await gateway.stop();
  });

  test("plugins that change the query or read keys leave the path as it is", async () => {
    await serve({
      plugins: [{ name: "transform", config: { request: { query: { set: { a: "b" } } } } }],
    });
    expect((await get("/x/../y%2f?k=%2e")).outcome).toBe("200");
    expect(store.requests[0]?.target).toStartWith("/x/../y%2f?");
    await gateway.stop();
  });

  test("a condition on the query counts for paths without a canonical form too", async () => {
    await serve({
      routes: [{ ...raw, query: [{ name: "list", op: "present", value: "" }] }, canonical],
    });
    expect((await get("/..%2fx?list")).outcome).toBe("200");
    expect((await get("/..%2fx?other")).outcome).toBe("400");
    await gateway.stop();
  });

  test("an upgrade keeps the path", async () => {
    await serve({});
    store.answer = (request) =>
      request.target === "/a/../b%2f"
        ? "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n"
        : reply("no", { status: "404 Not Found" });
    const client = await connectRaw({ port: gateway.port });
    client.write(
      "GET /a/../b%2f HTTP/1.1\r\nHost: s3.test\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n",
    );
    await client.until((received) => received.includes("\r\n\r\n"));
    expect(client.received).toStartWith("HTTP/1.1 101 ");
    client.close();
    await gateway.stop();
  });
});
