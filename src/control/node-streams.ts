// Merges the event streams of several nodes into one, and says which nodes are missing in it; knows no kind of event.
import { ApiError } from "../model/error.ts";
import type { FleetView } from "./fleet-view.ts";
import { type MissingNode, nodesOf, type NodeRead, type ReadableNode } from "./node-reads.ts";

/** An event of this node or of a merged stream. */
interface NodeEvent {
  readonly id: string | null;
  readonly kind: string;
  /** The text of a JSON object. */
  readonly data: string;
}

/** One reader's position in the events of this node. */
interface EventSource {
  next(): NodeEvent | null;
  close(): void;
}

export interface MergedReader extends EventSource {
  /** No resumption: each node has ids of its own. */
  readonly position: "";
}

export interface MergedStream extends NodeRead {
  /** `all`, or the id or name of a node. */
  readonly asked: string;
  /** Kinds that other nodes may send. */
  readonly kinds: readonly string[];
  /** The events of this node. */
  readonly own: (wake: () => void) => EventSource;
}

type Fleet = Pick<FleetView, "id" | "name" | "reads"> & {
  /** Until a lost stream is opened again, and new nodes are looked for. Default: 2000 milliseconds. */
  readonly retryMs?: number;
};

/** Each one holds a connection to every other node. */
const MAX_STREAMS = 32;
const RETRY_MS = 2000;
/** Events of other nodes that the client has not read yet. */
const MAX_WAITING = 1000;

export class NodeStreams {
  readonly #fleet: Fleet;
  readonly #open = new Set<Merger>();

  constructor(fleet: Fleet) {
    this.#fleet = fleet;
  }

  /** Throws a 404 for an unknown node, and a 429 when there are too many of these streams. */
  subscribe(stream: MergedStream, wake: () => void): MergedReader {
    nodesOf(this.#fleet.reads, stream.asked);
    if (this.#open.size >= MAX_STREAMS)
      throw new ApiError(429, "too many event streams of several nodes are open", {
        headers: { "retry-after": "5" },
      });
    const merger = new Merger(this.#fleet, stream, wake);
    this.#open.add(merger);
    return {
      position: "",
      next: () => merger.next(),
      close: () => {
        this.#open.delete(merger);
        merger.close();
      },
    };
  }
}

class Merger {
  readonly #fleet: Fleet;
  readonly #stream: MergedStream;
  readonly #wake: () => void;
  readonly #own: EventSource | null;
  readonly #abort = new AbortController();
  readonly #retryMs: number;
  readonly #timer: Timer;
  readonly #waiting: NodeEvent[] = [];
  #dropped = 0;
  /** Ids of the nodes whose stream is open or being opened. */
  readonly #followed = new Set<string>();
  /** By id; null: its stream is open. */
  readonly #states = new Map<string, MissingNode | null>();
  #reported = "";

  constructor(fleet: Fleet, stream: MergedStream, wake: () => void) {
    this.#fleet = fleet;
    this.#stream = stream;
    this.#wake = wake;
    const isAsked = nodesOf(fleet.reads, stream.asked).some(({ id }) => id === fleet.id);
    this.#own = isAsked ? stream.own(wake) : null;
    this.#retryMs = fleet.retryMs ?? RETRY_MS;
    this.#timer = setInterval(() => this.#connect(), this.#retryMs);
    this.#connect();
  }

  next(): NodeEvent | null {
    const event = this.#own?.next() ?? null;
    if (event !== null) return { ...event, id: null, data: tagged(event.data, this.#fleet.name) };
    if (this.#dropped === 0) return this.#waiting.shift() ?? null;
    const data = JSON.stringify({ count: this.#dropped });
    this.#dropped = 0;
    return { id: null, kind: "dropped", data };
  }

  close(): void {
    clearInterval(this.#timer);
    this.#abort.abort();
    this.#own?.close();
  }

  /** Opens the streams of nodes that have none. */
  #connect(): void {
    const others = this.#others();
    for (const id of this.#states.keys())
      if (!others.some((node) => node.id === id)) this.#states.delete(id);
    for (const node of others) if (!this.#followed.has(node.id)) void this.#follow(node);
    this.#report(others);
  }

  #others(): readonly ReadableNode[] {
    try {
      const nodes = nodesOf(this.#fleet.reads, this.#stream.asked);
      return nodes.filter(({ id }) => id !== this.#fleet.id);
    } catch (error) {
      // The node has left the fleet.
      if (error instanceof ApiError) return [];
      throw error;
    }
  }

  async #follow(node: ReadableNode): Promise<void> {
    const { id, name } = node;
    const { path, role, kinds } = this.#stream;
    let openedAt = Number.POSITIVE_INFINITY;
    this.#followed.add(id);
    const why = await this.#fleet.reads
      .follow(
        id,
        { path, role },
        {
          signal: this.#abort.signal,
          onOpen: () => {
            openedAt = performance.now();
            this.#note(id, null);
          },
          onEvent: (kind, data) => {
            if (kinds.includes(kind) && isObject(data)) this.#push(kind, tagged(data, name));
          },
        },
      )
      .catch((error: Error) => error.message);
    this.#followed.delete(id);
    if (this.#abort.signal.aborted) return;
    // Nodes end streams from time to time, and restart: at once, so that little is missed.
    if (performance.now() - openedAt > this.#retryMs) void this.#follow(node);
    else this.#note(id, { name, why });
  }

  #note(id: string, state: MissingNode | null): void {
    this.#states.set(id, state);
    this.#report(this.#others());
  }

  /** A `nodes` event, once the state of all nodes is known, and when it changes. */
  #report(others: readonly ReadableNode[]): void {
    if (others.some(({ id }) => !this.#states.has(id))) return;
    const missing = others.flatMap(({ id }) => this.#states.get(id) ?? []);
    const data = JSON.stringify({ partial: missing.length > 0, missing });
    if (data === this.#reported) return;
    this.#reported = data;
    this.#push("nodes", data);
  }

  #push(kind: string, data: string): void {
    if (this.#waiting.length < MAX_WAITING) this.#waiting.push({ id: null, kind, data });
    else this.#dropped++;
    this.#wake();
  }
}

/** Ours is the last member of this name, which wins. */
const tagged = (data: string, node: string): string =>
  `${data.slice(0, -1)}${data === "{}" ? "" : ","}"node":${JSON.stringify(node)}}`;

function isObject(data: string): boolean {
  try {
    const value: unknown = JSON.parse(data);
    return data.startsWith("{") && typeof value === "object";
  } catch {
    return false;
  }
}
