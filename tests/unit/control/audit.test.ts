// The audit log on a real database: append only, retained as the settings say, filtered, and bounded under a flood.
import { Database } from "bun:sqlite";
import { join } from "node:path";
import { describe, expect, test } from "bun:test";
import { compileStored } from "../../../src/control/stored.ts";
import { AdminNetworks, localAccess } from "../../../src/control/admin-network.ts";
import { AuditLog } from "../../../src/control/audit.ts";
import { TargetStates } from "../../../src/control/health/target-states.ts";
import { createServices } from "../../../src/control/services.ts";
import { SettingsUseCases } from "../../../src/control/settings.ts";
import { createLog } from "../../../src/log.ts";
import type { AuditFilter, AuditEntry } from "../../../src/model/audit-entry.ts";
import { firstConfiguration } from "../../../src/store/first-configuration.ts";
import { TargetBoard } from "../../../src/shared-memory/target-board.ts";
import { Store } from "../../../src/store/store.ts";
import { temporaryDirectory } from "../store/fixture.ts";
import { at, changesOf, context, options } from "./fixture.ts";

const DAY_MS = 86_400_000;
const MINUTE_MS = 60_000;

const listeners = {
  http: { hostname: "127.0.0.1", port: 8080 },
  https: { hostname: "127.0.0.1", port: 8443 },
};

/** A control plane on a database of its own, with a fixed clock. */
function scene(dataDir: string) {
  const clock = { time: Date.parse(at), now: () => clock.time };
  const logged: { message: string }[] = [];
  const log = createLog({
    level: "info",
    format: "json",
    sink: (line) => logged.push(JSON.parse(line)),
  });
  const store = Store.open({ dataDir, log });
  if (store.isEmpty())
    store.begin(firstConfiguration(listeners, at), { at, actor: "test", summary: "" });
  const current = compileStored(store.load(), context);
  const changes = changesOf({ store, clock, log, current });
  const audit = new AuditLog({ store: store.audit, changes, clock, log });
  const states = new TargetStates(TargetBoard.create(1), clock);
  return {
    clock,
    control: {
      services: createServices(changes, states),
      settings: new SettingsUseCases(
        changes,
        new AdminNetworks(localAccess, () => changes.config.settings),
      ),
    },
    audit,
    store,
    logged,
    list: (filter: AuditFilter = {}) => [...audit.list(filter).pages].flat(),
    stored: () => {
      using database = new Database(join(dataDir, "sluice.db"), { readonly: true });
      return database.query<{ n: number }, []>("SELECT count(*) AS n FROM audit").get()!.n;
    },
    [Symbol.dispose]: () => store.close(),
  };
}

const refusal = (fields: Partial<AuditEntry> = {}): Omit<AuditEntry, "at"> => ({
  actor: "anonymous",
  method: "none",
  address: "192.0.2.1",
  action: "create",
  kind: "service",
  object_id: null,
  object_name: null,
  result: "refused",
  revision: null,
  detail: { status: 401 },
  ...fields,
});
const done = (fields: Partial<AuditEntry> = {}) =>
  refusal({ actor: "a@example.com", method: "session", result: "ok", action: "rotate", ...fields });

const retention = (fields: object) => ({ retention: fields });

describe("an entry", () => {
  test("of a change is stored with it, in one transaction, and precedes entries of later rejections", async () => {
    using directory = temporaryDirectory();
    using it = scene(directory.path);
    await it.control.services.create({ name: "web" }, options);
    it.audit.record(refusal());
    expect(it.list()).toMatchObject([
      { actor: "tester", method: "token", action: "create", kind: "service", object_name: "web" },
      { actor: "anonymous", method: "none", result: "refused", at },
    ]);
    expect(it.list()[0]).toMatchObject({
      result: "ok",
      revision: 2,
      detail: { before: null, after: { name: "web" } },
    });
  });

  test("is absent when the change could not be stored", async () => {
    using directory = temporaryDirectory();
    using it = scene(directory.path);
    using other = new Database(join(directory.path, "sluice.db"));
    other.run("CREATE TRIGGER broken BEFORE INSERT ON audit BEGIN SELECT RAISE(ABORT, 'no'); END");
    expect(it.control.services.create({ name: "web" }, options)).rejects.toThrow(
      "nothing was changed",
    );
    await Promise.resolve();
    other.run("DROP TRIGGER broken");
    expect(it.list()).toEqual([]);
  });

  test("is never changed in the database", () => {
    using directory = temporaryDirectory();
    using it = scene(directory.path);
    it.audit.record(refusal());
    using database = new Database(join(directory.path, "sluice.db"));
    expect(() => database.run("UPDATE audit SET actor = 'somebody else'")).toThrow(
      "audit entries are never changed",
    );
    expect(() => database.run("UPDATE OR REPLACE audit SET id = 99")).toThrow("never changed");
    expect(it.list()).toMatchObject([{ actor: "anonymous" }]);
  });

  test("reaches listeners, those of changes too", async () => {
    using directory = temporaryDirectory();
    using it = scene(directory.path);
    const actions: string[] = [];
    it.audit.onEntry(({ action }) => actions.push(action));
    await it.control.services.create({ name: "web" }, options);
    it.audit.record(done({ action: "login" }));
    expect(actions).toEqual(["create", "login"]);
  });

  test("from an unauthenticated client is truncated to a bounded size", () => {
    using directory = temporaryDirectory();
    using it = scene(directory.path);
    const long = "x".repeat(1_000_000);
    it.audit.record(refusal({ actor: long, object_name: long, object_id: long, detail: { long } }));
    expect(JSON.stringify(it.list()).length).toBeLessThan(4096);
  });

  test("that cannot be stored goes to the gateway's log, and no caller fails", () => {
    using directory = temporaryDirectory();
    using it = scene(directory.path);
    using other = new Database(join(directory.path, "sluice.db"));
    other.run("CREATE TRIGGER broken BEFORE INSERT ON audit BEGIN SELECT RAISE(ABORT, 'no'); END");
    it.audit.record(refusal({ actor: "mallory" }));
    expect(it.logged).toContainEqual(
      expect.objectContaining({ message: "an audit entry could not be stored", actor: "mallory" }),
    );
  });
});

