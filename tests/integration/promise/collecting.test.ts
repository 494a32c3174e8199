// Which responses are buffered and arrive with their length, and which are streamed.
import { afterEach, expect, test } from "bun:test";
import { cleanupsOf } from "../../support/cleanups.ts";
import {
  type DataPlaneSketch,
  type RunningDataPlane,
  type ServiceSketch,
  startDataPlane,
} from "../../support/data-plane.ts";
import { streamsKeepLength } from "../../support/engines.ts";
import { type Origin, type OriginOptions, reply, startOrigin } from "../../support/origin.ts";
import { eventually } from "../../support/poll.ts";
import { connectRaw, parseResponse, type ParsedResponse } from "../../support/raw-http.ts";

const DEFAULT_RESPONSE_BUFFER_BYTES = 1_048_576;
const get = "GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n";

const cleanups = cleanupsOf(afterEach);

interface Scene {
  readonly origin: Origin;
  readonly plane: RunningDataPlane;
}

async function scene(
  answer: NonNullable<OriginOptions["answer"]> | null,
  service: Omit<ServiceSketch, "name" | "targets"> = {},
  settings: NonNullable<DataPlaneSketch["settings"]> = {},
): Promise<Scene> {
  const origin = startOrigin({ answer });
  cleanups.push(() => origin.stop());
  const plane = await startDataPlane({
    services: [{ ...service, name: "site", targets: [{ port: origin.port }] }],
    routes: [{ name: "site", service_id: "site" }],
    settings,
  });
  cleanups.push(() => plane.stop());
  return { origin, plane };
}

const open = ({ plane }: Scene) => connectRaw({ port: plane.port });

async function ask(from: Scene): Promise<ParsedResponse> {
  const client = await open(from);
  client.write(get);
  return parseResponse(await client.untilClosed());
}

/** The last connection to the origin, on which its answer can be written piece by piece. */
async function answering({ origin }: Scene, requests = 1) {
  await origin.untilRequests(requests);
  return origin.connections.at(-1)!;
}

const isCollected = (response: ParsedResponse) => response.header("content-length") !== null;
const isChunked = (response: ParsedResponse) => response.header("transfer-encoding") === "chunked";
/** `hasLength`: the target has declared one. */
const isStreamed = (response: ParsedResponse, { hasLength = false } = {}) =>
  hasLength && streamsKeepLength
    ? isCollected(response) && !isChunked(response)
    : isChunked(response) && !isCollected(response);

const bodyOf = (bytes: number) => "0123456789abcdef".repeat(Math.ceil(bytes / 16)).slice(0, bytes);

/** The content of a whole response. */
function contentOf(response: ParsedResponse): string {
  const { body: text } = response;
  if (!isChunked(response)) return text;
  let [body, at] = ["", 0];
  while (true) {
    const end = text.indexOf("\r\n", at);
    const size = Number.parseInt(text.slice(at, end), 16);
    if (!(size > 0)) return body;
    body += text.slice(end + 2, end + 2 + size);
    at = end + 2 + size + 2;
  }
}

test.each([
  { bytes: 1, collect: DEFAULT_RESPONSE_BUFFER_BYTES, why: "a short body" },
  {
    bytes: 14_999,
    collect: DEFAULT_RESPONSE_BUFFER_BYTES,
    why: "the longest that is written as bytes",
  },
  {
    bytes: 15_000,
    collect: DEFAULT_RESPONSE_BUFFER_BYTES,
    why: "the shortest that is written directly",
  },
  { bytes: 300_000, collect: DEFAULT_RESPONSE_BUFFER_BYTES, why: "several reads" },
  {
    bytes: DEFAULT_RESPONSE_BUFFER_BYTES,
    collect: DEFAULT_RESPONSE_BUFFER_BYTES,
    why: "exactly the default",
  },
  { bytes: 1_000_000, collect: 1_000_000, why: "exactly the limit of the service" },
  { bytes: 1, collect: 0, why: "there at once, so that there is nothing to stream" },
  { bytes: 0, collect: 0, why: "nothing to stream" },
])(
  "$bytes bytes arrive with their length when up to $collect are buffered: $why",
  async ({ bytes, collect }) => {
    const response = await ask(
      await scene(reply(bodyOf(bytes)), { response_buffer_bytes: collect }),
    );
    expect([response.status, response.header("content-length")]).toEqual([200, String(bytes)]);
    expect(response.body === bodyOf(bytes)).toBe(true);
  },
);

