import { describe, expect, test } from "bun:test";
import { createLog } from "../../../src/log.ts";
import { pressures, WorkerBoard } from "../../../src/shared-memory/worker-board.ts";
import { DescriptorReserve } from "../../../src/supervisor/descriptor-reserve.ts";
import { allowedMemory, descriptorLimit } from "../../../src/supervisor/host-limits.ts";
import { PressureWatch } from "../../../src/supervisor/pressure-watch.ts";

/** A table of open files that a test fills as far as it likes. */
class Table {
  readonly #open = new Set<number>();
  readonly #limit: number;

  constructor(limit: number) {
    this.#limit = limit;
  }

  readonly open = (): number => {
    let next = 0;
    while (this.#open.has(next)) next++;
    if (next >= this.#limit) throw new Error("EMFILE");
    this.#open.add(next);
    return next;
  };

  readonly close = (descriptor: number): void => void this.#open.delete(descriptor);

  readonly count = (): number => this.#open.size;
}

function watch({ limit = 128 } = {}) {
  const lines: string[] = [];
  const events: string[] = [];
  const state = { memory: 0, now: 0, mark: 0, collected: 0 };
  const table = new Table(limit);
  const board = WorkerBoard.create(2);
  const reserve = new DescriptorReserve(limit, table);
  const watched = new PressureWatch({
    board,
    log: createLog({ level: "info", format: "json", sink: (line) => lines.push(line) }),
    maxMemoryBytes: () => state.mark,
    onEvent: ({ what, state: now }) => events.push(`${what} ${now}`),
    memoryInUse: () => state.memory,
    memoryAllowed: 1000,
    reserve,
    now: () => state.now,
    collectGarbage: () => state.collected++,
  });
  return { state, table, board, reserve, watched, lines, events };
}

describe("memory", () => {
  test("is short from the threshold on, and sufficient again a tenth below it", () => {
    const { state, board, watched, events } = watch();
    const at = (memory: number) => {
      state.memory = memory;
      watched.tick();
      return board.pressure;
    };
    expect(at(799)).toBe(0);
    expect(at(800)).toBe(pressures.memory);
    expect(at(720)).toBe(pressures.memory);
    expect(at(719)).toBe(0);
    expect(at(799)).toBe(0);
    expect(events).toEqual(["memory begun", "memory over"]);
    expect(state.collected).toBe(1);
  });

  test("follows a changed threshold", () => {
    const { state, board, watched } = watch();
    [state.memory, state.mark] = [500, 400];
    watched.tick();
    expect(board.pressure).toBe(pressures.memory);
    state.mark = 900;
    watched.tick();
    expect(board.pressure).toBe(0);
  });

  test("that stays in use without requests in flight raises the threshold, but never to the limit", () => {
    const { state, board, watched, lines } = watch();
    const at = (now: number) => {
      state.now = now;
      watched.tick();
      return board.pressure;
    };
    [state.memory, state.mark] = [500, 400];
    board.set(1, "active_requests", 3);
    expect([at(0), at(10_000), at(20_000)]).toEqual([1, 1, 1]);
    board.set(1, "active_requests", 0);
    expect([at(20_250), at(26_000), at(26_500)]).toEqual([1, 1, 0]);
    expect(watched.memoryMark).toBe(625);
    expect(lines.join()).toContain("the mark is raised");
    state.memory = 625;
    expect(at(27_000)).toBe(1);
    // Another setting is another threshold.
    state.mark = 450;
    expect(watched.memoryMark).toBe(450);
    state.memory = 960;
    expect([at(40_000), at(50_000), at(60_000)]).toEqual([1, 1, 1]);
  });

  test("is logged once in a minute, however often it begins", () => {
    const { state, watched, lines, events } = watch();
    for (let round = 0; round < 20; round++) {
      state.memory = 900;
      watched.tick();
      state.memory = 100;
      watched.tick();
      state.now += 2000;
    }
    expect(events).toHaveLength(40);
    expect(lines.filter((line) => line.includes("memory is short"))).toHaveLength(1);
    state.now += 60_000;
    state.memory = 900;
    watched.tick();
    expect(lines.at(-1)).toContain('"times_not_logged":19');
  });
});

describe("descriptors", () => {
  test("are short before the last one is gone, and the reserve is released only once no worker accepts", () => {
    const { state, table, board, reserve, watched } = watch();
    const taken: number[] = [];
    while (board.pressure === 0) {
      taken.push(table.open());
      watched.tick();
    }
    expect(board.pressure).toBe(pressures.descriptors);
    expect(table.count()).toBe(128 - reserve.size);
    state.now = 500;
    watched.tick();
    expect(reserve.isHeld).toBeTrue();
    state.now = 600;
    watched.tick();
    expect(reserve.isHeld).toBeFalse();
    state.now = 5000;
    watched.tick();
    expect(board.pressure).toBe(pressures.descriptors);
    for (const descriptor of taken) table.close(descriptor);
    watched.tick();
    expect(board.pressure).toBe(0);
    expect(table.count()).toBe(reserve.size);
  });

  test("that run out between two checks are noticed as well", () => {
    const { table, board, watched } = watch();
    for (let i = table.count(); i < 128; i++) table.open();
    watched.tick();
    expect(board.pressure).toBe(pressures.descriptors);
  });
});

describe("what the host allows", () => {
  const files = (texts: Record<string, string>) => (path: string) => texts[path] ?? null;

  test.each([
    { why: "no group", texts: {}, bytes: 8000 },
    {
      why: "a group without a limit",
      texts: { "/proc/self/cgroup": "0::/a\n", "/sys/fs/cgroup/a/memory.max": "max\n" },
      bytes: 8000,
    },
    {
      why: "the smallest of all groups around",
      texts: {
        "/proc/self/cgroup": "0::/a/b\n",
        "/sys/fs/cgroup/a/b/memory.max": "5000\n",
        "/sys/fs/cgroup/a/memory.max": "3000\n",
      },
      bytes: 3000,
    },
    {
      why: "a container that sees its own group as the root",
      texts: { "/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/memory.max": "2000\n" },
      bytes: 2000,
    },
    {
      why: "control groups of version 1",
      texts: {
        "/proc/self/cgroup": "5:cpu:/x\n4:memory:/x\n",
        "/sys/fs/cgroup/memory/x/memory.limit_in_bytes": "4000\n",
      },
      bytes: 4000,
    },
  ])("memory: $why", ({ texts, bytes }) => {
    expect(allowedMemory(files(texts), 8000)).toBe(bytes);
  });

  test("open files", () => {
    const text =
      "Max processes  5 5 processes\nMax open files            160       4096    files\n";
    expect(descriptorLimit(files({ "/proc/self/limits": text }))).toBe(160);
    expect(descriptorLimit(files({}))).toBeNull();
  });
});
