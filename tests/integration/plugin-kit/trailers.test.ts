// Trailers of responses through plugins: seen and changed after the body, moved into it, and sent to clients.
import { afterEach, expect, test } from "bun:test";
import { connect } from "node:http2";
import type { ResponseDraft } from "../../../src/pdk/context.ts";
import { type AnyPlugin, definePlugin, httpScopes } from "../../../src/pdk/definition.ts";
import { config } from "../../../src/pdk/fields.ts";
import { selfSigned } from "../../support/certificate.ts";
import { cleanupsOf } from "../../support/cleanups.ts";
import { type PluginSketch, startDataPlane } from "../../support/data-plane.ts";
import { startHttp2Target, type StreamHandler } from "../upstream-http2/target.ts";

const stops = cleanupsOf(afterEach);

const plugin = (name: string, order: number, response: (draft: ResponseDraft) => void): AnyPlugin =>
  definePlugin({
    name,
    order,
    summary: "",
    description: "",
    group: "content",
    phases: ["response", "body"],
    scopes: httpScopes,
    onError: "closed",
    example: {},
    config: config({}),
    create: () => ({ response: (_, draft) => response(draft) }),
  });

const plugins = [
  plugin("inner", 10, (draft) =>
    draft.changeTrailers((trailers) => {
      trailers.set("x-seen", [...trailers].map(([name]) => name).join(" "));
      trailers.delete("x-inside");
    }),
  ),
  plugin("outer", 20, (draft) =>
    draft.changeTrailers((trailers) => trailers.append("x-seen", "outer")),
  ),
  plugin("moves", 30, (draft) =>
    draft.transformBody({
      push: (chunk) => chunk,
      end(trailers) {
        const moved = trailers.get("x-late") ?? "none";
        trailers.delete("x-late");
        return Buffer.from(`, ${moved}`);
      },
    }),
  ),
  plugin("fails", 40, (draft) =>
    draft.changeTrailers(() => {
      throw new Error("on demand");
    }),
  ),
];

const late: StreamHandler = (stream) => {
  stream.respond({ ":status": 200 }, { waitForTrailers: true });
  stream.on("wantTrailers", () => stream.sendTrailers({ "x-late": "late", "x-inside": "secret" }));
  stream.end("body");
};
const streamed: StreamHandler = (stream) => {
  stream.respond({ ":status": 200 }, { waitForTrailers: true });
  stream.on("wantTrailers", () => stream.sendTrailers({ "x-late": "late" }));
  stream.write("bo");
  setTimeout(() => stream.end("dy"), 20);
};
const without: StreamHandler = (stream) => {
  stream.respond({ ":status": 200, "content-length": 4 });
  stream.end("body");
};

async function get(handle: StreamHandler, sketches: readonly PluginSketch[], method = "GET") {
  const target = await startHttp2Target(handle);
  const plane = await startDataPlane({
    tls: await selfSigned(),
    listener: { engine: "sluice" },
    services: [{ name: "app", protocol: "h2c", targets: [{ port: target.port }] }],
    routes: [{ name: "all", service_id: "app" }],
    ownPlugins: plugins,
    plugins: sketches,
  });
  const session = connect(`https://localhost:${plane.port}`, { rejectUnauthorized: false });
  stops.push(
    () => target.stop(),
    () => plane.stop(),
    () => session.destroy(),
  );
  const { promise, resolve } = Promise.withResolvers<{
    body: string;
    trailers: Record<string, unknown> | null;
    code: number;
  }>();
  const stream = session.request({ ":path": "/", ":method": method });
  let body = "";
  let trailers: Record<string, unknown> | null = null;
  stream.on("data", (piece: Buffer) => (body += piece.toString()));
  stream.on("trailers", (fields) => {
    // Without the symbols of node:http2.
    trailers = Object.fromEntries(Object.entries(fields));
  });
  stream.on("error", () => {});
  stream.on("close", () => resolve({ body, trailers, code: stream.rstCode }));
  stream.end();
  return promise;
}

test.each([
  ["no plugin", late, [], "body", { "x-late": "late", "x-inside": "secret" }],
  ["one plugin", late, ["inner"], "body", { "x-late": "late", "x-seen": "x-inside x-late" }],
  [
    "plugins in the order of the response phase",
    late,
    ["outer", "inner"],
    "body",
    { "x-late": "late", "x-seen": "x-inside x-late, outer" },
  ],
  ["a plugin that adds them", without, ["outer"], "body", { "x-seen": "outer" }],
  ["a plugin that moves them into the body", streamed, ["moves"], "body, late", null],
  [
    "a transform, which sees the changes",
    late,
    ["moves", "inner"],
    "body, late",
    { "x-seen": "x-inside x-late" },
  ],
] as const)("%s", async (_, handle, names, body, trailers) => {
  const response = await get(
    handle,
    names.map((name) => ({ name, config: {} })),
  );
  expect(response).toMatchObject({ body, code: 0 });
  expect(response.trailers).toEqual(trailers);
});

test("a plugin that fails leaves no response that looks complete", async () => {
  const { code } = await get(streamed, [{ name: "fails", config: {} }]);
  expect(code).not.toBe(0);
});

test("the response to HEAD has none", async () => {
  const { trailers } = await get(without, [{ name: "outer", config: {} }], "HEAD");
  expect(trailers).toBeNull();
});

test("transform removes, renames, sets and adds them", async () => {
  const trailersOf = {
    remove: ["x-inside"],
    rename: { "x-late": "x-later" },
    set: { "x-host": "${request.host}" },
    add: { "x-later": "more" },
  };
  const { trailers } = await get(late, [
    { name: "transform", config: { response: { trailers: trailersOf } } },
  ]);
  expect(trailers).toEqual({ "x-later": "late, more", "x-host": "localhost" });
});