describe("retention", () => {
  test("is exactly the newest entries, before and after they are deleted", async () => {
    using directory = temporaryDirectory();
    using it = scene(directory.path);
    for (let n = 0; n < 250; n++)
      await it.control.settings.patch(retention({ audit_entries: 100, revisions: n + 1 }), options);
    const entries = it.list();
    expect(entries.map(({ revision }) => revision)).toEqual(
      Array.from({ length: 100 }, (_, n) => 152 + n),
    );
    expect(it.stored()).toBeLessThan(200);
  });

  test("ends at the day that the settings name, to the millisecond", async () => {
    using directory = temporaryDirectory();
    using it = scene(directory.path);
    it.audit.record(done({ object_name: "old" }));
    it.clock.time += 1;
    it.audit.record(done({ object_name: "younger" }));
    it.clock.time = Date.parse(at) + 90 * DAY_MS;
    expect(it.list().map(({ object_name }) => object_name)).toEqual(["old", "younger"]);
    it.clock.time += 1;
    expect(it.list().map(({ object_name }) => object_name)).toEqual(["younger"]);
    // Still there: rows are deleted in batches, and when the settings change.
    expect(it.stored()).toBe(2);
    await it.control.settings.patch(retention({ audit_days: 89 }), options);
    expect(it.list()).toMatchObject([{ kind: "settings" }]);
    expect(it.stored()).toBe(1);
  });

  test("is enforced at the start", async () => {
    using directory = temporaryDirectory();
    {
      using it = scene(directory.path);
      for (let n = 0; n < 99; n++) it.audit.record(done());
      await it.control.settings.patch(retention({ audit_entries: 100 }), options);
      for (let n = 0; n < 60; n++) it.store.audit.append([{ ...done(), at }]);
      expect(it.stored()).toBe(160 - 49);
    }
    using it = scene(directory.path);
    expect(it.stored()).toBeLessThanOrEqual(100);
  });

  test("is at most half for actions without a change, so that they do not evict changes", async () => {
    using directory = temporaryDirectory();
    using it = scene(directory.path);
    await it.control.settings.patch(retention({ audit_entries: 100 }), options);
    for (let n = 0; n < 30; n++) await it.control.services.create({ name: `s${n}` }, options);
    for (let minute = 0; minute < 50; minute++) {
      for (let n = 0; n < 100; n++) it.audit.record(refusal({ actor: "viewer", method: "token" }));
      it.clock.time += MINUTE_MS;
    }
    const ofChanges = () => it.list().filter(({ revision }) => revision !== null);
    const others = () => it.list().filter(({ revision }) => revision === null);
    expect([ofChanges().length, others().length]).toEqual([31, 50]);
    it.audit.flush(true);
    await it.control.settings.patch(retention({ audit_days: 80 }), options);
    expect([ofChanges().length, others().length]).toEqual([32, 50]);
    expect(it.stored()).toBe(82);
  });
});

