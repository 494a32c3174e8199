// bot-detection: rejects programs by their User-Agent.
import { type Outcome, reject, type Rejection } from "../pdk/response.ts";
import { definePlugin } from "../pdk/definition.ts";
import { config, integer, listOf, oneOf, regex } from "../pdk/fields.ts";
import { Delays } from "../pdk/delays.ts";
import { aiCrawlers } from "./bot-detection/ai-crawlers.ts";
import { scanners } from "./bot-detection/scanners.ts";

const presetNames = ["ai-crawlers", "scanners"] as const;
const presets: Readonly<Record<(typeof presetNames)[number], readonly string[]>> = {
  "ai-crawlers": aiCrawlers,
  scanners,
};

const patterns = (description: string) =>
  listOf(regex({ description: "Regular expression, case-insensitive" }), {
    description,
    maxItems: 200,
  });

const schema = config({
  deny: patterns("User-Agent patterns to reject"),
  allow: patterns("User-Agent patterns to allow, whatever else matches"),
  presets: listOf(oneOf(presetNames, { description: "Name of a list" }), {
    default: [...presetNames],
    maxItems: 10,
    description:
      "Built-in lists: ai-crawlers (crawlers for language models), scanners (vulnerability scanners)",
  }),
  missing_ua: oneOf(["allow", "deny"], {
    default: "allow",
    description: "Action for requests without User-Agent",
  }),
  status: integer(403, { minimum: 400, maximum: 599, description: "Status of rejections" }),
  tarpit_ms: integer(0, {
    minimum: 0,
    maximum: 600_000,
    description: "Delay of rejections in milliseconds",
  }),
});

type Config = (typeof schema)["static"];

/** Only the beginning of longer values is matched. */
const MAX_NAME = 2048;

export default definePlugin({
  name: "bot-detection",
  summary: "Rejects crawlers and scanners by their User-Agent",
  description: `Checks \`User-Agent\` only: it rejects programs that identify themselves, as most crawlers do, and is no protection from those that
pretend to be browsers.

The lists of the presets: [ai-crawlers](../../src/plugins/bot-detection/ai-crawlers.ts),
[scanners](../../src/plugins/bot-detection/scanners.ts). They contain no search engines.

\`tarpit_ms\` delays the response to rejected clients: it costs them a connection, and the gateway a little memory. When 10000
clients of an instance wait, further ones are rejected at once.`,
  group: "access",
  order: 9200,
  phases: ["pre_auth"],
  scopes: ["global", "service", "route"],
  config: schema,
  example: { presets: ["scanners"], deny: ["^python-requests/"], allow: ["uptime"] },
  onError: "open",
  ignoresPath: true,
  create(own) {
    const judge = judgeOf(own);
    const delays = own.tarpit_ms === 0 ? null : new Delays();
    return {
      preAuth(context): Outcome | Promise<Outcome> {
        const refusal = judge(context.header("user-agent"));
        if (refusal === undefined || delays === null) return refusal;
        return delays.wait(own.tarpit_ms, context.signal).then(() => refusal);
      },
      close: () => delays?.end(),
    };
  },
});

type Judge = (name: string | null) => Rejection | undefined;

function judgeOf(own: Config): Judge {
  const refuse = (reason: string) =>
    reject(own.status, reason, { detail: "automated clients are not allowed" });
  const any = (sources: readonly string[]) => sources.map((source) => new RegExp(source, "i"));
  const allowed = any(own.allow);
  const denied = any(own.deny);
  const lists = own.presets.map((name) => [anyOf(presets[name]), refuse(`bot.${name}`)] as const);
  const missing = own.missing_ua === "deny" ? refuse("bot.missing_ua") : undefined;
  const named = refuse("bot.denied");
  return (whole) => {
    if (whole === null || whole.trim() === "") return missing;
    const name = whole.slice(0, MAX_NAME);
    if (allowed.some((each) => each.test(name))) return undefined;
    if (denied.some((each) => each.test(name))) return named;
    return lists.find(([list]) => list.test(name))?.[1];
  };
}

const anyOf = (names: readonly string[]) =>
  new RegExp(names.map((name) => name.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&")).join("|"), "i");
