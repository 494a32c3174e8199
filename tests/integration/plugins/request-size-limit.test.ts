// request-size-limit on a real data plane: each limit at its border, for bodies of known and unknown length.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { pluginScene, type PluginScene } from "../../support/plugin-scene.ts";
import { exchange } from "../../support/raw-exchange.ts";

let scene: PluginScene;
beforeAll(async () => {
  scene = await pluginScene({ plugins: [{ name: "request-size-limit" }] });
});
afterAll(() => scene.stop());

const configure = (config: Record<string, unknown>) =>
  scene.apply({ plugins: [{ name: "request-size-limit", config }] });

/** A body whose length is not known beforehand. */
const streamed = (...pieces: string[]) =>
  new ReadableStream<Uint8Array>({
    start(controller) {
      for (const piece of pieces) controller.enqueue(new TextEncoder().encode(piece));
      controller.close();
    },
  });

describe("a body", () => {
  test.each([
    [10, 200],
    [11, 413],
  ])("of %d bytes gets %d", async (length, status) => {
    await configure({ max_body_bytes: 10 });
    const { status: got, seen } = await scene.send("POST", "/", { body: "x".repeat(length) });
    expect(got).toBe(status);
    expect(seen === null).toBe(status !== 200);
  });

  test.each([
    [["12345", "67890"], 200],
    [["12345", "678901"], 413],
    [["x".repeat(100_000)], 413],
  ])("that is chunked is counted as it arrives", async (pieces, status) => {
    await configure({ max_body_bytes: 10 });
    const answer = await scene.send("POST", "/", { body: streamed(...pieces) });
    expect(answer.status).toBe(status);
  });

  test("that another plugin has read is checked as well", async () => {
    await configure({ max_body_bytes: 10 });
    await scene.apply({
      plugins: [{ name: "key-auth", config: { key_in_body: true, anonymous_consumer: "guest" } }],
      consumers: [{ username: "guest" }],
    });
    const headers = { "Content-Type": "application/json" };
    const ask = (body: string) => scene.send("POST", "/", { headers, body: streamed(body) });
    expect((await ask('{"a":1}')).status).toBe(200);
    expect((await ask('{"a":12345678}')).status).toBe(413);
    await scene.apply({ removedPlugins: ["key-auth"] });
  });

  test("of unknown length may be refused from the start", async () => {
    await configure({ require_content_length: true });
    const answer = await scene.send("POST", "/", { body: streamed("x") });
    expect(answer.status).toBe(411);
    expect(answer.seen).toBeNull();
    expect((await scene.send("POST", "/", { body: "x" })).status).toBe(200);
    expect((await scene.get("/")).status).toBe(200);
  });

  test("is refused by its Content-Length", async () => {
    await configure({ max_body_bytes: 10 });
    const { answers } = await exchange(
      "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 11\r\n\r\n12345678901",
      { port: scene.plane.port },
    );
    expect(answers[0]?.status).toBe(413);
  });
});

test.each([
  [100, 200],
  [101, 414],
])("a target of %d bytes with a limit of 100 gets %d", async (length, status) => {
  await configure({ max_uri_bytes: 100 });
  expect((await scene.get(`/${"a".repeat(length - 3)}?b`)).status).toBe(status);
});

test.each([
  [0, 200],
  [1, 431],
])("header fields that are %d bytes over the limit get %d", async (over, status) => {
  // host: h is 4 + 1 + 4 bytes, x: … 1 + n + 4.
  await configure({ max_headers_bytes: 200 });
  const { answers } = await exchange(
    `GET / HTTP/1.1\r\nHost: h\r\nX: ${"a".repeat(200 - 9 - 5 + over)}\r\n\r\n`,
    { port: scene.plane.port },
  );
  expect(answers[0]?.status).toBe(status);
});
