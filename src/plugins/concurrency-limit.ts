// concurrency-limit: limits concurrent requests or connections, with a short queue.
import { Type as t } from "@sinclair/typebox";
import { type Outcome, type Rejection, reject } from "../pdk/response.ts";
import type { RequestContext, StreamContext } from "../pdk/context.ts";
import { definePlugin, httpScopes, type PluginHandlers } from "../pdk/definition.ts";
import { config, integer } from "../pdk/fields.ts";
import type { Counters } from "../pdk/kit.ts";
import {
  isOfClient,
  keyProblem,
  keyReader,
  requestKey,
  streamKeyReader,
} from "../pdk/request-key.ts";

const schema = config({
  max: t.Integer({
    minimum: 1,
    maximum: 1_000_000,
    description: "Maximum concurrent requests or connections per key",
  }),
  queue: integer(0, {
    minimum: 0,
    maximum: 100_000,
    description: "Queue size per key; connections never wait",
  }),
  queue_timeout: integer(1000, {
    minimum: 1,
    maximum: 3_600_000,
    description: "Maximum wait in the queue in milliseconds",
  }),
  key: requestKey("service", "Key of the limit"),
});

type Config = (typeof schema)["static"];

export default definePlugin({
  name: "concurrency-limit",
  summary: "Limits concurrent requests or connections",
  description: `A request counts from before it goes to a target until its last byte has gone to the client or the client has disconnected; a
WebSocket counts while it is open. On stream routes and on services for TCP and UDP, connections are counted; the gateway closes
excess connections at once.

The limit is exact over all workers. An excess request gets 503, or 429 when the key depends on the client (anything but \`route\`
and \`service\`), and \`Retry-After: 1\`. With a \`queue\`, it waits first. Each worker serves its queue in order; a slot that another
worker frees is noticed within 20 milliseconds, and the first worker to look takes it. A waiting client that disconnects leaves
the queue.`,
  group: "traffic",
  order: 6900,
  phases: ["connect", "access", "log"],
  scopes: [...httpScopes, "stream_route"],
  config: schema,
  example: { max: 100, queue: 50, queue_timeout: 2000 },
  onError: "open",
  ignoresPath: true,
  check: ({ key }) => {
    const problem = keyProblem(key);
    return problem === null ? [] : [{ path: "key", message: problem }];
  },
  create: (own, { counters }) => createHandlers(own, counters),
});

/** A request's slot, until it is released. */
interface HeldSlot {
  readonly key: string;
  isInside: boolean;
}

function createHandlers(own: Config, counters: Counters): PluginHandlers {
  const slots = new ConcurrencySlots(own, counters);
  const keyOf = keyReader(own.key);
  const streamKeyOf = streamKeyReader(own.key);
  const refusal = (reason: string) => refusalOf(own, reason);
  const [full, late, gone] = [refusal("cl.full"), refusal("cl.timeout"), refusal("cl.gone")];

  const enter = (context: RequestContext | StreamContext, key: string) =>
    context.memory.set(slots, { key, isInside: true } satisfies HeldSlot);
  const leave = (context: RequestContext | StreamContext) => {
    const held = context.memory.get(slots) as HeldSlot | undefined;
    if (held?.isInside !== true) return;
    held.isInside = false;
    slots.leave(held.key);
  };

  return {
    access(context): Outcome | Promise<Outcome> {
      const key = keyOf(context);
      if (slots.enter(key)) {
        enter(context, key);
        return undefined;
      }
      if (own.queue === 0) return full;
      const began = performance.now();
      return slots.wait(key, context.signal).then((end) => {
        if (end !== "full") context.queued(performance.now() - began);
        if (end === "entered") {
          enter(context, key);
          return undefined;
        }
        return { full, late, gone }[end];
      });
    },
    log: leave,
    connect(context) {
      const key = streamKeyOf(context);
      if (!counters.enter(key, own.max)) return { reason: full.reason };
      enter(context, key);
      return undefined;
    },
    disconnect: leave,
  };
}

function refusalOf({ key }: Config, reason: string): Rejection {
  const isClients = isOfClient(key);
  return reject(isClients ? 429 : 503, reason, {
    detail: isClients
      ? "too many concurrent requests of this client"
      : "too many concurrent requests",
    headers: { "Retry-After": "1" },
    token: isClients ? "http_request_denied" : "connection_limit_reached",
  });
}

/** The end of a wait; only `entered` has a slot, which must be released. */
type WaitEnd = "entered" | "full" | "late" | "gone";

interface Waiter {
  readonly end: (end: WaitEnd) => void;
}

/** How often the queue checks for slots that other workers have released. */
const LOOK_MS = 20;

/** The slots of one instance in one worker, and the queue for them. */
class ConcurrencySlots {
  readonly #options: Config;
  readonly #counters: Counters;
  /** A FIFO queue for each key. */
  readonly #waiting = new Map<string, Set<Waiter>>();
  #looking: Timer | null = null;

  constructor(options: Config, counters: Counters) {
    this.#options = options;
    this.#counters = counters;
  }

  /** Takes a slot without waiting. False when there is none, or when others wait in this worker. */
  enter(key: string): boolean {
    return !this.#waiting.has(key) && this.#counters.enter(key, this.#options.max);
  }

  leave(key: string): void {
    this.#counters.leave(key);
    this.#serve(key);
  }

  /** Waits for a slot until the signal or the timeout. */
  wait(key: string, signal: AbortSignal): Promise<WaitEnd> {
    if (signal.aborted) return Promise.resolve("gone");
    if (!this.#counters.enter(queueOf(key), this.#options.queue)) return Promise.resolve("full");
    return new Promise((resolve) => {
      const leave = () => waiter.end("gone");
      const waiter: Waiter = {
        end: (end) => {
          clearTimeout(timer);
          signal.removeEventListener("abort", leave);
          this.#forget(key, waiter);
          resolve(end);
        },
      };
      const timer = setTimeout(() => waiter.end("late"), this.#options.queue_timeout);
      signal.addEventListener("abort", leave);
      const others = this.#waiting.get(key);
      if (others === undefined) this.#waiting.set(key, new Set([waiter]));
      else others.add(waiter);
      this.#looking ??= setInterval(() => this.#look(), LOOK_MS);
    });
  }

  #forget(key: string, waiter: Waiter): void {
    const waiting = this.#waiting.get(key);
    if (waiting?.delete(waiter) !== true) return;
    this.#counters.leave(queueOf(key));
    if (waiting.size === 0) this.#waiting.delete(key);
    if (this.#waiting.size > 0 || this.#looking === null) return;
    clearInterval(this.#looking);
    this.#looking = null;
  }

  #look(): void {
    for (const key of [...this.#waiting.keys()]) this.#serve(key);
  }

  /** Gives free slots to those that have waited longest. */
  #serve(key: string): void {
    for (const waiter of this.#waiting.get(key) ?? []) {
      if (!this.#counters.enter(key, this.#options.max)) return;
      waiter.end("entered");
    }
  }
}

/** Keys of requests cannot begin with this. */
const queueOf = (key: string) => `\nqueue ${key}`;
