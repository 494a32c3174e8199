// Writers at all nodes of a fleet, and what must be there of what they wrote.
import { expect } from "bun:test";
import { create, type Reply } from "./fleet.ts";
import type { Gateway } from "./gateway.ts";
import { eventually } from "./poll.ts";

/** Null when the connection ended without a reply. */
export const attempt = (node: Gateway, name: string): Promise<Reply | null> =>
  create(node, name).catch(() => null);

interface Written {
  /** Names that were answered with 200. */
  readonly answered: readonly string[];
  /** That were not answered, or with 504: they may have been made. */
  readonly open: readonly string[];
  /** Of which the reply says that nothing was changed. */
  readonly refused: ReadonlySet<string>;
}

/** A writer at each node until `stop`. */
export function startWriters(nodes: readonly Gateway[]) {
  const [answered, open, refused]: [string[], string[], Set<string>] = [[], [], new Set()];
  let isOver = false;
  const write = async (node: Gateway, index: number) => {
    for (let round = 0; !isOver; round++) {
      const name = `n${index + 1}-${round}`;
      const reply = await attempt(node, name);
      if (reply === null || reply.status === 504) open.push(name);
      else if (reply.status === 200) answered.push(name);
      else refused.add(name);
      // A node that is away refuses at once.
      if (reply?.status !== 200) await Bun.sleep(20);
    }
  };
  const writers = nodes.map(write);
  return {
    /** Waits until `count` more changes were answered. */
    answers: async (count: number) => {
      const goal = answered.length + count;
      await eventually(() => answered.length >= goal);
    },
    stop: async (): Promise<Written> => {
      isOver = true;
      await Promise.all(writers);
      return { answered, open, refused };
    },
  };
}

/** What was answered is there, what was refused is not, and what was not answered may be. */
export function checkNames(names: readonly string[], written: Written): void {
  const [there, { answered, open, refused }] = [new Set(names), written];
  const known = new Set([...answered, ...open]);
  expect(answered.filter((name) => !there.has(name))).toEqual([]);
  expect(names.filter((name) => refused.has(name))).toEqual([]);
  expect(names.filter((name) => !known.has(name))).toEqual([]);
  expect(names).toHaveLength(there.size);
}
