// Rebuilds lists, indexes and counters from the blocks, after a thread has ended in the middle of a change; knows no content.
import type { Steps } from "../../pace.ts";
import type { Entries } from "./entries.ts";
import { counters, fields, states, words } from "./memory.ts";

/** Words of an index that one step clears. */
const CLEARED_AT_ONCE = 131_072;

/** Needs the lock, as `REPAIRING`, until its end. Lookups meanwhile miss what it has not linked yet. */
export function* repair(entries: Entries, dead: number): Steps<void> {
  const { views } = entries;
  const round = ((views.words[words.repair] ?? 0) + 1) | 0;
  views.words[words.repair] = round;
  for (const index of [views.keys, views.resources])
    for (let at = 0; at < index.length; at += CLEARED_AT_ONCE) {
      index.fill(0, at, at + CLEARED_AT_ONCE);
      yield;
    }
  views.queues.fill(0);
  views.words[words.freeSegment] = 0;
  for (const counter of [counters.entries, counters.bytes, counters.fileBytes])
    views.counters[counter] = 0;
  const segments = views.words[words.usedSegments] ?? 0;
  // All entries before all free blocks: an entry's blocks are in several segments.
  for (let segment = 0; segment < segments; segment++) {
    linkEntries(entries, segment, round);
    yield;
  }
  for (let segment = 0; segment < segments; segment++) {
    freeRest(entries, segment, [dead, round]);
    yield;
  }
}

function blocksOf({ views, blocks }: Entries, segment: number): readonly [number, number] {
  const cls = blocks.classOf(segment);
  return [views.firstBlock(segment), cls === -1 ? 0 : blocks.count(cls)];
}

function linkEntries(entries: Entries, segment: number, round: number): void {
  const { views } = entries;
  const [first, count] = blocksOf(entries, segment);
  for (let block = first; block < first + count; block++) {
    if (views.get(block, fields.state) !== states.entry) continue;
    if (entries.isEntry(block) && markParts(entries, block, round)) entries.add(block);
    else {
      entries.hide(block);
      views.set(block, fields.state, states.free);
    }
  }
}

/** Marks the further blocks of an entry; false: it is incomplete. */
function markParts({ views, blocks }: Entries, entry: number, round: number): boolean {
  const bytes = views.get(entry, fields.prefix) + views.get(entry, fields.bodyLength);
  let missing = bytes - blocks.capacity(entry);
  views.set(entry, fields.owner, 0);
  for (let part = views.get(entry, fields.chain); part !== 0;) {
    const isOwn =
      views.get(part, fields.state) === states.part && views.get(part, fields.head) === entry;
    if (!isOwn || missing <= 0) return false;
    missing -= blocks.capacity(part);
    views.set(part, fields.owner, 0);
    views.set(part, fields.older, round);
    part = views.get(part, fields.chain);
  }
  return missing <= 0;
}

function freeRest(
  entries: Entries,
  segment: number,
  [dead, round]: readonly [dead: number, round: number],
): void {
  const { views, blocks } = entries;
  const [first, count] = blocksOf(entries, segment);
  if (count === 0) {
    blocks.giveUp(segment);
    return;
  }
  blocks.recount(segment, count);
  for (let block = first; block < first + count; block++) {
    const state = views.get(block, fields.state);
    const owner = views.get(block, fields.owner);
    const isUsed =
      state === states.entry ||
      (state === states.part && views.get(block, fields.older) === round) ||
      (state === states.writing && owner !== dead);
    if (!isUsed) blocks.free(block);
  }
}
