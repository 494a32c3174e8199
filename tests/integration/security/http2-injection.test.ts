// What HTTP/2 can carry and HTTP/1.1 cannot, judged at the HTTP/1.1 origin: nothing of it becomes a field, a line or a request there.
import { engines } from "../../support/engines.ts";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { selfSigned } from "../../support/certificate.ts";
import { type Field, H2Client, type StreamResult } from "../../support/h2-client.ts";
import { type LenientScene, startLenientScene } from "../../support/lenient-scene.ts";
import type { ExecutedRequest } from "../../support/lenient-origin.ts";

const GET: Field[] = [
  [":method", "GET"],
  [":scheme", "https"],
  [":authority", "h"],
  [":path", "/a"],
];
const POST = replaced(":method", "POST");
const SMUGGLED = "GET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n";

function replaced(name: string, value: string, fields = GET): Field[] {
  return fields.map((field) => (field[0] === name ? [name, value] : field));
}
const without = (name: string) => GET.filter(([known]) => known !== name);

interface Row {
  readonly why: string;
  readonly fields: readonly Field[];
  readonly body?: string;
  readonly trailers?: readonly Field[];
}
const row = (
  why: string,
  fields: readonly Field[],
  more: Omit<Row, "why" | "fields"> = {},
): Row => ({ why, fields, ...more });
const field = (why: string, name: string, value: string) => row(why, [...GET, [name, value]]);

/** `null`: Node's HTTP/2 ends the stream before the connection. */
const REFUSED = /^(?:4\d\d|501|reset|goaway|closed|null)$/;

const refused: readonly Row[] = [
  field("a control character in a value", "x-a", "b\x01c"),
  field("CRLF in a value", "x-a", "b\r\nevil: 1"),
  field("LF in a value", "x-a", "b\nevil: 1"),
  field("CR in a value", "x-a", "b\revil: 1"),
  field("a request in a value", "x-a", `b\r\n\r\n${SMUGGLED}`),
  field("NUL in a value", "x-a", "b\0c"),
  field("white space before a value", "x-a", " b"),
  field("white space behind a value", "x-a", "b "),
  field("upper case in a name", "X-A", "b"),
  field("CRLF in a name", "x\r\nevil", "b"),
  field("a colon in a name", "x: y\r\nevil", "b"),
  field("a colon behind a name", "x:", "b"),
  field("a space in a name", "x a", "b"),
  field("a space behind a framing name", "content-length ", "5"),
  field("NUL in a name", "x\0", "b"),
  field("a name that is not ASCII", "x\xe9", "b"),
  field("an empty name", "", "b"),
  row("a method that shows what the gateway adds", replaced(":method", "TRACE")),
  row("an unknown pseudo field", [[":evil", "1"], ...GET]),
  row("a pseudo field of answers", [...GET, [":status", "200"]]),
  row("two paths", [...GET, [":path", "/b"]]),
  row("two methods", [...GET, [":method", "POST"]]),
  row("two authorities", [...GET, [":authority", "g"]]),
  row("two schemes", [...GET, [":scheme", "http"]]),
  row("a pseudo field behind a plain one", [
    [":method", "GET"],
    ["x-a", "b"],
    ...without(":method"),
  ]),
  row("no method", without(":method")),
  row("no path", without(":path")),
  row("no scheme", without(":scheme")),
  row("no authority and no host", without(":authority")),
  row("an empty path", replaced(":path", "")),
  row("a path without slash", replaced(":path", "a")),
  row("an absolute path", replaced(":path", "http://h/a")),
  row("* as path", replaced(":path", "*")),
  row("a space in the path", replaced(":path", "/a b")),
  row("a tab in the path", replaced(":path", "/a\tb")),
  row("NUL in the path", replaced(":path", "/a\0b")),
  row("a request in the path", replaced(":path", `/a HTTP/1.1\r\nevil: x\r\n\r\n${SMUGGLED}`)),
  row("LF in the path", replaced(":path", "/a\nevil: x")),
  row("a fragment", replaced(":path", "/a#b")),
  row("a request in the method", replaced(":method", `GET /evil HTTP/1.1\r\nx: y\r\n\r\nGET`)),
  row("a method in lower case", replaced(":method", "get")),
  row("an empty method", replaced(":method", "")),
  row("CONNECT with a path", replaced(":method", "CONNECT")),
  row("CONNECT", [
    [":method", "CONNECT"],
    [":authority", "h:443"],
  ]),
  row("CONNECT to a WebSocket", [...replaced(":method", "CONNECT"), [":protocol", "websocket"]]),
  row("CRLF in the authority", replaced(":authority", "h\r\nevil: 1")),
  row("user information", replaced(":authority", "u@h")),
  row("a space in the authority", replaced(":authority", "h g")),
  row("a path in the authority", replaced(":authority", "h/x")),
  row("a list as authority", replaced(":authority", "h,g")),
  row("an empty authority", replaced(":authority", "")),
  row("a host that differs from the authority", [...GET, ["host", "g"]]),
  row("two hosts", [...without(":authority"), ["host", "h"], ["host", "g"]]),
  row("CRLF in the scheme", replaced(":scheme", "https\r\nevil: x")),
  row("an empty scheme", replaced(":scheme", "")),
  field("connection", "connection", "close"),
  field("connection that names a field", "connection", "x-forwarded-for"),
  field("keep-alive", "keep-alive", "timeout=5"),
  field("proxy-connection", "proxy-connection", "keep-alive"),
  field("upgrade", "upgrade", "websocket"),
  field("transfer-encoding", "transfer-encoding", "chunked"),
  field("te but trailers", "te", "gzip"),
  row("transfer-encoding with a body (H2.TE)", [...POST, ["transfer-encoding", "chunked"]], {
    body: `0\r\n\r\n${SMUGGLED}`,
  }),
  row("a length and no body", [...POST, ["content-length", "5"]]),
  row("a length longer than the body", [...POST, ["content-length", "5"]], { body: "abc" }),
  row("a length shorter than the body (H2.CL)", [...POST, ["content-length", "3"]], {
    body: `abc${SMUGGLED}`,
  }),
  row("two lengths", [...POST, ["content-length", "3"], ["content-length", "5"]], { body: "abc" }),
  row("a length twice", [...POST, ["content-length", "3"], ["content-length", "3"]], {
    body: "abc",
  }),
  row("a length with a sign", [...POST, ["content-length", "+3"]], { body: "abc" }),
  row("a negative length", [...POST, ["content-length", "-1"]], { body: "abc" }),
  row("a length in hexadecimal", [...POST, ["content-length", "0x3"]], { body: "abc" }),
  row("a list of lengths", [...POST, ["content-length", "3, 3"]], { body: "abc" }),
  row("an empty length", [...POST, ["content-length", ""]], { body: "abc" }),
  row("a length over 64 bits", [...POST, ["content-length", "99999999999999999999"]], {
    body: "abc",
  }),
  row("a pseudo field in trailers", POST, { body: "abc", trailers: [[":path", "/evil"]] }),
  row("CRLF in trailers", POST, { body: "abc", trailers: [["x", "a\r\nevil: 1"]] }),
  row("101 fields", [...GET, ...Array.from({ length: 100 }, (_, i): Field => [`x-${i}`, "v"])]),
  row("a head over 32 KB", [...GET, ["x-a", "a".repeat(33_000)]]),
];

