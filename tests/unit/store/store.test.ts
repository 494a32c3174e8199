// Committed objects are loaded again, unchanged and in order; a failed write leaves no trace.
import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { undoOf } from "../../../src/model/undo.ts";
import type { GatewayConfig } from "../../../src/model/gateway-config.ts";
import { decode } from "../../../src/model/decode.ts";
import { type Application, applicationRecord } from "../../../src/model/application.ts";
import type { Listener } from "../../../src/model/listener.ts";
import { type Plugin, pluginInput } from "../../../src/model/plugin.ts";
import type { Service } from "../../../src/model/service.ts";
import { type User, userRecord } from "../../../src/model/user.ts";
import { Pace } from "../../../src/pace.ts";
import { inspectStore } from "../../../src/store/inspect.ts";
import { RevisionTable } from "../../../src/store/revisions.ts";
import { RollupTable } from "../../../src/store/rollups.ts";
import type { Store } from "../../../src/store/store.ts";
import { eventually } from "../../support/poll.ts";
import {
  at,
  changeOf,
  commitOf,
  firstCommit,
  openStore,
  removal,
  routeOf,
  serviceOf,
  settingsOf,
  targetOf,
  temporaryDirectory,
  upsert,
} from "./fixture.ts";

const shop = serviceOf("shop");
const blog = serviceOf("blog");

const userWith = (email: string): User => ({
  ...decode(userRecord, { email, name: email, role: "admin" }),
  id: Bun.randomUUIDv7(),
  created_at: at,
  updated_at: at,
});

const names = (config: GatewayConfig) => [...config.services.values()].map(({ name }) => name);

describe("a new data directory", () => {
  test("is empty until the first revision is committed", () => {
    using dir = temporaryDirectory();
    using fixture = openStore(dir.path);
    expect(fixture.store.isEmpty()).toBe(true);
    fixture.store.commit(firstCommit);
    expect(fixture.store.isEmpty()).toBe(false);
    const { config, revision } = fixture.store.load();
    expect(revision).toBe(1);
    expect(
      [...config.listeners.values()].map(({ name, address, port }) => [name, address, port]),
    ).toEqual([
      ["http", "127.0.0.1", 8080],
      ["https", "::1", 8443],
    ]);
  });

  test("has a permanent id", () => {
    using dir = temporaryDirectory();
    const ids = [1, 2].map(() => {
      using fixture = openStore(dir.path);
      if (fixture.store.isEmpty()) fixture.store.commit(firstCommit);
      return fixture.store.load().instanceId;
    });
    expect(ids[0]).toMatch(/^[0-9a-f-]{36}$/);
    expect(ids[1]).toBe(ids[0]!);
  });
});

