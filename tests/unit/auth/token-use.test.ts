// When tokens were last used: remembered at once, written now and then, forgotten with the token; on a real database.
import { describe, expect, test } from "bun:test";
import { TokenUse, type TokenUseStore } from "../../../src/auth/token-use.ts";
import { createLog } from "../../../src/log.ts";
import { TokenTable } from "../../../src/store/tokens.ts";
import { eventually } from "../../support/poll.ts";
import { openStore, temporaryDirectory } from "../store/fixture.ts";

test("uses are kept in memory until they are written, all at once", () => {
  using directory = temporaryDirectory();
  using opened = openStore(directory.path);
  const table = opened.store.with((context) => new TokenTable(context));
  let [writes, isBroken] = [0, false];
  const store: TokenUseStore = {
    loadUse: () => table.loadUse(),
    writeUse(rows) {
      if (isBroken) throw new Error("disk full");
      writes++;
      table.writeUse(rows);
    },
    removeUse: (ids) => table.removeUse(ids),
  };
  const clock = { time: Date.parse("2026-01-01T00:00:00Z"), now: () => clock.time };
  const logged: string[] = [];
  const log = createLog({ level: "info", format: "json", sink: (line) => logged.push(line) });
  const use = new TokenUse({ store, clock, log });
  use.flush();
  for (let index = 0; index < 1000; index++) {
    clock.time += 1;
    use.touch(index % 2 === 0 ? "one" : "two");
  }
  expect(use.lastUsedAt("two")).toBe("2026-01-01T00:00:01.000Z");
  expect(use.lastUsedAt("three")).toBeNull();
  expect([writes, table.loadUse()]).toEqual([0, []]);
  isBroken = true;
  use.flush();
  expect(logged.join()).toContain("disk full");
  isBroken = false;
  use.flush();
  use.flush();
  expect(writes).toBe(1);
  expect(new TokenUse({ store, clock, log }).lastUsedAt("one")).toBe("2026-01-01T00:00:00.999Z");
  use.touch("one");
  use.forget(["one", "never used"]);
  use.flush();
  expect(table.loadUse()).toEqual([{ token_id: "two", last_used_at: "2026-01-01T00:00:01.000Z" }]);
});

describe("many uses", () => {
  const log = createLog({ level: "info", format: "json", sink: () => undefined });
  const clock = { now: () => 0 };
  const ids = Array.from({ length: 5001 }, (_, index) => `id-${index}`);

  /** The number of rows of each write. */
  function world() {
    const writes: number[] = [];
    const rows = new Set<string>();
    const store: TokenUseStore = {
      loadUse: () => [],
      writeUse(used) {
        writes.push(used.length);
        for (const { token_id } of used) rows.add(token_id);
      },
      removeUse(gone) {
        for (const id of gone) rows.delete(id);
      },
    };
    const use = new TokenUse({ store, clock, log });
    for (const id of ids) use.touch(id);
    return { use, writes, rows };
  }

  test("are written in batches, and other work runs between them", async () => {
    const { use, writes, rows } = world();
    use.flush();
    expect(writes).toEqual([2000]);
    // Neither another call nor tokens deleted meanwhile cause a second round.
    use.flush();
    use.forget(["id-5000", "id-0"]);
    expect(writes).toEqual([2000]);
    await eventually(() => rows.size === 4999);
    expect(writes).toEqual([2000, 2000, 1000]);
    expect([rows.has("id-0"), rows.has("id-5000"), rows.has("id-4999")]).toEqual([
      false,
      false,
      true,
    ]);
  });

  test("are written at once at the end, and nothing after it", async () => {
    const { use, writes } = world();
    use.flush();
    use.flush(true);
    expect(writes).toEqual([2000, 3001]);
    use.touch("id-1");
    // Another one that began later and has ended.
    const other = world();
    other.use.flush();
    await eventually(() => other.writes.length === 3);
    expect(writes).toHaveLength(2);
  });
});

test("of the admin token only the hash is kept, and it survives a restart", () => {
  using directory = temporaryDirectory();
  using opened = openStore(directory.path);
  const table = opened.store.with((context) => new TokenTable(context));
  expect(table.loadAdminToken()).toBeNull();
  for (const token_hash of ["one", "two"]) {
    table.writeAdminToken({ token_hash, created_at: "2026-01-01T00:00:00Z" });
    expect(table.loadAdminToken()?.token_hash).toBe(token_hash);
  }
  table.writeAdminToken(null);
  expect(table.loadAdminToken()).toBeNull();
});
