// Bodies on their way through plugins: whole, streamed, replaced, watched; framing always agrees with what is sent.
import { afterEach, describe, expect, test } from "bun:test";
import { type PluginScene, pluginScene } from "../../support/plugin-scene.ts";
import { probePlugin, Trail } from "../../support/probe-plugin.ts";

let scene: PluginScene | null = null;
afterEach(async () => {
  await scene?.stop();
  scene = null;
});

const trail = new Trail();
const probes = [
  probePlugin(trail, "outer", { order: 30, phases: ["response"] }),
  probePlugin(trail, "inner", { order: 20, phases: ["response"] }),
];

async function start(
  kinds: { readonly inner?: string; readonly outer?: string },
  answer: () => Response,
): Promise<PluginScene> {
  trail.take();
  scene = await pluginScene({
    ownPlugins: probes,
    answer,
    plugins: Object.entries(kinds).map(([name, body]) => ({ name, config: { body } })),
  });
  return scene;
}

const whole = (text: string) => () => new Response(text);

/** Of unknown length, in pieces that come one after the other. */
const inPieces = (pieces: readonly string[]) => () => {
  const left = [...pieces];
  const stream = new ReadableStream({
    async pull(controller) {
      await Bun.sleep(5);
      const piece = left.shift();
      if (piece === undefined) controller.close();
      else controller.enqueue(Buffer.from(piece));
    },
  });
  return new Response(stream);
};

describe.each([
  ["in one piece", whole],
  ["in pieces", (text: string) => inPieces([text.slice(0, 3), text.slice(3)])],
] as const)("a body %s", (_, answerOf) => {
  test.each([
    [{ inner: "upper" }, "HELLO WORLD!"],
    [{ inner: "async" }, "HELLO WORLD!"],
    [{ inner: "hold" }, "dlrow olleh"],
    [{ inner: "async", outer: "hold" }, "!DLROW OLLEH"],
    [{ inner: "hold", outer: "async" }, "DLROW OLLEH!"],
    [{ inner: "replace" }, "replaced"],
    [{ inner: "replace", outer: "upper" }, "REPLACED!"],
    [{ inner: "upper", outer: "replace" }, "replaced"],
  ])("through %o is %s", async (kinds, expected) => {
    const { get } = await start(kinds, answerOf("hello world"));
    const { body, headers } = await get("/");
    expect(body).toBe(expected);
    const length = headers.get("content-length");
    if (length !== null) expect(length).toBe(String(expected.length));
  });

  test("that is only read stays as it is", async () => {
    const { get } = await start({ inner: "count" }, answerOf("hello world"));
    const { body } = await get("/");
    expect(body).toBe("hello world");
    expect(trail.take()).toContain("11 bytes");
  });
});

test("a long body streams through a transform with its bytes in order", async () => {
  const text = "0123456789abcdef".repeat(200_000);
  for (const kind of ["async", "upper"]) {
    const { get } = await start({ inner: kind }, whole(text));
    expect((await get("/")).body).toBe(`${text.toUpperCase()}!`);
    await scene?.stop();
    scene = null;
  }
});

test("a response without a body gets none", async () => {
  const { send } = await start({ inner: "upper" }, () => new Response(null, { status: 204 }));
  expect((await send("GET", "/")).body).toBe("");
  await scene?.stop();
  const head = await start({ inner: "upper" }, whole("hello"));
  const answer = await head.send("HEAD", "/");
  expect(answer.body).toBe("");
  expect(answer.headers.get("content-length")).toBe("5");
});

test("the gateway's own pages go through it too", async () => {
  scene = await pluginScene({
    ownPlugins: probes,
    plugins: [{ name: "inner", config: { body: "async" } }],
    services: [{ name: "web", targets: [] }],
  });
  const { status, body, headers } = await scene.get("/");
  expect(status).toBe(503);
  expect(body).toContain("503 SERVICE UNAVAILABLE");
  expect(body).toEndWith("!");
  expect(headers.get("x-seen-by")).toBe("inner");
});
