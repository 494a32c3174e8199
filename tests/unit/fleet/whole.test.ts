// The state of a node for others that join, written while the node goes on.
import { expect, test } from "bun:test";
import type { Entry } from "../../../src/fleet/entry.ts";
import { beginningOf } from "../../../src/fleet/join.ts";
import { prune } from "../../../src/fleet/whole.ts";
import { createLog } from "../../../src/log.ts";
import { openStore, serviceOf, temporaryDirectory } from "../store/fixture.ts";
import { MemorySource } from "./memory-source.ts";
import { codec, TestNode } from "./node.ts";

const log = createLog({ level: "error", format: "json", sink: () => {} });

test("a change during the removal of old entries leaves a state from which a node can follow", async () => {
  const source = new MemorySource();
  const first = new TestNode("n1", source, 0);
  const create = (name: string) =>
    first.change((draft) => {
      const now = draft.stamp();
      const identity = { id: Bun.randomUUIDv7(), created_at: now, updated_at: now };
      draft.put("services", { ...serviceOf(name), ...identity });
    });
  await create("a");
  const written: Entry[] = [];
  await prune({
    source: {
      // The answer of the database takes as long as a change.
      wholePosition: async () => {
        await create("b");
        return { whole: 0, key: 0 };
      },
      writeWhole: async (entry) => void written.push(entry),
      pruneRollups: async () => undefined,
      prune: async () => {},
      idAt: async () => null,
    },
    codec,
    store: first.store,
    node: "n1",
    keep: 1,
    absentMs: () => 0,
    log,
  });
  await create("c");
  const [whole] = written;
  using directory = temporaryDirectory();
  const { store } = openStore(directory.path);
  store.commit(beginningOf(whole!, codec));
  store.close();
  const joined = new TestNode("n2", source, 0, directory.path);
  await joined.changes.follow();
  expect(joined.store.load().config).toEqual(first.store.load().config);
  expect(joined.store.load().revision).toBe(first.store.load().revision);
  joined.close();
  first.close();
});
