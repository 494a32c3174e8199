// A relay in memory: passes the log of a fleet on to other nodes, and their reports back as one row. Knows no database; the product has none.
import type { Entry, EntryCodec } from "../../src/fleet/entry.ts";
import { signNode } from "../../src/fleet/node-row.ts";
import {
  AppendInDoubt,
  type FleetNode,
  type FleetSource,
  type Heartbeat,
  type LogEnd,
  type LogPage,
  SourceUnreachable,
  type Term,
} from "../../src/fleet/source.ts";

export interface RelayOptions {
  /** Where this relay gets the log, and reports. */
  readonly upstream: FleetSource;
  readonly codec: EntryCodec;
  /** A leaf without a report for so long does not count. Milliseconds. */
  readonly awayMs: number;
  /** The rows of the nodes serve all leaves for so long. Milliseconds. */
  readonly freshMs: number;
}

/** Entries that a relay keeps; a leaf that lacks more asks further up. */
const KEPT = 256;
/** Entries per page. */
const PAGE = 64;

interface Leaf {
  readonly served: number;
  readonly seenAt: number;
}

/** The source of the relay's own node as well. */
export class Relay implements FleetSource {
  readonly #options: RelayOptions;
  /** The newest ones, without gaps, the oldest first. */
  #entries: Entry[] = [];
  #end: LogEnd = { position: 0, id: null, at: 0 };
  /** Position up to which the log goes, as far as this relay knows. */
  #head = 0;
  readonly #asked = new Map<number, Promise<LogPage>>();
  readonly #leaves = new Map<string, Leaf>();
  readonly #wakes = new Set<(position: number) => void>();
  #unlisten: () => void = () => undefined;
  #own: Heartbeat | null = null;
  #reported = 0;
  #isReporting = false;
  #isUpstreamLost = false;
  #nodes: { readonly rows: Promise<readonly FleetNode[]>; readonly at: number } | null = null;
  /** It does not respond any more, as a machine without power. */
  isEnded = false;

  constructor(options: RelayOptions) {
    this.#options = options;
  }

  async append(entry: Entry, term: Term | null = null): Promise<boolean> {
    const isAppended = await this.#options.upstream.append(entry, term);
    // After a lost race as well: the log has an entry there that this relay may not know.
    this.#head = Math.max(this.#head, entry.position);
    return isAppended;
  }

  reserve(node: string, ms: number): Promise<boolean> {
    return this.#options.upstream.reserve(node, ms);
  }

  async after(position: number): Promise<LogPage> {
    const newest = this.#entries.at(-1);
    const from = position - (this.#entries[0]?.position ?? 0);
    const known = this.#entries[from];
    // Of the one before the oldest the entries themselves say what they follow.
    const isKept = newest !== undefined && (from === -1 || known !== undefined);
    if (isKept && (known !== newest || this.#head <= newest.position))
      return {
        head: newest.position,
        knownId: known?.id ?? null,
        entries: this.#entries.slice(from + 1, from + 1 + PAGE),
      };
    return await this.#ask(position);
  }

  /** Of many leaves at the same position one asks further up. */
  #ask(position: number): Promise<LogPage> {
    const asked = this.#asked.get(position);
    if (asked !== undefined) return asked;
    const page = this.#options.upstream.after(position).then((answer) => {
      this.#keep(answer);
      return answer;
    });
    this.#asked.set(position, page);
    const forget = () => void this.#asked.delete(position);
    page.then(forget, forget);
    return page;
  }