test.each([
  {
    bytes: DEFAULT_RESPONSE_BUFFER_BYTES + 1,
    collect: DEFAULT_RESPONSE_BUFFER_BYTES,
    why: "over the default",
  },
  { bytes: 1_000_001, collect: 1_000_000, why: "over the limit of the service" },
  { bytes: 1_000_000, collect: 0, why: "nothing is collected" },
])(
  "$bytes bytes are streamed when up to $collect are buffered: $why",
  async ({ bytes, collect }) => {
    const response = await ask(
      await scene(reply(bodyOf(bytes)), { response_buffer_bytes: collect }),
    );
    expect([response.status, isStreamed(response, { hasLength: true })]).toEqual([200, true]);
    expect(contentOf(response) === bodyOf(bytes)).toBe(true);
  },
);

test.each([
  { begin: "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nfirst", rest: "-rest", why: "length" },
  {
    begin: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n",
    rest: "5\r\n-rest\r\n0\r\n\r\n",
    why: "chunked",
  },
])(
  "the start of a slow body ($why) is passed on while the target delays the rest",
  async ({ begin, rest, why }) => {
    const from = await scene(null);
    const client = await open(from);
    client.write(get);
    const target = await answering(from);
    target.write(begin);
    const beginning = parseResponse(await client.until("first"));
    expect(isStreamed(beginning, { hasLength: why === "length" })).toBe(true);
    target.write(rest);
    expect(contentOf(parseResponse(await client.untilClosed()))).toBe("first-rest");
  },
);

test("the start of a head whose body is slow is passed on while the target delays the body", async () => {
  const from = await scene(null);
  const client = await open(from);
  client.write(get);
  const target = await answering(from);
  target.write("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-Early: yes\r\n\r\n");
  await client.until("X-Early");
  target.write("later");
  expect(await client.untilClosed()).toEndWith("\r\n\r\nlater");
});

test("Bun.serve completes a head only with the first byte of the body; once it does not, event-stream.ts can go", async () => {
  const body = Promise.withResolvers<string>();
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: () =>
      new Response(
        new ReadableStream({
          async start(controller) {
            controller.enqueue(await body.promise);
            controller.close();
          },
        }),
        { headers: { "X-Early": "yes" } },
      ),
  });
  cleanups.push(() => server.stop(true));
  const client = await connectRaw({ port: server.port! });
  client.write(get);
  await client.until("X-Early");
  expect(client.received).not.toContain("\r\n\r\n");
  body.resolve("body");
  await client.until("\r\n\r\nbody");
});

test("a chunked response that arrives in one piece is sent with its length", async () => {
  const answer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nwhole\r\n0\r\n\r\n";
  const response = await ask(await scene(answer));
  expect([response.header("content-length"), response.body]).toEqual(["5", "whole"]);
  expect(response.header("transfer-encoding")).toBeNull();
});

test.each([
  { framing: "Transfer-Encoding: chunked", event: (text: string) => `9\r\n${text}\r\n` },
  { framing: "Content-Length: 27", event: (text: string) => text },
])(
  "every event of an event stream is passed on separately ($framing)",
  async ({ framing, event }) => {
    const from = await scene(null);
    const client = await open(from);
    client.write(get);
    const target = await answering(from);
    target.write(`HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n${framing}\r\n\r\n`);
    await client.until("event-stream");
    for (const name of ["a", "b", "c"]) {
      target.write(event(`data: ${name}\n\n`));
      await client.until(`data: ${name}\n\n`);
    }
  },
);

const events = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n";

test("the head of an event stream without an event is complete at once: a comment stands in for the event", async () => {
  const from = await scene(null);
  const client = await open(from);
  client.write(get);
  const target = await answering(from);
  target.write(`${events}Transfer-Encoding: chunked\r\n\r\n`);
  await client.until("\r\n\r\n3\r\n:\n\n\r\n");
  target.write("9\r\ndata: a\n\n\r\n0\r\n\r\n");
  const response = parseResponse(await client.untilClosed());
  expect(contentOf(response)).toBe(":\n\ndata: a\n\n");
});

