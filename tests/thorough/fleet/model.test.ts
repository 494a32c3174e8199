import { expect, test } from "bun:test";
import fc from "fast-check";
import type { Draft } from "../../../src/control/draft.ts";
import { ApiError } from "../../../src/model/error.ts";
import { seedOfRun } from "../../support/random.ts";
import { serviceOf } from "../../unit/store/fixture.ts";
import { type AppendFault, MemorySource } from "../../unit/fleet/memory-source.ts";
import { codec, TestNode } from "../../unit/fleet/node.ts";

const NODES = 3;
/** Few names, so that changes collide. */
const NAMES = ["a", "b", "c", "d"];

type Step =
  | {
      readonly kind: "change";
      readonly node: number;
      readonly name: string;
      readonly remove: boolean;
      readonly fault: AppendFault;
      readonly crashIn: "none" | "prepare" | "activate";
      readonly isFull: boolean;
    }
  | { readonly kind: "follow"; readonly node: number; readonly times: number }
  | { readonly kind: "gap"; readonly node: number }
  | { readonly kind: "prune"; readonly node: number }
  | { readonly kind: "restart"; readonly node: number };

const node = fc.nat(NODES - 1);
const rarely = <T>(usual: T, ...others: readonly T[]) =>
  fc.oneof({ weight: 6, arbitrary: fc.constant(usual) }, fc.constantFrom(...others));
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant("change" as const),
      node,
      name: fc.constantFrom(...NAMES),
      remove: fc.boolean(),
      fault: rarely<AppendFault>("none", "request", "late", "unreachable", "answer", "crash"),
      crashIn: rarely<"none" | "prepare" | "activate">("none", "prepare", "activate"),
      isFull: rarely(false, true),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant("follow" as const),
      node,
      times: fc.integer({ min: 1, max: 3 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("gap" as const), node }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("prune" as const), node }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("restart" as const), node }) },
);

/** Creates or removes the service of a name; refuses as the API would. */
function write(draft: Draft, name: string, remove: boolean): void {
  const found = [...draft.config.services.values()].find((each) => each.name === name);
  if (remove) {
    if (found === undefined) throw new ApiError(404, "it does not exist");
    draft.remove("services", found.id);
    return;
  }
  if (found !== undefined) throw new ApiError(409, "it exists");
  const now = draft.stamp();
  const identity = { id: Bun.randomUUIDv7(), created_at: now, updated_at: now };
  draft.put("services", { ...serviceOf(name), ...identity });
}

const stateOf = ({ config, changes, store }: TestNode) => ({
  services: [...config.services.values()],
  revision: changes.revision,
  stored: [...store.load().config.services.values()],
  mark: store.mark(),
});

const namesOf = ({ config }: TestNode) => [...config.services.values()].map(({ name }) => name);

test("nodes that crash, miss and repeat entries end in the state of the log", async () => {
  const steps = fc.array(step, { minLength: 1, maxLength: 30 });
  const run = fc.asyncProperty(steps, async (all) => {
    const source = new MemorySource();
    // The second node's clock is five minutes ahead.
    const nodes = [0, 300_000, 0].map((ahead, index) => new TestNode(`n${index}`, source, ahead));
    try {
      for (const each of all) await take(each, { source, nodes });
      for (const every of nodes) await every.changes.follow();
      const [first, ...others] = nodes.map(stateOf);
      for (const other of others) expect(other).toEqual(first!);
      expect(first!.stored).toEqual(first!.services);
      expect(first!.revision).toBe(changesIn(source) + 1);
      for (const every of nodes) {
        expect(every.served).toEqual([...every.served].sort((a, b) => a - b));
        every.restart();
      }
      expect(nodes.map(stateOf)).toEqual([first!, first!, first!]);
    } finally {
      for (const every of nodes) every.close();
    }
  });
  await fc.assert(run, { seed: seedOfRun(), numRuns: 60 });
  // It writes thousands of small transactions: a busy disk is no failure.
});

/** Without the entries that only take a place. */
const changesIn = ({ entries }: MemorySource) =>
  entries.filter((entry) => codec.decode(entry).changed !== null).length;

interface World {
  readonly source: MemorySource;
  readonly nodes: readonly TestNode[];
}

async function take(each: Step, { source, nodes }: World): Promise<void> {
  const subject = nodes[each.node]!;
  if (each.kind === "restart") return subject.restart();
  if (each.kind === "follow") {
    await Promise.all(Array.from({ length: each.times }, () => subject.changes.follow()));
    expect(subject.store.mark()?.position ?? 0).toBe(source.entries.length);
    return;
  }
  if (each.kind === "prune") {
    await subject.changes.follow();
    if (subject.store.mark() === null) return;
    source.newestWhole = subject.whole();
    source.pruned = source.newestWhole.position;
    return;
  }
  if (each.kind === "gap") return await missOne(subject, source);
  source.fault = each.fault;
  subject.isFull = each.isFull;
  subject.crashIn = each.crashIn;
  const before = changesIn(source);
  const isAnswered = await subject
    .change((draft) => write(draft, each.name, each.remove))
    .then(
      () => true,
      () => false,
    );
  if (isAnswered) {
    // Read your own write, and the log has it.
    expect(namesOf(subject).includes(each.name)).toBe(!each.remove);
    expect(changesIn(source)).toBe(before + 1);
  }
  // Nothing was changed, as the refusal said.
  if (!isAnswered && each.fault !== "crash" && each.crashIn !== "activate")
    expect(changesIn(source)).toBe(before);
  source.fault = "none";
  subject.isFull = false;
  // What a crash leaves in memory does not count.
  if (each.fault === "crash" || each.crashIn !== "none") subject.restart();
}

/** An entry is missing: the node takes nothing of what comes after it. */
async function missOne(subject: TestNode, source: MemorySource): Promise<void> {
  // It may join anew instead, or store what it could not store before.
  if (source.pruned > 0 || subject.isBehindItself) return;
  const before = stateOf(subject);
  const missing = source.entries.length - (before.mark?.position ?? 0);
  source.hasGap = true;
  const followed = await subject.changes.follow().then(
    () => "followed",
    (error: Error) => error.message,
  );
  source.hasGap = false;
  if (missing > 1) expect(followed).toContain("lacks entry");
  expect(stateOf(subject)).toEqual(before);
}
