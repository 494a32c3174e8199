// Connections per client address are counted exactly, even when a worker dies.
import { expect, test } from "bun:test";
import { AddressCounts } from "../../../src/shared-memory/address-counts.ts";

const create = (workers = 2) =>
  new AddressCounts(new SharedArrayBuffer(8 + AddressCounts.bytesFor(workers)), 8, {
    workers,
    locked: (work) => work(),
  });

test("an address has its own count at each listener, over all workers", () => {
  const counts = create();
  const enter = (listener: string, address: string, worker: number) =>
    counts.enter(listener, address, { worker, most: 2 });
  expect(enter("a", "10.0.0.1", 0)).toBe("counted");
  expect(enter("a", "10.0.0.1", 1)).toBe("counted");
  expect(enter("a", "10.0.0.1", 0)).toBe("refused");
  expect(enter("b", "10.0.0.1", 0)).toBe("counted");
  expect(enter("a", "10.0.0.2", 0)).toBe("counted");
  counts.leave("a", "10.0.0.1", 1);
  expect(enter("a", "10.0.0.1", 0)).toBe("counted");
});

test("the counts of a worker end with it, and no others", () => {
  const counts = create();
  for (let n = 0; n < 200; n++)
    for (const worker of [0, 1]) counts.enter("a", `10.0.0.${n}`, { worker, most: 9 });
  counts.forgetWorker(0);
  for (let n = 0; n < 200; n++) {
    expect(counts.enter("a", `10.0.0.${n}`, { worker: 0, most: 2 })).toBe("counted");
    expect(counts.enter("a", `10.0.0.${n}`, { worker: 0, most: 2 })).toBe("refused");
  }
});

test("counts equal a plain map over many opened and closed connections, and are empty after them", () => {
  const counts = create(1);
  const open: string[] = [];
  const wanted = new Map<string, number>();
  let seed = 7;
  const random = (below: number) => {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
    return seed % below;
  };
  for (let round = 0; round < 60_000; round++) {
    if (open.length > 0 && random(3) === 0) {
      const [address = ""] = open.splice(random(open.length), 1);
      counts.leave("a", address, 0);
      wanted.set(address, (wanted.get(address) ?? 0) - 1);
      continue;
    }
    const address = `192.0.2.${random(30_000)}`;
    const before = wanted.get(address) ?? 0;
    const entrance = counts.enter("a", address, { worker: 0, most: 2 });
    expect(entrance).toBe(before < 2 ? "counted" : "refused");
    if (before >= 2) continue;
    open.push(address);
    wanted.set(address, before + 1);
  }
  for (const address of open) counts.leave("a", address, 0);
  for (const address of wanted.keys())
    expect(counts.enter("a", address, { worker: 0, most: 1 })).toBe("counted");
});

test("with more addresses than it holds, the table continues without counting the rest", () => {
  const counts = create(1);
  const results = new Set<string>();
  for (let n = 0; n < 60_000; n++)
    results.add(counts.enter("a", `10.${n}`, { worker: 0, most: 1 }));
  expect([...results]).toEqual(["counted", "untracked"]);
});