describe("a commit", () => {
  test("is loaded again unchanged, after the store was closed", () => {
    using dir = temporaryDirectory();
    const target = targetOf(shop, 80);
    const route = routeOf("shop", shop);
    const settings = settingsOf({ public_url: "https://gate.example" });
    {
      using fixture = openStore(dir.path);
      fixture.store.commit(firstCommit);
      fixture.store.commit(
        commitOf(2, {
          services: upsert(shop),
          targets: upsert(target),
          routes: upsert(route),
          settings,
        }),
      );
    }
    using fixture = openStore(dir.path);
    const { config, revision } = fixture.store.load();
    expect(revision).toBe(2);
    expect([...config.services.values()]).toEqual([shop]);
    expect([...config.targets.values()]).toEqual([target]);
    expect([...config.routes.values()]).toEqual([route]);
    expect(config.settings).toEqual(settings);
  });

  test("keeps the position of an object that is replaced, and puts a new one last", () => {
    using dir = temporaryDirectory();
    using fixture = openStore(dir.path);
    fixture.store.commit(firstCommit);
    fixture.store.commit(commitOf(2, { services: upsert(shop, blog) }));
    fixture.store.commit(
      commitOf(3, { services: upsert(serviceOf("wiki"), { ...shop, path: "/x" }) }),
    );
    expect(names(fixture.store.load().config)).toEqual(["shop", "blog", "wiki"]);
  });

  test("may swap unique values of two objects", () => {
    using dir = temporaryDirectory();
    using fixture = openStore(dir.path);
    fixture.store.commit(firstCommit);
    fixture.store.commit(commitOf(2, { services: upsert(shop, blog) }));
    const swapped = upsert({ ...shop, name: "blog" }, { ...blog, name: "shop" });
    fixture.store.commit(commitOf(3, { services: swapped }));
    expect(names(fixture.store.load().config)).toEqual(["blog", "shop"]);
  });

  test("removes a service together with its targets, in any order", () => {
    using dir = temporaryDirectory();
    using fixture = openStore(dir.path);
    const target = targetOf(shop, 80);
    fixture.store.commit(firstCommit);
    fixture.store.commit(commitOf(2, { services: upsert(shop), targets: upsert(target) }));
    fixture.store.commit(commitOf(3, { services: removal(shop.id), targets: removal(target.id) }));
    const { config } = fixture.store.load();
    expect([config.services.size, config.targets.size]).toEqual([0, 0]);
  });

  test.each([
    {
      why: "two services of one name",
      change: { services: upsert(blog, { ...serviceOf("other"), name: "blog" }) },
    },
    {
      why: "a service that a target still refers to",
      change: { services: { upserts: [blog], removals: [shop.id] } },
    },
    { why: "a target without its service", change: { targets: upsert(targetOf(blog, 80)) } },
  ])("with $why is rejected as a whole", ({ change }) => {
    using dir = temporaryDirectory();
    using fixture = openStore(dir.path);
    fixture.store.commit(firstCommit);
    fixture.store.commit(
      commitOf(2, { services: upsert(shop), targets: upsert(targetOf(shop, 80)) }),
    );
    const before = fixture.store.load();
    expect(() => fixture.store.commit(commitOf(3, change))).toThrow(
      "the database could not be written: the change contradicts what is stored; nothing was changed",
    );
    expect(fixture.store.load()).toEqual(before);
    fixture.store.commit(commitOf(3, { services: upsert(blog) }));
    expect(names(fixture.store.load().config)).toEqual(["shop", "blog"]);
  });

  test("cannot use the number of another revision", () => {
    using dir = temporaryDirectory();
    using fixture = openStore(dir.path);
    fixture.store.commit(firstCommit);
    expect(() => fixture.store.commit(commitOf(1, { services: upsert(shop) }))).toThrow(
      "nothing was",
    );
    expect(fixture.store.load().config.services.size).toBe(0);
  });

  test("deletes revisions beyond the number that the settings name", () => {
    using dir = temporaryDirectory();
    using fixture = openStore(dir.path);
    fixture.store.commit(firstCommit);
    const settings = settingsOf({ retention: { revisions: 3 } });
    fixture.store.commit(commitOf(2, { settings }));
    for (let revision = 3; revision <= 6; revision++)
      fixture.store.commit(
        commitOf(revision, { services: upsert({ ...shop, path: `/${revision}` }) }),
      );
    const database = new Database(join(dir.path, "sluice.db"), { readonly: true });
    const rows = database.query("SELECT revision, actor, summary FROM revisions").all();
    database.close();
    expect(rows).toEqual(
      [4, 5, 6].map((revision) => ({ revision, actor: "test", summary: `revision ${revision}` })),
    );
  });
});