describe("a flood", () => {
  test("of one unknown client becomes ten entries a minute and one that counts the rest", () => {
    using directory = temporaryDirectory();
    using it = scene(directory.path);
    for (let n = 0; n < 10_000; n++) it.audit.record(refusal({ detail: { n } }));
    expect(it.stored()).toBe(10);
    it.clock.time += MINUTE_MS;
    it.audit.record(refusal({ detail: { n: "next minute" } }));
    expect(it.list().slice(-2)).toMatchObject([
      { address: "192.0.2.1", detail: { repeated: 9990, last: { n: 9999 } } },
      { detail: { n: "next minute" } },
    ]);
    expect(it.stored()).toBe(12);
  });

  test("of ten thousand addresses becomes sixty entries and one", () => {
    using directory = temporaryDirectory();
    using it = scene(directory.path);
    for (let n = 0; n < 10_000; n++) it.audit.record(refusal({ address: `2001:db8::${n}` }));
    expect(it.stored()).toBe(60);
    it.audit.flush(true);
    expect(it.stored()).toBe(61);
    expect(it.list().at(-1)).toMatchObject({ address: "", detail: { repeated: 9940 } });
  });

  test("while there are no users is bounded in the same way", () => {
    using directory = temporaryDirectory();
    using it = scene(directory.path);
    for (let n = 0; n < 1000; n++) it.audit.record(refusal({ method: "disabled" }));
    expect(it.stored()).toBe(10);
  });

  test("of a known user is bounded too, and does not hide those of others", () => {
    using directory = temporaryDirectory();
    using it = scene(directory.path);
    const viewer = { actor: "viewer@example.com", method: "session" } as const;
    for (let n = 0; n < 1000; n++) it.audit.record(refusal(viewer));
    expect(it.stored()).toBe(60);
    it.audit.record(refusal({ actor: "other@example.com", method: "session" }));
    it.audit.record(refusal());
    expect(it.stored()).toBe(62);
  });

  test("of logins and logouts is bounded, other successful actions are all stored", () => {
    using directory = temporaryDirectory();
    using it = scene(directory.path);
    for (let n = 0; n < 100; n++) {
      it.audit.record(done({ action: "login" }));
      it.audit.record(done({ action: "logout" }));
    }
    expect(it.stored()).toBe(60);
    for (let n = 0; n < 100; n++) it.audit.record(done());
    expect(it.stored()).toBe(160);
  });

  test("is stored at the end of its minute, also when the clock was set back, and when the gateway stops", () => {
    using directory = temporaryDirectory();
    using it = scene(directory.path);
    for (let n = 0; n < 11; n++) it.audit.record(refusal());
    it.audit.flush();
    expect(it.stored()).toBe(10);
    it.clock.time -= DAY_MS;
    it.audit.flush();
    expect(it.list()).toHaveLength(11);
    for (let n = 0; n < 12; n++) it.audit.record(refusal());
    it.audit.flush(true);
    expect(it.list().at(-1)).toMatchObject({ detail: { repeated: 2 } });
    it.audit.flush(true);
    expect(it.stored()).toBe(22);
  });
});

describe("a filter", () => {
  const minute = (n: number) => new Date(Date.parse(at) + n * MINUTE_MS).toISOString();
  const entries = [
    done({ actor: "Ann@example.com", kind: "user", action: "password", object_id: "u1" }),
    done({ actor: "bob@example.com", kind: "token", action: "rotate", object_name: "Deploy 100%" }),
    refusal({ actor: "bob@example.com", method: "token", kind: "user", address: "198.51.100.7" }),
  ];
  const cases: { filter: AuditFilter; fits: number[] }[] = [
    { filter: {}, fits: [0, 1, 2] },
    { filter: { actor: "bob@example.com" }, fits: [1, 2] },
    { filter: { actor: "BOB@example.com" }, fits: [] },
    { filter: { kind: "user" }, fits: [0, 2] },
    { filter: { kind: "user", result: "ok" }, fits: [0] },
    { filter: { action: "rotate" }, fits: [1] },
    { filter: { object_id: "u1" }, fits: [0] },
    { filter: { q: "ann" }, fits: [0] },
    { filter: { q: "deploy 100%" }, fits: [1] },
    { filter: { q: "%" }, fits: [1] },
    { filter: { q: "198.51" }, fits: [2] },
    { filter: { q: "' OR 1=1 --" }, fits: [] },
    { filter: { since: minute(1) }, fits: [1, 2] },
    { filter: { until: minute(1) }, fits: [0] },
    { filter: { since: minute(1), until: minute(2) }, fits: [1] },
    { filter: { since: minute(3) }, fits: [] },
  ];
  test.each(cases)("$filter finds $fits", ({ filter, fits }) => {
    using directory = temporaryDirectory();
    using it = scene(directory.path);
    for (const entry of entries) {
      it.audit.record(entry);
      it.clock.time += MINUTE_MS;
    }
    const all = it.list();
    expect(it.list(filter)).toEqual(fits.map((index) => all[index]!));
  });

  test("reads long lists in pages, and does not see what came after it was asked", () => {
    using directory = temporaryDirectory();
    using it = scene(directory.path);
    const rows = Array.from({ length: 1001 }, (_, n) => ({
      ...done({ object_name: String(n) }),
      at,
    }));
    it.store.audit.append(rows);
    const { pages, tag } = it.audit.list({});
    it.audit.record(done({ object_name: "later" }));
    const names = [...pages].map((page) => page.map(({ object_name }) => object_name));
    expect(names.length).toBe(6);
    expect(names.flat()).toEqual(rows.map(({ object_name }) => object_name));
    expect(it.audit.list({}).tag).not.toBe(tag);
    expect(it.audit.list({}).tag).toBe(it.audit.list({}).tag);
  });
});