test.each([
  { why: "the event is there at once", fields: "", begin: "9\r\ndata: a\n\n\r\n" },
  { why: "it is coded", fields: "Content-Encoding: gzip\r\n", begin: "" },
  { why: "it must not be changed", fields: "Cache-Control: no-store, No-Transform\r\n", begin: "" },
])("an event stream stays unchanged: $why", async ({ fields, begin }) => {
  const from = await scene(null);
  const client = await open(from);
  client.write(get);
  const target = await answering(from);
  target.write(`${events}${fields}Transfer-Encoding: chunked\r\n\r\n${begin}`);
  await client.until("Content-Type");
  target.write("9\r\ndata: b\n\n\r\n0\r\n\r\n");
  const body = (await client.untilClosed()).split("\r\n\r\n").slice(1).join("\r\n\r\n");
  expect(body).not.toContain(":\n\n");
  expect(body).toContain("data: b\n\n");
});

test("a response that ends with its connection is streamed", async () => {
  const from = await scene(null);
  const client = await open(from);
  client.write(get);
  const target = await answering(from);
  target.write("HTTP/1.1 200 OK\r\n\r\npart");
  await client.until("part");
  target.end();
  const response = parseResponse(await client.untilClosed());
  expect([isStreamed(response), contentOf(response)]).toEqual([true, "part"]);
});

test("a body above the worker's budget is streamed, and the next that fits is buffered", async () => {
  const budget = 900_000;
  const settings = { limits: { response_buffer_budget_bytes: budget } };
  const from = await scene(null, {}, settings);
  for (const [bytes, isWhole] of [
    [budget + 1, false],
    [budget, true],
    [budget, true],
    [budget + 1, false],
    [budget, true],
  ] as const) {
    from.origin.answer = reply(bodyOf(bytes));
    const response = await ask(from);
    // Where streams keep their lengths, only the content is looked at.
    expect([bytes, isCollected(response)]).toEqual([bytes, isWhole || streamsKeepLength]);
    expect(contentOf(response) === bodyOf(bytes)).toBe(true);
  }
});

test.each([
  { why: "the target broke off", end: (from: Scene) => from.origin.connections.at(-1)!.reset() },
  { why: "it was slow and then streamed", end: () => undefined },
])("an incomplete buffered body releases its budget: $why", async ({ end }) => {
  const from = await scene(null, {}, { limits: { response_buffer_budget_bytes: 900_000 } });
  const client = await open(from);
  client.write(get);
  const target = await answering(from);
  target.write("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhalf");
  end(from);
  await client.until("HTTP/1.1 ");
  from.origin.answer = reply(bodyOf(900_000));
  await eventually(async () => isCollected(await ask(from)));
  client.close();
});

test("a client that disconnects from a buffered body releases its budget", async () => {
  const from = await scene(null, {}, { limits: { response_buffer_budget_bytes: 900_000 } });
  const client = await open(from);
  client.write(get);
  const target = await answering(from);
  target.write("HTTP/1.1 200 OK\r\nContent-Length: 900000\r\n\r\n");
  client.reset();
  await eventually(() => target.isClosed);
  from.origin.answer = reply(bodyOf(900_000));
  await eventually(async () => isCollected(await ask(from)));
});

test("a body that breaks off while it is buffered is an error, never a short response", async () => {
  const from = await scene((_, connection) => {
    connection.write("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhalf");
    return "close";
  });
  const response = await ask(from);
  expect(response.status).toBe(502);
  expect(response.header("proxy-status")).toContain("http_response_incomplete");
});

test.each([
  "HTTP/1.1 200 OK\r\nContent-Length: 10\r\nX Y: z\r\n\r\nhalf",
  "HTTP/1.1 200 OK\r\nContent-Length: 10\r\nX: a\0b\r\n\r\nhalf",
])("a malformed head with a slow body is refused and affects no other: %j", async (answer) => {
  const response = await ask(await scene(answer));
  expect(response.status).toBe(502);
  expect(response.header("proxy-status")).toContain("http_protocol_error");
});

test("HEAD keeps the target's Content-Length and waits for no body", async () => {
  const from = await scene("HTTP/1.1 200 OK\r\nContent-Length: 123456\r\n\r\n");
  const client = await open(from);
  client.write(get.replace("GET", "HEAD"));
  const response = parseResponse(await client.untilClosed());
  expect([response.status, response.header("content-length"), response.body]).toEqual([
    200,
    "123456",
    "",
  ]);
});
