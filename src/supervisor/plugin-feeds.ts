// Runs the feeds of plugin instances in the main thread, and passes their messages to all workers; knows no plugin.
import type { Log } from "../log.ts";
import type { AnyPlugin } from "../pdk/definition.ts";
import type { Callout, Counters, Feed } from "../pdk/kit.ts";
import { FEED_QUESTION } from "../snapshot/message.ts";
import type { PluginPlan } from "../snapshot/snapshot.ts";

export interface PluginFeedsOptions {
  readonly definitionOf: (name: string) => AnyPlugin | undefined;
  readonly callout: Callout;
  readonly countersOf: (instanceId: string) => Counters;
  readonly log: Log;
}

/** A feed for the instances with the same key. */
interface SharedFeed {
  /** Not to be guessed, and different for each gateway of a process. */
  readonly channelName: string;
  channel: BroadcastChannel | null;
  /** Null: no instance is in service yet. */
  feed: Feed<never> | null;
  plans: readonly PluginPlan[];
  last: unknown;
}

/** Numbers of a feed stay as long as its longest interval, and longer. */
const KEEP_MS = 30 * 86_400_000;

export class PluginFeeds {
  readonly #options: PluginFeedsOptions;
  readonly #all = new Map<string, SharedFeed>();

  constructor(options: PluginFeedsOptions) {
    this.#options = options;
  }

  /** The plan as workers get it. Its feed starts when a version with it is in service. */
  withFeed(plan: PluginPlan): PluginPlan {
    const key = this.#keyOf(plan);
    if (key === null) return plan;
    let shared = this.#all.get(key);
    if (shared === undefined) {
      shared = { channelName: `sluice feed ${Bun.randomUUIDv7()}`, channel: null, ...UNUSED };
      this.#all.set(key, shared);
    }
    return { ...plan, feed: shared.channelName };
  }

  /** These instances are in service, and no others. */
  retain(plans: ReadonlyMap<string, PluginPlan>): void {
    const wanted = Map.groupBy(plans.values(), (plan) => this.#keyOf(plan));
    wanted.delete(null);
    for (const [key, shared] of this.#all) {
      if (wanted.has(key)) continue;
      this.#all.delete(key);
      end(shared);
    }
    for (const [key, users] of wanted) {
      this.withFeed(users[0] as PluginPlan);
      const shared = this.#all.get(key as string);
      if (shared === undefined || isSame(shared.plans, users)) continue;
      shared.plans = users;
      shared.feed ??= this.#start(shared, users[0]?.name ?? "");
      shared.feed?.configure(users.map(({ config }) => config as never));
    }
  }

  close(): void {
    for (const shared of this.#all.values()) end(shared);
  }

  #keyOf(plan: PluginPlan): string | null {
    const feed = this.#options.definitionOf(plan.name)?.feed;
    return feed === undefined ? null : `${plan.name} ${feed.keyOf(plan.config as never)}`;
  }

  #start(shared: SharedFeed, name: string): Feed<never> | null {
    const { definitionOf, callout, countersOf, log } = this.#options;
    const channel = new BroadcastChannel(shared.channelName);
    channel.addEventListener("message", ({ data }) => {
      if (data === FEED_QUESTION && shared.last !== null) channel.postMessage(shared.last);
    });
    shared.channel = channel;
    const use = definitionOf(name)?.feed;
    return (
      use?.start({
        callout,
        log: (level, message, fields = {}) =>
          log.write(level, message, { plugin: name, instance: nameOf(shared.plans[0]), ...fields }),
        publish(message) {
          shared.last = message;
          channel.postMessage(message);
        },
        report(values) {
          for (const { id } of shared.plans) store(countersOf(id), values);
        },
      }) ?? null
    );
  }
}

const UNUSED = { feed: null, plans: [], last: null } as const;

function end(shared: SharedFeed): void {
  shared.feed?.close();
  shared.channel?.close();
  shared.feed = null;
  shared.channel = null;
}

const nameOf = (plan: PluginPlan | undefined) => plan?.label ?? plan?.id ?? null;

const isSame = (some: readonly PluginPlan[], others: readonly PluginPlan[]) =>
  some.length === others.length && some.every((plan, at) => plan === others[at]);

function store(counters: Counters, values: Readonly<Record<string, number>>): void {
  for (const [key, next] of Object.entries(values))
    counters.replace(key, { expected: counters.value(key), next, keepMs: KEEP_MS });
}
