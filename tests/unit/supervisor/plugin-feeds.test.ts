// Feeds of plugin instances: when they start and end, who shares them, and what reaches workers.
import { afterEach, expect, test } from "bun:test";
import { Type as t } from "@sinclair/typebox";
import { createLog } from "../../../src/log.ts";
import { definePlugin } from "../../../src/pdk/definition.ts";
import { config } from "../../../src/pdk/fields.ts";
import type { FeedKit } from "../../../src/pdk/kit.ts";
import { CounterTable } from "../../../src/shared-memory/counter-table.ts";
import { FEED_QUESTION } from "../../../src/snapshot/message.ts";
import type { PluginPlan } from "../../../src/snapshot/snapshot.ts";
import { PluginFeeds } from "../../../src/supervisor/plugin-feeds.ts";
import { eventually } from "../../support/poll.ts";

const endings: (() => void)[] = [];
afterEach(() => {
  for (const end of endings.splice(0)) end();
});

interface Started {
  readonly kit: FeedKit;
  readonly configured: string[];
  isClosed: boolean;
}

function feeds() {
  const started: Started[] = [];
  const definition = definePlugin({
    name: "listed",
    summary: "",
    description: "",
    group: "access",
    order: 1,
    phases: [],
    scopes: ["global"],
    config: config({ source: t.String(), more: t.String() }),
    example: {},
    onError: "open",
    feed: {
      keyOf: ({ source }) => source,
      start(kit) {
        const feed: Started = { kit, configured: [], isClosed: false };
        started.push(feed);
        return {
          configure: (configs) =>
            void feed.configured.push(configs.map(({ more }) => more).join("+")),
          close() {
            feed.isClosed = true;
          },
        };
      },
    },
    create: () => ({}),
  });
  const counters = CounterTable.create({ keys: 64, workers: 1 });
  const all = new PluginFeeds({
    definitionOf: (name) => (name === "listed" ? definition : undefined),
    callout: () => Promise.reject(new Error("not here")),
    countersOf: (id) => counters.forInstance(0, id),
    log: createLog({ level: "error", format: "json", sink() {} }),
  });
  endings.push(() => all.close());
  return { all, started, counters };
}

const plan = (id: string, source: string, more = "", name = "listed") =>
  ({ id, name, label: null, config: { source, more } }) as unknown as PluginPlan;
const plans = (...list: PluginPlan[]) => new Map(list.map((each) => [each.id, each]));

function follow(name: string | undefined): unknown[] {
  const messages: unknown[] = [];
  const channel = new BroadcastChannel(name ?? "");
  channel.addEventListener("message", ({ data }) => messages.push(data));
  channel.postMessage(FEED_QUESTION);
  endings.push(() => channel.close());
  return messages;
}

test("a feed starts with the first instance in service, not while a version is prepared, and ends with the last", () => {
  const { all, started } = feeds();
  const [one, two] = [plan("1", "a", "x"), plan("2", "a", "y")];
  expect(all.withFeed(one).feed).toBe(all.withFeed(two).feed as string);
  expect(all.withFeed(plan("3", "b")).feed).not.toBe(all.withFeed(one).feed);
  expect(started).toHaveLength(0);
  all.retain(plans(one));
  all.retain(plans(one));
  all.retain(plans(one, two));
  all.retain(plans(two));
  expect(started).toHaveLength(1);
  expect(started[0]?.configured).toEqual(["x", "x+y", "y"]);
  expect(started[0]?.isClosed).toBe(false);
  all.retain(plans());
  expect(started[0]?.isClosed).toBe(true);
});

test("plugins without a feed get none", () => {
  const { all } = feeds();
  const other = plan("1", "a", "", "other");
  expect(all.withFeed(other)).toBe(other);
  all.retain(plans(other));
});

test("workers get each message, and the last one when they come later", async () => {
  const { all, started } = feeds();
  const one = plan("1", "a");
  const { feed } = all.withFeed(one);
  const early = follow(feed);
  all.retain(plans(one));
  started[0]?.kit.publish("first");
  started[0]?.kit.publish("second");
  await eventually(() => early.includes("second"));
  const late = follow(feed);
  await eventually(() => late.length > 0);
  expect(late).toEqual(["second"]);
  expect(early.slice(0, 2)).toEqual(["first", "second"]);
});

test("numbers reach the counters of all instances that share the feed", () => {
  const { all, started, counters } = feeds();
  all.retain(plans(plan("1", "a"), plan("2", "a"), plan("3", "b")));
  started[0]?.kit.report({ entries: 5 });
  started[0]?.kit.report({ entries: 1.8e9 });
  const values = ["1", "2", "3"].map((id) => counters.forInstance(0, id).value("entries"));
  expect(values).toEqual([1.8e9, 1.8e9, 0]);
});