/** What Bun.serve refuses, and what our own engine makes of it. */
const refusedByBun: readonly (Row & { readonly head: RegExp; readonly content?: string })[] = [
  { ...row("an unknown method", replaced(":method", "FOO")), head: /^FOO \/a HTTP\/1\.1\r\n/ },
  {
    ...row("a GET with a declared body", [...GET, ["content-length", "3"]], { body: "abc" }),
    head: /\r\nContent-Length: 3/,
    content: "abc",
  },
];

const served: readonly (Row & { readonly head: RegExp; readonly content?: string })[] = [
  { ...row("a plain GET", GET), head: /^GET \/a HTTP\/1\.1\r\nHost: h\r\n/ },
  { ...row("a POST", POST, { body: "ab" }), head: /\r\nTransfer-Encoding: chunked/, content: "ab" },
  {
    ...row("a POST with its length", [...POST, ["content-length", "2"]], { body: "ab" }),
    head: /\r\nContent-Length: 2/,
    content: "ab",
  },
  { ...row("a POST without body", POST), head: /\r\nContent-Length: 0/ },
  { ...row("a POST with an empty body", POST, { body: "" }), head: /^POST \/a/ },
  {
    ...row("a body that looks like a request", POST, { body: SMUGGLED }),
    head: /^POST \/a/,
    content: SMUGGLED,
  },
  {
    ...row("a body that looks like chunks", POST, { body: `0\r\n\r\n${SMUGGLED}` }),
    head: /^POST \/a/,
    content: `0\r\n\r\n${SMUGGLED}`,
  },
  { ...row("bytes over 127 in a value", [...GET, ["x-a", "\xe9\xff"]]), head: /\r\nx-a: \xe9\xff/ },
  {
    ...row("cookies in crumbs", [...GET, ["cookie", "a=1"], ["cookie", "b=2"]]),
    head: /\r\ncookie: a=1; b=2/,
  },
  {
    ...row("host instead of authority", [...without(":authority"), ["host", "g"]]),
    head: /\r\nHost: g/,
  },
  {
    ...row("te: trailers, which ends here", [...GET, ["te", "trailers"]]),
    head: /^(?![\s\S]*\r\nte:)/,
  },
  {
    ...row("a scheme that lies", replaced(":scheme", "http")),
    head: /\r\nx-forwarded-proto: SCHEME/,
  },
  { ...row("another scheme", replaced(":scheme", "ftp")), head: /\r\nx-forwarded-proto: SCHEME/ },
  { ...row("a field called __proto__", [...GET, ["__proto__", "x"]]), head: /\r\n__proto__: x/ },
  {
    ...row(
      "aliases of framing fields",
      [...POST, ["transfer_encoding", "chunked"], ["content_length", "0"]],
      { body: "0\r\n\r\n" },
    ),
    head: /^(?![\s\S]*(?:transfer|content)_)/,
    content: "0\r\n\r\n",
  },
  {
    ...row("trailers, which are dropped", POST, {
      body: "ab",
      trailers: [["x-evil", "1"]],
    }),
    head: /^(?![\s\S]*evil)/,
    content: "ab",
  },
  {
    // Bun.serve decides for the target.
    ...row("Expect", [...POST, ["expect", "100-continue"]], { body: "ab" }),
    head: /^POST \/a/,
    content: "ab",
  },
  { ...row("dot segments", replaced(":path", "/x/../a")), head: /^GET \/a / },
  {
    ...row("100 fields", [...GET, ...Array.from({ length: 99 }, (_, i): Field => [`x-${i}`, "v"])]),
    head: /\r\nx-98: v/,
  },
];

