// Paginated lists and polling for all providers; knows none.
import { setTimeout as sleep } from "node:timers/promises";
import { DnsError } from "./failure.ts";

const MAX_PAGES = 50;

/** All items of numbered pages, from 1; a page with fewer than `size` items is the last. */
export async function allPages<T>(
  size: number,
  fetchPage: (page: number) => Promise<readonly T[]>,
): Promise<T[]> {
  const items: T[] = [];
  for (let page = 1; page <= MAX_PAGES; page++) {
    const found = await fetchPage(page);
    items.push(...found);
    if (found.length < size) break;
  }
  return items;
}

const FIRST_PAUSE_MS = 200;
const LONGEST_PAUSE_MS = 4000;

/** Polls until `isDone`; throws a DnsError after `timeoutMs`. */
export async function waitUntil(
  isDone: () => Promise<boolean>,
  {
    what,
    timeoutMs,
    signal,
  }: {
    readonly what: string;
    readonly timeoutMs: number;
    readonly signal?: AbortSignal | undefined;
  },
): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  for (
    let pause = FIRST_PAUSE_MS;
    !(await isDone());
    pause = Math.min(pause * 2, LONGEST_PAUSE_MS)
  ) {
    if (performance.now() + pause > deadline)
      throw new DnsError(`${what} took longer than ${timeoutMs / 1000} s`);
    await sleep(pause, undefined, signal === undefined ? {} : { signal });
  }
}
