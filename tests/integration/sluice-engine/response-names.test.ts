// Names and order of a response's fields on our own engine, where plugins or the gateway itself have changed some of them.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { reply } from "../../support/origin.ts";
import { type ScriptedScene, startScriptedScene } from "../../support/scripted-scene.ts";

const FIELDS =
  'X-Zebra: 1\r\nETag: "a"\r\nsEt-CoOkIe: a=1\r\nX-Apple: 2\r\nSet-Cookie: b=2\r\nX-MiXed: 3\r\n';
const SENT = ["X-Zebra: 1", 'ETag: "a"', "X-Apple: 2", "X-MiXed: 3"];

/** Scenes in which the fields are not the bytes of the target. */
const scenes: Readonly<Record<string, Parameters<typeof startScriptedScene>[0]>> = {
  "a plugin sets fields": { plugins: [{ name: "security-headers", config: {} }] },
  "a plugin adds fields": {
    plugins: [
      { name: "transform", config: { response: { headers: { add: { "X-Added": "1" } } } } },
    ],
  },
  "a sticky cookie is added": { service: { sticky: { enabled: true } } },
};

describe.each(Object.entries(scenes))("where %s", (_, options) => {
  let scene: ScriptedScene;
  beforeAll(async () => {
    scene = await startScriptedScene({ ...options, listener: { engine: "sluice" } });
  });
  afterAll(() => scene.stop());

  test.each([
    ["a short body", "ok"],
    ["a streamed body", "x".repeat(300_000)],
  ])("names, order and the reason phrase of %s are the target's", async (_kind, body) => {
    const { received } = await scene.ask(reply(body, { headers: FIELDS, status: "200 Fine" }));
    const lines = received.slice(0, received.indexOf("\r\n\r\n")).split("\r\n");
    expect(lines[0]).toBe("HTTP/1.1 200 Fine");
    expect(lines.filter((line) => SENT.includes(line))).toEqual(SENT);
    expect(lines.filter((line) => /^set-cookie: [ab]=/i.test(line))).toHaveLength(2);
    expect(lines.filter((line) => /^content-length:/i.test(line))).toEqual([
      `Content-Length: ${body.length}`,
    ]);
  });
});

test.each([
  ["a short body", "ok"],
  ["a streamed body", "x".repeat(300_000)],
])("names that a plugin sets are spelled as it does, with %s", async (_kind, body) => {
  const scene = await startScriptedScene({
    plugins: [{ name: "security-headers", config: { frame_options: "DENY" } }],
    listener: { engine: "sluice" },
  });
  try {
    const headers = `X-Apple: 2\r\nx-frame-options: SAMEORIGIN\r\n${FIELDS}`;
    const { received } = await scene.ask(reply(body, { headers }));
    const lines = received.slice(0, received.indexOf("\r\n\r\n")).split("\r\n");
    // In the place of the target's.
    expect(lines.slice(lines.indexOf("X-Apple: 2")).slice(0, 3)).toEqual([
      "X-Apple: 2",
      "X-Frame-Options: DENY",
      "X-Zebra: 1",
    ]);
    expect(lines.filter((line) => /^x-frame-options:/i.test(line))).toHaveLength(1);
    expect(lines.filter((line) => /^date:/i.test(line))).toHaveLength(1);
    expect(lines.filter((line) => /^X-Request-Id: [\da-f-]{36}$/.test(line))).toHaveLength(1);
  } finally {
    await scene.stop();
  }
});

test("the id of the target is replaced where it stood", async () => {
  const scene = await startScriptedScene({ listener: { engine: "sluice" } });
  try {
    const headers = `X-Request-ID: theirs\r\n${FIELDS}`;
    const { received } = await scene.ask(reply("ok", { headers }));
    const ids = received.split("\r\n").filter((line) => /^x-request-id:/i.test(line));
    expect(ids).toEqual([expect.stringMatching(/^X-Request-ID: [\da-f-]{36}$/)]);
    expect(received).toContain("\r\nX-Zebra: 1\r\n");
  } finally {
    await scene.stop();
  }
});
