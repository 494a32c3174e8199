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

describe("responses of the gateway and of plugins", () => {
  const cases: Readonly<Record<string, { plugins?: object[]; path?: string; names: string[] }>> = {
    "an error page": {
      path: "/missing",
      names: ["Content-Type", "Cache-Control", "Proxy-Status", "X-Request-Id", "Date"],
    },
    "a redirect": {
      plugins: [{ name: "redirect", config: { to: "https://www.example.com", status: 308 } }],
      names: ["Location", "Content-Length", "X-Request-Id", "Date"],
    },
    "a response by configuration, with a header that a user has named": {
      plugins: [
        { name: "respond", config: { status: 200, body: "hello", headers: { "X-sOme": "1" } } },
      ],
      names: ["X-sOme", "Content-Type", "X-Request-Id", "Date", "Content-Length"],
    },
    "a reply whose plugin works with Headers, and others with theirs": {
      plugins: [
        { name: "cors", config: { origins: ["https://app.example.com"] } },
        { name: "transform", config: { response: { headers: { add: { "x-Added": "1" } } } } },
      ],
      names: ["Vary", "Access-Control-Allow-Origin", "Access-Control-Allow-Methods"],
    },
  };

  test.each(Object.entries(cases))("%s: names are written as usual", async (_, given) => {
    const { plugins = [], path = "/", names } = given;
    const scene = await startScriptedScene({
      plugins: plugins as never,
      route: { paths: [{ type: "exact", value: "/" }] },
      listener: { engine: "sluice" },
    });
    try {
      const preflight = "Origin: https://app.example.com\r\nAccess-Control-Request-Method: PUT\r\n";
      const method = names.includes("Vary") ? "OPTIONS" : "GET";
      const asked = `${method} ${path} HTTP/1.1\r\nHost: h\r\n${method === "GET" ? "" : preflight}\r\n`;
      const { received } = await scene.ask(reply("never"), asked);
      const sent = received.slice(0, received.indexOf("\r\n\r\n")).split("\r\n").slice(1);
      const found = sent.map((line) => line.slice(0, line.indexOf(":")));
      expect(found).toEqual(expect.arrayContaining(names));
      expect(found.filter((name) => !names.includes(name) && !/^[A-Z]/.test(name))).toEqual([]);
    } finally {
      await scene.stop();
    }
  });

  test("a stored response has names in their usual case", async () => {
    const scene = await startScriptedScene({
      plugins: [{ name: "response-cache", config: {} }],
      listener: { engine: "sluice" },
    });
    try {
      const stored = reply("ok", {
        headers: 'Cache-Control: max-age=60\r\neTAG: "a"\r\nx-own: 1\r\n',
      });
      await scene.ask(stored);
      const { received } = await scene.ask(reply("other"));
      expect(received).toContain("\r\nX-Cache-Status: HIT\r\n");
      for (const line of ['ETag: "a"', "X-Own: 1", "Content-Length: 2", "Age: 0"])
        expect(received).toContain(`\r\n${line}\r\n`);
    } finally {
      await scene.stop();
    }
  });

  test("a redirect has an end: a client that keeps its connection sends its next request", async () => {
    const scene = await startScriptedScene({
      plugins: [{ name: "redirect", config: { to: "https://www.example.com", status: 302 } }],
      listener: { engine: "sluice" },
    });
    try {
      const asked = "GET /a HTTP/1.1\r\nHost: h\r\n\r\nGET /b HTTP/1.1\r\nHost: h\r\n\r\n";
      const { answers } = await scene.ask(reply("never"), asked, {
        answers: 2,
        methods: ["GET", "GET"],
      });
      expect(answers.map((answer) => [answer.status, answer.header("content-length")])).toEqual([
        [302, "0"],
        [302, "0"],
      ]);
    } finally {
      await scene.stop();
    }
  });

  test("a longer body by a transform of a streamed response is chunked, whatever length the target has declared", async () => {
    const scene = await startScriptedScene({
      plugins: [
        {
          name: "transform",
          config: { response: { body_replace: [{ regex: "x", with: "yy" }] } },
        } as never,
      ],
      service: { response_buffer_bytes: 0 },
      listener: { engine: "sluice" },
    });
    try {
      const { answers } = await scene.ask(
        reply("x".repeat(1000), { headers: "Content-Type: text/plain\r\n" }),
      );
      expect(answers[0]?.body).toBe("yy".repeat(1000));
      expect(answers[0]?.header("content-length")).toBeNull();
    } finally {
      await scene.stop();
    }
  });
});