const ways = engines.flatMap((engine) => ["http", "https"].map((scheme) => ({ scheme, engine })));

describe.each(ways)("over $scheme with the $engine engine", ({ scheme, engine }) => {
  let scene: LenientScene;
  beforeAll(async () => {
    const tls = scheme === "https" ? { tls: await selfSigned() } : {};
    scene = await startLenientScene({ ...tls, listener: { engine } });
  });
  afterAll(() => scene.stop());

  /** One request on a connection of its own, and a plain one on another, which a poisoned upstream would spoil. */
  async function send({
    fields,
    body,
    trailers,
  }: Row): Promise<{ result: StreamResult; executed: readonly ExecutedRequest[] }> {
    scene.origin.forget();
    const to = { port: scene.gateway.port, tls: scheme === "https" };
    const client = await H2Client.connect(to);
    const stream = client.headers(fields, { isLast: body === undefined && trailers === undefined });
    if (body !== undefined) client.data(stream, body, { isLast: trailers === undefined });
    if (trailers !== undefined) client.trailers(stream, trailers);
    const result = await client.result(stream);
    client.close();
    const other = await H2Client.connect(to);
    const plain = await other.result(other.headers(replaced(":path", "/canary")));
    other.close();
    expect(plain).toMatchObject({ outcome: "200", body: "/canary" });
    expect(scene.origin.ambiguous).toEqual([]);
    return { result, executed: scene.origin.executed.filter(({ target }) => target !== "/canary") };
  }

  test.each(
    (engine === "sluice" ? refused : [...refused, ...refusedByBun]).map(
      (each) => [each.why, each] as const,
    ),
  )("refused: %s", async (_, each) => {
    const { result, executed } = await send(each);
    expect(result.outcome).toMatch(REFUSED);
    expect(executed.map(({ method, target }) => `${method} ${target}`)).toEqual([]);
    for (const received of scene.origin.received) expect(received).not.toMatch(/evil|smuggled/);
  });

  const passing = engine === "sluice" ? [...served, ...refusedByBun] : served;
  test.each(passing.map((each) => [each.why, each] as const))("served: %s", async (_, each) => {
    const { result, executed } = await send(each);
    expect(result.outcome).toBe("200");
    expect(executed.length).toBe(1);
    expect(executed[0]?.head).toMatch(new RegExp(each.head.source.replace("SCHEME", scheme), "i"));
    expect(executed[0]?.body).toBe(each.content ?? "");
  });

  // docs/limits-of-bun.md: without a length we cannot know that there was a body.
  test.each(["GET", "HEAD"])(
    "a %s with a body of undeclared length: the body is dropped or a body, and never parsed as a request",
    async (method) => {
      const { result, executed } = await send(
        row("", replaced(":method", method), { body: SMUGGLED }),
      );
      expect(result.outcome).toBe("200");
      expect(executed.map((request) => [request.method, request.body])).toEqual([
        [method, engine === "sluice" ? SMUGGLED : ""],
      ]);
    },
  );

  test("a body for a declared length of 0 is refused to the client, and empty to the origin", async () => {
    const { result, executed } = await send(
      row("", [...POST, ["content-length", "0"]], { body: SMUGGLED }),
    );
    expect(result.outcome).toBe("reset");
    expect(executed.every(({ body }) => body === "")).toBe(true);
    for (const received of scene.origin.received) expect(received).not.toContain("smuggled");
  });

  test("many streams on one connection are isolated", async () => {
    scene.origin.forget();
    const client = await H2Client.connect({ port: scene.gateway.port, tls: scheme === "https" });
    const streams = Array.from({ length: 50 }, (_, i) =>
      client.headers(replaced(":path", `/${i}`)),
    );
    for (const [i, stream] of streams.entries())
      expect(await client.result(stream)).toMatchObject({ outcome: "200", body: `/${i}` });
    client.close();
    expect(scene.origin.ambiguous).toEqual([]);
  });
});