describe("a large change", () => {
  /** More than are written at once. */
  const many = Array.from({ length: 700 }, (_, index) => routeOf(`r-${index}`, shop));

  test("is loaded again unchanged, in its order, after replacements and removals", async () => {
    using dir = temporaryDirectory();
    const changed = many.slice(0, 600).map((route) => ({ ...route, description: "changed" }));
    {
      using fixture = openStore(dir.path);
      fixture.store.commit(firstCommit);
      await commitStaged(fixture.store, 2, { services: upsert(shop), routes: upsert(...many) });
      const gone = many.slice(650).map(({ id }) => id);
      const both = { routes: { upserts: changed, removals: gone } };
      await commitStaged(fixture.store, 3, both);
    }
    using fixture = openStore(dir.path);
    const { config, revision } = fixture.store.load();
    expect(revision).toBe(3);
    expect([...config.routes.values()]).toEqual([...changed, ...many.slice(600, 650)]);
  });

  test("is checkpointed from the -wal file after other work has run", async () => {
    using dir = temporaryDirectory();
    using fixture = openStore(dir.path);
    fixture.store.commit(firstCommit);
    await commitStaged(fixture.store, 2, { services: upsert(shop), routes: upsert(...many) });
    const inFile = () => {
      const bytes = new Uint8Array(readFileSync(join(dir.path, "sluice.db")));
      // Without its -wal file.
      bytes.fill(1, 18, 20);
      using database = Database.deserialize(bytes);
      return database.query<{ count: number }, []>("SELECT count(*) AS count FROM routes").get();
    };
    await eventually(() => inFile()?.count === many.length);
  });
});

/** As in the control plane. */
async function commitStaged(
  store: Store,
  revision: number,
  change: Parameters<typeof commitOf>[1],
): Promise<void> {
  const commit = commitOf(revision, change);
  const undo = undoOf(commit.change, store.load().config);
  const staged = await store.stage(commit.change, undo, new Pace());
  expect(staged).not.toBeNull();
  store.commit({ ...commit, undo, staged });
}

/** A database of an older program lacks what later steps create. */
const LATER_STEPS = ["DROP TABLE discovery_claims", "DROP TABLE login_failures"];

