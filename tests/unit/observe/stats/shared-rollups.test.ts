// What a node sends of its statistics to the database of its fleet, and when: late, after failures, within bounds.
import { expect, test } from "bun:test";
import type { RollupRow, RollupStore } from "../../../../src/model/rollup.ts";
import { RollupSender } from "../../../../src/observe/stats/shared-rollups.ts";
import { createLog } from "../../../../src/log.ts";

const NOW = 1_800_000_000;

/** A store with one row in each minute, hour and day, and a database that can be away. */
function scene() {
  const written: string[][] = [];
  const database = { isAway: false, duringWrite: () => {} };
  const store: Pick<RollupStore, "range"> = {
    range: ({ span, kind }, { from: at }) =>
      kind === "total" ? [{ span, at, kind, object_id: "", document: {} } as RollupRow] : [],
  };
  const sender = new RollupSender({
    store,
    log: createLog({ level: "error", format: "json", sink: () => {} }),
    shared: {
      async write(rows) {
        database.duringWrite();
        if (database.isAway) throw new Error("away");
        written.push(rows.map(({ span, at }) => `${span} ${at - NOW}`));
      },
      read: async () => [],
    },
  });
  return { sender, written, database };
}

test("a minute is sent with its hour and its day, once", async () => {
  const { sender, written } = scene();
  await sender.send();
  expect(written).toEqual([]);
  sender.note([NOW]);
  await Promise.all([sender.send(), sender.send()]);
  await sender.send();
  expect(written).toEqual([["60 0", "3600 0", "86400 -28800"]]);
});

test("what could not be sent is sent with the next minute; hours and days once for all of them", async () => {
  const { sender, written, database } = scene();
  database.isAway = true;
  sender.note([NOW]);
  await sender.send();
  sender.note([NOW + 60]);
  await sender.send();
  database.isAway = false;
  await sender.send();
  expect(written).toEqual([["60 0", "60 60", "3600 0", "86400 -28800"]]);
});

test("what changes while it is sent is sent again, also by who waits for the first time", async () => {
  const { sender, written, database } = scene();
  database.duringWrite = () => {
    if (written.length === 0) sender.note([NOW]);
  };
  sender.note([NOW]);
  await sender.send();
  expect(written).toEqual(Array(2).fill(["60 0", "3600 0", "86400 -28800"]));
});

test("1500 minutes, hours and days wait, and the oldest minutes are dropped", async () => {
  const { sender, written, database } = scene();
  database.isAway = true;
  const minutes = Array.from({ length: 1600 }, (_, index) => NOW + 60 * index);
  for (const minute of minutes) {
    sender.note([minute]);
    await sender.send();
  }
  database.isAway = false;
  await sender.send();
  const sent = written.flat();
  expect(sent).toHaveLength(1500);
  expect(Math.max(...written.map(({ length }) => length))).toBe(30);
  const kept = sent.filter((place) => place.startsWith("60 "));
  expect(kept.at(-1)).toBe(`60 ${60 * 1599}`);
  expect(kept).toEqual(minutes.slice(-kept.length).map((at) => `60 ${at - NOW}`));
  // The present hour and the present day.
  expect(sent.slice(-2).map((place) => place.split(" ")[0])).toEqual(["3600", "86400"]);
});
