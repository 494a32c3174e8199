// Configuration files, valid and broken: an import applies all or nothing, and its export imports again.
import fc from "fast-check";
import { opened } from "../../../src/import/transfer/document-reader.ts";
import { readSource } from "../../../src/import/transfer/source.ts";
import { parseJson } from "../../../src/api/json-body.ts";
import { ApiError } from "../../../src/model/error.ts";
import type { ImportMode } from "../../../src/model/export-document.ts";
import type { GatewayConfig } from "../../../src/model/gateway-config.ts";
import {
  configOf,
  controlPlane,
  listener,
  options,
  route,
  service,
  target as targetOf,
} from "../../unit/control/fixture.ts";
import { defineTarget, must, mustEqual } from "../target.ts";

/** The replacement of some value; `null` as a step removes it. */
interface Change {
  /** Thousandths of the number of places. */
  readonly at: number;
  readonly kind: "replace" | "remove" | "repeat" | "rename";
  readonly value: unknown;
}

interface Input {
  readonly changes: readonly Change[];
  readonly mode: ImportMode;
  readonly type: "json" | "yaml";
  readonly dryRun: boolean;
}

const value = fc.oneof(
  fc.constantFrom<unknown>(
    ...[null, true, 0, -1, 1.5, 1e21, "", "a", "web", "***", "/", "=/x", "*.a.test", "10.0.0.1"],
    ...["\u0000", "a\r\nb", "constructor", "01a00000-0000-7000-8000-000000000001", "x".repeat(300)],
    ...[[], {}, [[]], [null], ["a", "a"], { name: "a" }, { sealed: "x" }, { constructor: 1 }],
  ),
  fc.string({ maxLength: 8, unit: "grapheme" }),
  fc.integer(),
);

export const target = defineTarget<Input>({
  name: "import-document",
  share: 5,
  inputs: fc.record({
    changes: fc.array(
      fc.record({
        at: fc.integer({ min: 0, max: 999 }),
        kind: fc.constantFrom("replace", "replace", "remove", "repeat", "rename"),
        value,
      }),
      { maxLength: 3 },
    ),
    mode: fc.constantFrom("merge", "replace"),
    type: fc.constantFrom("json", "yaml"),
    dryRun: fc.boolean(),
  }),
  async check({ changes, mode, type, dryRun }) {
    const document = changes.reduce(changed, structuredClone(DOCUMENT) as unknown);
    const { control, steps } = controlPlane(BASE);
    const before = control.changes.config;
    const text = JSON.stringify(document) ?? "";
    try {
      const source = opened(await readSource(text, type, parseJson));
      await control.transfer.import(source, { by: options.by, mode, dryRun });
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      must(error.status < 500, `status ${error.status}: ${error.message}`);
      must(control.changes.config === before, "it was refused and has changed something");
      mustEqual(
        [steps.commits.length, steps.active],
        [0, 0],
        "commits and versions after a refusal",
      );
      if (changes.length === 0) throw error;
      return;
    }
    if (dryRun) {
      must(control.changes.config === before && steps.commits.length === 0, "a dry run wrote");
      return;
    }
    must(steps.commits.length <= 1, "more than one change");
    if (mode === "replace") await checkRoundTrip(control.changes.config, control.transfer);
  },
});

/** Imported into an empty gateway and exported, it is the same to the byte. */
async function checkRoundTrip(
  config: GatewayConfig,
  transfer: ReturnType<typeof controlPlane>["control"]["transfer"],
): Promise<void> {
  const out = await transfer.exportPlain({ role: "admin" }, "fuzz");
  const text = JSON.stringify(out);
  const other = controlPlane(configOf({})).control;
  const source = opened(await readSource(text, "json", parseJson));
  await other.transfer.import(source, { by: options.by, mode: "replace", dryRun: false });
  mustEqual(other.changes.config.routes.size, config.routes.size, "number of routes");
  mustEqual(
    JSON.stringify(await other.transfer.exportPlain({ role: "admin" }, "fuzz")),
    text,
    "second export",
  );
}

const id = (number: number) => `01a00000-0000-7000-8000-00000000000${number}`;

const BASE = configOf({
  services: [service(id(1), { name: "old" })],
  targets: [targetOf(id(2), { service_id: id(1), host: "10.0.0.9" })],
  routes: [route(id(3), { name: "old-route", service_id: id(1), paths: ["/old"] })],
  listeners: [
    listener(id(4), { name: "main", address: "127.0.0.1", port: 8080, protocol: "http" }),
  ],
});

const DOCUMENT = {
  format: 1,
  services: [{ name: "web", algorithm: "round_robin" }, { name: "old" }],
  targets: [
    { service_id: "web", host: "10.0.0.1", port: 80, weight: 5 },
    { service_id: "old", host: "origin.test", port: 8080 },
  ],
  listeners: [{ name: "main", address: "127.0.0.1", port: 8080, protocol: "http" }],
  routes: [
    { name: "shop", service_id: "web", hosts: ["shop.test", "*.shop.test"], paths: ["/a", "=/b"] },
    {
      name: "rules",
      service_id: "old",
      methods: ["GET"],
      headers: [{ name: "X-A", op: "present" }],
    },
  ],
  consumers: [{ username: "ada", tags: ["x"] }],
  plugins: [
    { name: "rate-limit", route_id: "shop", config: { limits: [{ requests: 5, window: 60 }] } },
    { name: "cors", config: {} },
  ],
  settings: { debug_headers: true },
};

interface Place {
  readonly parent: Record<string, unknown> | unknown[];
  readonly key: string | number;
}

function placesOf(node: unknown): Place[] {
  if (typeof node !== "object" || node === null) return [];
  const parent = node as Place["parent"];
  const keys = Array.isArray(parent) ? [...parent.keys()] : Object.keys(parent);
  return keys.flatMap((key) => [
    { parent, key },
    ...placesOf((parent as Record<string, unknown>)[key]),
  ]);
}

function changed(document: unknown, { at, kind, value }: Change): unknown {
  const places = placesOf(document);
  const place = places[Math.floor((at * places.length) / 1000)];
  if (place === undefined) return value;
  const { key } = place;
  const parent = place.parent as Record<string | number, unknown>;
  if (Array.isArray(parent)) {
    if (kind === "remove") parent.splice(key as number, 1);
    else if (kind === "repeat")
      parent.splice(key as number, 0, structuredClone(parent[key as number]));
    else parent[key as number] = structuredClone(value);
    return document;
  }
  if (kind === "replace" || kind === "repeat") parent[key] = structuredClone(value);
  else {
    if (kind === "rename") parent[String(value)] = parent[key];
    delete parent[key];
  }
  return document;
}