describe("documents of an older program", () => {
  test("get the defaults of the fields that they lack, once", () => {
    using dir = temporaryDirectory();
    {
      using fixture = openStore(dir.path);
      fixture.store.commit(firstCommit);
      fixture.store.commit(commitOf(2, { services: upsert(shop, blog) }));
    }
    edit(dir.path, [
      "UPDATE services SET document = json_remove(document, '$.health', '$.retries.count')",
      "UPDATE settings SET document = json_remove(document, '$.limits')",
      "UPDATE meta SET value = 'older' WHERE key = 'document_format'",
    ]);
    using fixture = openStore(dir.path);
    const { config } = fixture.store.load();
    expect([...config.services.values()]).toEqual([shop, blog]);
    expect(config.settings).toEqual(settingsOf());
    expect(fixture.store.load().config).toEqual(config);
  });

  test("get the current names of their fields, in history and applications too", () => {
    using dir = temporaryDirectory();
    const service: Service = { ...shop, response_buffer_bytes: 7 };
    const settings = settingsOf({ limits: { response_buffer_budget_bytes: 9 } });
    const { updated_at, created_at, id, ...fields } = service;
    const application: Application = {
      ...decode(applicationRecord, {
        name: "shop",
        domains: ["shop.test"],
        parts: [{ role: "service", service_id: id, fields }],
      }),
      id: Bun.randomUUIDv7(),
      created_at,
      updated_at,
    };
    const config = { headers: { collect_bytes: "5", collect_budget_bytes: "6" } };
    const plugin: Plugin = {
      ...decode(pluginInput, { name: "response-headers", config }),
      id: Bun.randomUUIDv7(),
      created_at,
      updated_at,
    };
    const change = {
      services: upsert(service),
      applications: upsert(application),
      plugins: upsert(plugin),
      settings,
    };
    const undo = changeOf({ services: upsert({ ...service, path: "/before" }), settings });
    {
      using fixture = openStore(dir.path);
      fixture.store.commit(firstCommit);
      fixture.store.commit({ ...commitOf(2, change), undo });
    }
    const formerly = (column: string) =>
      `replace(replace(${column}, '"response_buffer_bytes":', '"collect_bytes":'), '"response_buffer_budget_bytes":', '"collect_budget_bytes":')`;
    edit(dir.path, [
      ...["services", "applications", "settings"].map(
        (table) => `UPDATE ${table} SET document = ${formerly("document")}`,
      ),
      `UPDATE revisions SET change = ${formerly("change")}`,
      "UPDATE meta SET value = 'older' WHERE key = 'document_format'",
      ...LATER_STEPS,
      "PRAGMA user_version = 7",
    ]);
    using fixture = openStore(dir.path);
    const loaded = fixture.store.load().config;
    expect([...loaded.services.values()]).toEqual([service]);
    expect([...loaded.applications.values()]).toEqual([application]);
    expect([...loaded.plugins.values()]).toEqual([plugin]);
    expect(loaded.settings).toEqual(settings);
    const row = fixture.store.with((context) => new RevisionTable(context)).get(2);
    expect(row?.change).toEqual(change);
    expect(row?.undo).toEqual({ services: undo.services, settings });
  });

  test("get the present engines, in history and applications too, and users are notified once", () => {
    using dir = temporaryDirectory();
    const [http] = firstCommit.change.listeners.upserts;
    if (http === undefined) throw new Error("no listener");
    const listener = (port: number, fields: Partial<Listener>): Listener => ({
      ...http,
      ...fields,
      id: Bun.randomUUIDv7(),
      name: `l${port}`,
      port,
    });
    const limited = listener(1001, { engine: "sluice", max_connections: 9 });
    const full = listener(1002, { engine: "sluice" });
    const both = listener(1003, { engine: "sluice", protocol: "https" });
    const standard = listener(1004, { engine: "sluice" });
    const route = routeOf("r", null);
    const { id, created_at, updated_at, ...fields } = route;
    const application: Application = {
      ...decode(applicationRecord, {
        name: "shop",
        domains: ["shop.test"],
        parts: [{ role: "route", route_id: id, fields }],
      }),
      id: Bun.randomUUIDv7(),
      created_at,
      updated_at,
    };
    const change = {
      listeners: upsert(limited, full, both, standard),
      routes: upsert(route),
      applications: upsert(application),
    };
    {
      using fixture = openStore(dir.path);
      fixture.store.commit(firstCommit);
      fixture.store.commit(commitOf(2, change));
      expect(fixture.store.notices).toEqual([]);
    }
    const set = (port: number, engine: string, isBoth: boolean) =>
      `UPDATE listeners SET document = json_set(document, '$.engine', '${engine}', '$.shared_engines', json('${isBoth}'))
       WHERE document ->> 'port' = ${port}`;
    const exact = `replace(%, '"strip_path":', '"exact_responses":"on","strip_path":')`;
    edit(dir.path, [
      ...[8080, 8443, 1001, 1004].map((port) => set(port, "standard", false)),
      set(1002, "full", false),
      set(1003, "standard", true),
      `UPDATE routes SET document = json_set(document, '$.exact_responses', 'on')`,
      `UPDATE applications SET document = ${exact.replace("%", "document")}`,
      `UPDATE revisions SET change = replace(replace(${exact.replace("%", "change")},
         '"engine":"sluice"', '"engine":"full","shared_engines":false'), '"engine":"bun"', '"engine":"standard","shared_engines":false')`,
      "PRAGMA user_version = 11",
    ]);
    {
      using fixture = openStore(dir.path);
      expect(fixture.store.notices).toEqual([expect.stringContaining('"full"')]);
      const { config } = fixture.store.load();
      const engines = [...config.listeners.values()].map(({ port, engine }) => `${port} ${engine}`);
      expect(engines).toEqual([
        ...[8080, 8443, 1001, 1002, 1003, 1004].map((port) => `${port} sluice`),
      ]);
      expect(config.listeners.get(both.id)).toEqual(both);
      expect([...config.routes.values()]).toEqual([route]);
      expect([...config.applications.values()]).toEqual([application]);
      const row = fixture.store.with((context) => new RevisionTable(context)).get(2);
      expect(row?.change).toEqual(change);
    }
    using again = openStore(dir.path);
    expect(again.store.notices).toEqual([]);
  });

  test("keep statistics under their current names", () => {
    using dir = temporaryDirectory();
    {
      using fixture = openStore(dir.path);
      fixture.store.commit(firstCommit);
    }
    edit(dir.path, [
      `INSERT INTO traffic_rollups (at, span, kind, object_id, document)
       VALUES (60, 60, 'total', '', '{"requests":5,"broken_off":2,"name":"\\"broken_off\\""}')`,
      ...LATER_STEPS,
      "PRAGMA user_version = 8",
    ]);
    using fixture = openStore(dir.path);
    const rollups = fixture.store.with((context) => new RollupTable(context));
    const rows = rollups.range({ span: 60, kind: "total" }, { from: 0, to: 60 });
    const document = { requests: 5, aborted_responses: 2, name: '"broken_off"' };
    expect(rows.map((row) => row.document)).toEqual([expect.objectContaining(document)]);
  });

  test("give users a new key: the case of A to Z does not distinguish users, all else does", () => {
    using dir = temporaryDirectory();
    const [capital, small] = ["\u00c9VA@a.example", "\u00e9va@A.example"].map(userWith);
    {
      using fixture = openStore(dir.path);
      fixture.store.commit(firstCommit);
      fixture.store.commit(commitOf(2, { users: upsert(capital!) }));
    }
    edit(dir.path, [
      "UPDATE users SET email = '\u00e9va@a.example'",
      "UPDATE meta SET value = 'older' WHERE key = 'document_format'",
    ]);
    using fixture = openStore(dir.path);
    expect(fixture.store.load().config.users.size).toBe(1);
    fixture.store.commit(commitOf(3, { users: upsert(small!) }));
    expect([...fixture.store.load().config.users.values()]).toEqual([capital!, small!]);
    const again = userWith("\u00e9VA@a.EXAMPLE");
    expect(() => fixture.store.commit(commitOf(4, { users: upsert(again) }))).toThrow(
      "contradicts what is stored",
    );
  });

  test("that are no longer valid are rejected with the object and the field", () => {
    using dir = temporaryDirectory();
    {
      using fixture = openStore(dir.path);
      fixture.store.commit(firstCommit);
      fixture.store.commit(commitOf(2, { services: upsert(shop) }));
    }
    edit(dir.path, [
      "UPDATE services SET document = json_set(document, '$.keepalive.size', 'many')",
      "UPDATE meta SET value = 'older' WHERE key = 'document_format'",
    ]);
    using fixture = openStore(dir.path);
    expect(() => fixture.store.load()).toThrow(
      `stored service ${shop.id}: keepalive.size: must be`,
    );
  });
});

