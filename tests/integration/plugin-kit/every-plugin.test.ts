// Every plugin with its example on a real data plane: it runs in the phases that it names, and nothing that clients send makes it fail.
import { testDialer } from "../../support/dialer.ts";
import { describe, expect, test } from "bun:test";
import type { TSchema } from "@sinclair/typebox";
import { decode } from "../../../src/model/decode.ts";
import { plugins } from "../../support/plugins.ts";
import { phaseHandlers, type PluginHandlers } from "../../../src/pdk/definition.ts";
import type { Counters } from "../../../src/pdk/kit.ts";
import { pluginScene } from "../../support/plugin-scene.ts";
import { createCacheMemory } from "../../../src/shared-memory/cache/memory.ts";
import { openCache } from "../../../src/shared-memory/cache/open.ts";

/** Heads that no application would send; every one is valid HTTP. */
const ODD_HEADERS: readonly Readonly<Record<string, string>>[] = [
  {},
  { Authorization: "" },
  { Authorization: "Bearer" },
  { Authorization: "Bearer a.b.c" },
  { Authorization: "Bearer eyJhbGciOiJub25lIn0.e30." },
  { Authorization: `Bearer ${"A".repeat(8000)}` },
  { Authorization: "Basic" },
  { Authorization: "Basic !!!!" },
  { Authorization: `Basic ${Buffer.from("no colon").toString("base64")}` },
  { Authorization: `Basic ${Buffer.from(":\u0000").toString("base64")}` },
  { Authorization: "Signature x" },
  { Cookie: "=; ;;; a=%zz; b" },
  { Cookie: `${"x=".repeat(3000)}` },
  { "X-API-Key": "ÿþ" },
  { Origin: "null" },
  { Origin: "not an origin", "Access-Control-Request-Method": "\t" },
  { "Accept-Encoding": "gzip;q=x, *;q=2, br;;" },
  { Accept: ";;;,,,/" },
  { "Content-Type": 'application/json; charset="' },
  { "If-None-Match": '"""' },
  { Range: "bytes=9-1,-,x" },
  { "Cache-Control": 'max-age=x, =, ,no-cache="' },
  { "Signature-Input": "sig1=(", Signature: "sig1=:!:" },
  { "Content-Digest": "sha-256=:x:" },
  { traceparent: "00-zz-zz-zz" },
  { "X-Forwarded-For": "999.1.1.1, ::::, unknown" },
  { "User-Agent": "%s%n(((((((((((" },
  { "X-Request-Id": "é".repeat(100) },
];

const ODD_PATHS = [
  "/",
  "//",
  "/%2F%2e%2e/%00x".replace("%00", "%01"),
  "/a;b=c/../d",
  "/?=&&&a=%zz&a&=b",
  `/${"a".repeat(3000)}`,
  "/x?q=${jndi}'%20OR%201=1--<script>",
];

const ODD_BODIES = ["", "{", '{"a":', "null", "[]", "a=1&a=%zz", "\u0000\u0001", '{"apikey":{}}'];

describe.each(plugins.map((plugin) => [plugin.name, plugin] as const))("%s", (name, plugin) => {
  test("is harmless with its example for all requests", async () => {
    const scene = await pluginScene({
      services: [
        { name: "web", targets: [] },
        { name: "canary", targets: [] },
      ],
      consumers: [{ username: "alice" }, { username: "guest" }],
    });
    try {
      await scene.apply({
        services: [{ name: "web", targets: [{ port: scene.originPort }] }],
        plugins: [{ name, config: plugin.example }],
      });
      const statuses = new Set<number>();
      for (const path of ODD_PATHS)
        for (const headers of ODD_HEADERS) {
          const { status } = await scene.send("GET", path, { headers });
          statuses.add(status);
        }
      for (const method of ["POST", "PUT", "DELETE", "OPTIONS", "HEAD"])
        for (const body of method === "HEAD" ? [null] : ODD_BODIES)
          for (const type of ["application/json", "application/x-www-form-urlencoded", ""])
            statuses.add(
              (await scene.send(method, "/", { headers: { "Content-Type": type }, body })).status,
            );
      const failed = scene.plane.log.filter(({ message }) => message === "a plugin failed");
      expect(failed).toEqual([]);
      expect([...statuses].filter((status) => status === 500)).toEqual([]);
    } finally {
      await scene.stop();
    }
  });

  test("has handlers for its declared phases, and changes nothing shared while it is created", async () => {
    const unused = (): never => {
      throw new Error("not in create");
    };
    const handlers = await plugin.create(decoded(plugin.config, plugin.example), {
      instance: { id: "i", plugin: name, label: null, scope: "global" },
      worker: 0,
      workers: 1,
      dialer: testDialer,
      counters: new Proxy({} as Counters, { get: unused }),
      openCache: (use) =>
        openCache(createCacheMemory({ maxBytes: 1_048_576, workers: 1 }), { worker: 0, ...use }),
      cacheDirectory: null,
      shared: null,
      callout: unused,
      followFeed: null,
      deriveKey: () => new Uint8Array(32),
      logDirectories: null,
      log() {},
      dropped: unused,
      used: unused,
    });
    const found = Object.values(phaseHandlers).filter(
      (handler) => (handlers as PluginHandlers)[handler] !== undefined,
    );
    // Plugins change bodies from `response`, and not every instance has every handler.
    const named = plugin.phases
      .filter((phase) => phase !== "body")
      .map((phase) => phaseHandlers[phase]);
    for (const handler of found) expect(named).toContain(handler);
    await (handlers as PluginHandlers).close?.();
  });
});

function decoded(schema: TSchema, config: unknown): never {
  return decode(schema, config) as never;
}
