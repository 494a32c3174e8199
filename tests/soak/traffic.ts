// Clients of every kind, each doing the same thing again and again until the end; what they must not see is counted as a failure.
import type { Client } from "./clients.ts";
import * as clients from "./clients.ts";
import * as raw from "./raw-clients.ts";
import type { Scene } from "./scene.ts";

export interface Counts {
  done: number;
  failed: number;
  /** Of the first failures. */
  readonly why: string[];
}

interface Kind {
  readonly client: Client;
  readonly atOnce: number;
  /** Between two rounds: what is tried is endurance, not speed. */
  readonly pauseMs: number;
}

const MOST_REASONS = 5;
const MOST_LETTERS = 300;

/** Of HTTP/1.1 in cleartext, on each engine. */
const http: Readonly<Record<string, Kind>> = {
  "kept alive": { client: clients.keptAlive, atOnce: 4, pauseMs: 5 },
  "fresh connections": { client: clients.fresh, atOnce: 2, pauseMs: 10 },
  "target that flaps": { client: clients.flapping, atOnce: 2, pauseMs: 20 },
  downloads: { client: clients.download, atOnce: 1, pauseMs: 200 },
  uploads: { client: clients.upload, atOnce: 1, pauseMs: 200 },
  "aborted requests": { client: raw.aborted, atOnce: 1, pauseMs: 100 },
  "slow readers": { client: raw.slowReader, atOnce: 4, pauseMs: 200 },
  "rate-limit": { client: clients.limited, atOnce: 1, pauseMs: 20 },
  "key-auth": { client: clients.keyed, atOnce: 1, pauseMs: 20 },
  "response-cache": { client: clients.cached, atOnce: 1, pauseMs: 20 },
  compress: { client: clients.packed, atOnce: 1, pauseMs: 20 },
  WebSockets: { client: clients.webSocket, atOnce: 2, pauseMs: 50 },
};

/** Which `Bun.serve` refuses. */
const ownOnly: Readonly<Record<string, Kind>> = {
  pipelining: { client: raw.pipelined, atOnce: 1, pauseMs: 20 },
  "expecting 100": { client: raw.expecting, atOnce: 1, pauseMs: 200 },
  "silent clients": { client: raw.silent, atOnce: 2, pauseMs: 1000 },
  "other upgrades": { client: raw.otherUpgrade, atOnce: 2, pauseMs: 50 },
};

const others: Readonly<Record<string, Kind>> = {
  "over TLS": { client: clients.overTls, atOnce: 2, pauseMs: 20 },
  "TCP streams": { client: clients.tcpStream, atOnce: 1, pauseMs: 50 },
  "UDP streams": { client: clients.udpStream, atOnce: 1, pauseMs: 100 },
  changes: { client: clients.changes, atOnce: 1, pauseMs: 300 },
  listeners: { client: clients.listeners, atOnce: 1, pauseMs: 10_000 },
  observers: { client: clients.observed, atOnce: 1, pauseMs: 2_000 },
  flaps: { client: clients.flaps, atOnce: 1, pauseMs: 4_000 },
};

const onOwnEngine = Object.entries({ ...http, ...ownOnly }).map(([name, kind]): [string, Kind] => {
  const client: Client = (scene, round) =>
    kind.client({ ...scene, httpPort: scene.ownPort }, round);
  return [`${name} (sluice)`, { ...kind, client }];
});

const all = new Map([...Object.entries({ ...http, ...others }), ...onOwnEngine]);

export const kinds: readonly string[] = [...all.keys()];

/** Clients of these kinds until `isOver`. Counts are there from the start and grow. */
export function startTraffic(
  scene: Scene,
  { only, isOver }: { readonly only: readonly string[]; readonly isOver: () => boolean },
): { readonly counts: ReadonlyMap<string, Counts>; readonly ended: Promise<unknown> } {
  const counts = new Map<string, Counts>();
  const ended: Promise<void>[] = [];
  for (const [name, kind] of all) {
    if (!only.includes(name)) continue;
    const count: Counts = { done: 0, failed: 0, why: [] };
    counts.set(name, count);
    for (let at = 0; at < kind.atOnce; at++) ended.push(keepOn(scene, { kind, count, isOver }));
  }
  return { counts, ended: Promise.all(ended) };
}

interface Course {
  readonly kind: Kind;
  readonly count: Counts;
  readonly isOver: () => boolean;
}

async function keepOn(scene: Scene, { kind, count, isOver }: Course): Promise<void> {
  const started = performance.now();
  for (let round = 1; !isOver(); round++) {
    try {
      await kind.client(scene, round);
      count.done++;
    } catch (error) {
      count.failed++;
      const after = ((performance.now() - started) / 1000).toFixed(1);
      if (count.why.length < MOST_REASONS)
        count.why.push(`after ${after} s: ${String(error).slice(0, MOST_LETTERS)}`);
    }
    const until = performance.now() + kind.pauseMs;
    while (!isOver() && performance.now() < until)
      await Bun.sleep(Math.min(250, until - performance.now()));
  }
}