describe("inspectStore", () => {
  test("reads the commits of a running gateway and leaves no file behind", () => {
    using dir = temporaryDirectory();
    {
      using fixture = openStore(dir.path);
      fixture.store.commit(firstCommit);
      fixture.store.commit(commitOf(2, { services: upsert(shop) }));
      expect(inspectStore(dir.path).revision).toBe(2);
    }
    const files = () => [...new Bun.Glob("*").scanSync(dir.path)].sort();
    const before = files();
    expect(names(inspectStore(dir.path).config)).toEqual(["shop"]);
    expect(files()).toEqual(before);
  });

  test("says that there is no database", () => {
    using dir = temporaryDirectory();
    expect(() => inspectStore(dir.path)).toThrow(`there is no database at ${dir.path}/sluice.db`);
  });
});

test("times of creation stay unchanged", () => {
  using dir = temporaryDirectory();
  using fixture = openStore(dir.path);
  fixture.store.commit(firstCommit);
  const changed = { ...shop, updated_at: "2026-02-02T00:00:00.000Z" };
  fixture.store.commit(commitOf(2, { services: upsert(changed) }));
  const stored = fixture.store.load().config.services.get(shop.id);
  expect([stored?.created_at, stored?.updated_at]).toEqual([
    shop.created_at,
    "2026-02-02T00:00:00.000Z",
  ]);
});

/** Changes by another program to the database of a stopped gateway. */
function edit(dataDir: string, statements: readonly string[]): void {
  const database = new Database(join(dataDir, "sluice.db"));
  for (const statement of statements) database.run(statement);
  database.close();
}
