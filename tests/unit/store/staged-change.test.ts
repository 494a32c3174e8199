// How a large change is stored: with the content of a small one, and readable where a key rotation needs it.
import { describe, expect, test } from "bun:test";
import type { ConfigChange, GatewayConfig } from "../../../src/model/gateway-config.ts";
import type { Route } from "../../../src/model/route.ts";
import { Pace } from "../../../src/pace.ts";
import { undoOf } from "../../../src/model/undo.ts";
import { toStoredChange } from "../../../src/store/revisions.ts";
import { stageChange, unpack } from "../../../src/store/staged-change.ts";
import { Draft } from "../../../src/control/draft.ts";
import { configOf, route, service } from "../control/fixture.ts";

const base = configOf({
  services: [service("s")],
  routes: [route("old", { description: "before" }), route("gone")],
});

/** A change of `base`. */
function changeOf(write: (draft: Draft) => void, from: GatewayConfig = base) {
  const draft = new Draft(from, () => "2026-01-02T00:00:00.000Z");
  write(draft);
  const change = draft.change();
  return { change, undo: undoOf(change, from) };
}

const many = (draft: Draft, fields = {}) => {
  for (let index = 0; index < 600; index++) draft.put("routes", route(`r${index}`, fields));
  draft.put("routes", route("old", { description: "after" }));
  draft.remove("routes", "gone");
  draft.putSingleton("settings", { ...base.settings, public_url: "https://a.test" });
};

const asStored = ({ change, undo }: { change: ConfigChange; undo: ConfigChange }) =>
  JSON.parse(JSON.stringify(toStoredChange(change, undo))) as unknown;

describe("a large change", () => {
  test("is read from the history unchanged", async () => {
    const both = changeOf(many);
    const staged = await stageChange(both.change, both.undo, new Pace());
    const stored = JSON.parse(staged!.revision) as Record<string, unknown>;
    expect(unpack(stored)).toEqual(asStored(both));
    // Its changed parts can be queried without unpacking it.
    expect(Object.keys(stored).sort()).toEqual(["routes", "settings", "zstd"]);
    expect(staged!.revision.length).toBeLessThan(JSON.stringify(asStored(both)).length / 10);
  });

  test("that is longer than one packed block is read back whole", async () => {
    const both = changeOf((draft) => many(draft, { description: 'ü"\\'.repeat(1_200) }));
    const staged = await stageChange(both.change, both.undo, new Pace());
    expect(JSON.stringify(asStored(both)).length).toBeGreaterThan(2_000_000);
    expect(unpack(JSON.parse(staged!.revision))).toEqual(asStored(both));
  });

  test("has the documents of all that it writes", async () => {
    const both = changeOf(many);
    const staged = await stageChange(both.change, both.undo, new Pace());
    for (const object of both.change.routes.upserts) {
      const { id: _, created_at, updated_at, ...document } = object;
      expect(staged!.documents.get(object)).toBe(JSON.stringify(document));
    }
  });

  test("with encrypted values is not packed: they are encrypted again when the key changes", async () => {
    const sealed = { description: "x", sealed_key: "sealed:1:00000000:abc" } as Partial<Route>;
    const both = changeOf((draft) => {
      many(draft);
      draft.put("routes", { ...route("sealed"), ...sealed });
    });
    const staged = await stageChange(both.change, both.undo, new Pace());
    expect(staged!.revision).toContain('"sealed_key":"sealed:1:00000000:abc"');
    expect(JSON.parse(staged!.revision)).toEqual(asStored(both));
    const back = changeOf((draft) => many(draft), {
      ...base,
      routes: new Map([["gone", { ...route("gone"), ...sealed }]]),
    });
    const undone = await stageChange(back.change, back.undo, new Pace());
    expect(JSON.parse(undone!.revision)).toEqual(asStored(back));
  });

  test("is one of more than 500 objects", async () => {
    const write = (count: number) => (draft: Draft) => {
      for (let index = 0; index < count; index++) draft.put("routes", route(`r${index}`));
    };
    const [small, large] = [changeOf(write(500)), changeOf(write(501))];
    expect(await stageChange(small.change, small.undo, new Pace())).toBeNull();
    expect(await stageChange(large.change, large.undo, new Pace())).not.toBeNull();
  });
});

test("an unpacked change is returned unchanged", () => {
  const stored = { routes: { upserts: [], removals: ["a"] } };
  expect(unpack(stored)).toBe(stored);
});