  #keep({ head, entries }: LogPage): void {
    this.#head = Math.max(this.#head, head);
    const last = this.#entries.at(-1);
    const added = entries.filter(({ position }) => position > (last?.position ?? 0));
    const [first] = added;
    if (first === undefined) return;
    // After a gap the older ones lead nowhere.
    const isNext = last === undefined || first.position === last.position + 1;
    this.#entries = [...(isNext ? this.#entries : []), ...added].slice(-KEPT);
    const newest = added.at(-1) ?? first;
    if (newest.position > this.#end.position)
      this.#end = { position: newest.position, id: newest.id, at: this.#end.at };
    for (const wake of this.#wakes) wake(newest.position);
  }

  async idAt(position: number): Promise<string | null> {
    const known = this.#entries.find((entry) => entry.position === position);
    return known?.id ?? (await this.#options.upstream.idAt(position));
  }

  whole(): Promise<Entry | null> {
    return this.#options.upstream.whole();
  }

  /** Of the relay's own node. */
  async beat(row: Heartbeat): Promise<LogEnd> {
    this.#own = row;
    const end = await this.#report();
    // A log that was replaced or restored.
    if (end.position < (this.#entries.at(-1)?.position ?? 0)) this.#entries = [];
    this.#end = end;
    this.#head = end.position;
    return end;
  }

  /** Of a leaf, which may come from another relay. */
  async beatOf(row: Heartbeat): Promise<LogEnd> {
    this.#leaves.set(row.id, { served: row.served, seenAt: performance.now() });
    if (this.#isUpstreamLost) throw new SourceUnreachable();
    void this.#reportChanged();
    return { ...this.#end, at: Date.now() };
  }

  /** As far as this node and all its present leaves are. */
  #served(own: Heartbeat): number {
    const since = performance.now() - this.#options.awayMs;
    let served = own.served;
    for (const [id, leaf] of this.#leaves)
      if (leaf.seenAt < since) this.#leaves.delete(id);
      else served = Math.min(served, leaf.served);
    return served;
  }

  async #report(): Promise<LogEnd> {
    const own = this.#own;
    if (own === null) throw new SourceUnreachable();
    const row = { ...own, served: this.#served(own) };
    this.#reported = row.served;
    try {
      const { codec, upstream } = this.#options;
      const end = await upstream.beat({ ...row, mac: signNode(codec, row) });
      this.#isUpstreamLost = false;
      return end;
    } catch (error) {
      this.#isUpstreamLost = true;
      throw error;
    }
  }

  /** Out of turn, when all leaves are further than the last report said. */
  async #reportChanged(): Promise<void> {
    if (this.#isReporting) return;
    this.#isReporting = true;
    while (this.#own !== null && !this.#isUpstreamLost && !this.isEnded) {
      if (this.#served(this.#own) <= this.#reported) break;
      await this.#report().catch(() => undefined);
    }
    this.#isReporting = false;
  }

  nodes(): Promise<readonly FleetNode[]> {
    const now = performance.now();
    if (this.#nodes === null || now - this.#nodes.at > this.#options.freshMs)
      this.#nodes = { rows: this.#options.upstream.nodes(), at: now };
    return this.#nodes.rows;
  }

  async forget(id: string): Promise<void> {
    if (!this.#leaves.delete(id)) await this.#options.upstream.forget(id);
  }

  forgetAway(id: string, awayMs: number): Promise<boolean> {
    return this.#options.upstream.forgetAway(id, awayMs);
  }

  /** Of the relay's own node, which is notified like a leaf: of what this relay has fetched. */
  open(): Promise<void> {
    return Promise.resolve();
  }

  listen(wake: (position: number) => void): Promise<boolean> {
    this.#unlisten();
    this.#unlisten = this.onEntry(wake);
    return this.#options.upstream.listen((position) => {
      this.#head = Math.max(this.#head, position);
      const known = this.#entries.at(-1)?.position ?? position - 1;
      // A look that is under way may have missed it.
      const before = this.#asked.get(known) ?? Promise.resolve();
      const ask = () => this.after(known);
      before.then(ask, ask).catch(() => undefined);
    });
  }

  /** Calls `wake` when this relay has a new entry; returns what ends that. */
  onEntry(wake: (position: number) => void): () => void {
    this.#wakes.add(wake);
    return () => void this.#wakes.delete(wake);
  }

  reconnect(): void {
    this.#options.upstream.reconnect();
  }

  close(): Promise<void> {
    return this.#options.upstream.close();
  }
}

export interface LeafOptions {
  /** Tried in order. */
  readonly relays: readonly Relay[];
  /** Resolves when so many bytes have arrived. */
  readonly carry: (relay: Relay, bytes: number, from: "leaf" | "relay") => Promise<void>;
  /** After this time a relay counts as silent. Milliseconds. */
  readonly deadlineMs: number;
}

const bytesOf = (entries: readonly Entry[]) =>
  entries.reduce((bytes, { body }) => bytes + body.byteLength, 200);

const forever = new Promise<never>(() => undefined);

/** Rejects with `late` when `answer` takes longer. */
export async function inTime<T>(answer: Promise<T>, ms: number, late: new () => Error): Promise<T> {
  const silence = Promise.withResolvers<never>();
  const timer = setTimeout(() => silence.reject(new late()), ms);
  try {
    return await Promise.race([answer, silence.promise]);
  } finally {
    clearTimeout(timer);
  }
}

/** A node behind a relay; another relay takes over when that one is silent. */
export class LeafSource implements FleetSource {
  readonly #options: LeafOptions;
  #index = 0;
  #unlisten: () => void = () => undefined;

  constructor(options: LeafOptions) {
    this.#options = options;
  }

  get #relay(): Relay {
    const { relays } = this.#options;
    const relay = relays[this.#index % relays.length];
    if (relay === undefined) throw new Error("a leaf needs a relay");
    return relay;
  }

  async #ask<T>(
    ask: (relay: Relay) => Promise<T>,
    { sent = 200, sizeOf = () => 200, late = SourceUnreachable }: Ask<T> = {},
  ): Promise<T> {
    const { carry, deadlineMs } = this.#options;
    const relay = this.#relay;
    const exchange = async (): Promise<T> => {
      await carry(relay, sent, "leaf");
      if (relay.isEnded) return await forever;
      const answer = await ask(relay);
      if (relay.isEnded) return await forever;
      await carry(relay, sizeOf(answer), "relay");
      return answer;
    };
    return await inTime(exchange(), deadlineMs, late);
  }

  append(entry: Entry, term: Term | null = null): Promise<boolean> {
    const how = { sent: bytesOf([entry]), late: AppendInDoubt };
    return this.#ask((relay) => relay.append(entry, term), how);
  }

  reserve(node: string, ms: number): Promise<boolean> {
    return this.#ask((relay) => relay.reserve(node, ms));
  }

  after(position: number): Promise<LogPage> {
    return this.#ask((relay) => relay.after(position), {
      sizeOf: ({ entries }) => bytesOf(entries),
    });
  }

  idAt(position: number): Promise<string | null> {
    return this.#ask((relay) => relay.idAt(position));
  }

  whole(): Promise<Entry | null> {
    return this.#ask((relay) => relay.whole(), {
      sizeOf: (entry) => bytesOf(entry === null ? [] : [entry]),
    });
  }

  beat(row: Heartbeat): Promise<LogEnd> {
    return this.#ask((relay) => relay.beatOf(row));
  }

  nodes(): Promise<readonly FleetNode[]> {
    return this.#ask((relay) => relay.nodes());
  }

  forget(id: string): Promise<void> {
    return this.#ask((relay) => relay.forget(id));
  }

  forgetAway(id: string, awayMs: number): Promise<boolean> {
    return this.#ask((relay) => relay.forgetAway(id, awayMs));
  }

  open(): Promise<void> {
    return Promise.resolve();
  }

  async listen(wake: (position: number) => void): Promise<boolean> {
    const relay = this.#relay;
    const { carry } = this.#options;
    this.#unlisten();
    await this.#ask(async () => {
      this.#unlisten = relay.onEntry((position) => {
        if (!relay.isEnded) void carry(relay, 200, "relay").then(() => wake(position));
      });
    });
    return true;
  }

  /** Goes on with the next relay. */
  reconnect(): void {
    this.#unlisten();
    this.#index++;
  }

  async close(): Promise<void> {
    this.#unlisten();
  }
}

interface Ask<T> {
  readonly sent?: number;
  readonly sizeOf?: (answer: T) => number;
  readonly late?: new () => Error;
}
