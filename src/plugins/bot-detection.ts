// bot-detection: refuses programs by what they call themselves.
import { type Outcome, reject, type Rejection } from "../pdk/response.ts";
import { definePlugin } from "../pdk/definition.ts";
import { config, integer, listOf, oneOf, regex } from "../pdk/fields.ts";
import { Waiting } from "../pdk/waiting.ts";
import { aiCrawlers } from "./bot-detection/ai-crawlers.ts";
import { scanners } from "./bot-detection/scanners.ts";

const presetNames = ["ai-crawlers", "scanners"] as const;
const presets: Readonly<Record<(typeof presetNames)[number], readonly string[]>> = {
  "ai-crawlers": aiCrawlers,
  scanners,
};

const patterns = (description: string) =>
  listOf(regex({ description: "Regular expression, in upper or lower case" }), {
    description,
    maxItems: 200,
  });

const schema = config({
  deny: patterns("Clients whose User-Agent fits one of these are refused"),
  allow: patterns("Clients whose User-Agent fits one of these pass, whatever else fits"),
  presets: listOf(oneOf(presetNames, { description: "Name of a list" }), {
    default: [...presetNames],
    maxItems: 10,
    description:
      "Lists that come with the gateway: ai-crawlers (crawlers for language models), scanners (programs that look for weak spots)",
  }),
  missing_ua: oneOf(["allow", "deny"], {
    default: "allow",
    description: "What becomes of clients without a User-Agent",
  }),
  status: integer(403, { minimum: 400, maximum: 599, description: "Status of the refusal" }),
  tarpit_ms: integer(0, {
    minimum: 0,
    maximum: 600_000,
    description: "Milliseconds for which a refused client is made to wait",
  }),
});

type Config = (typeof schema)["static"];

/** Longer names are judged by their beginning. */
const MAX_NAME = 2048;

export default definePlugin({
  name: "bot-detection",
  summary: "Refuses crawlers and scanners by what they call themselves",
  description: `Looks at \`User-Agent\` only: it keeps out programs that are honest about themselves, which most crawlers are, and is no
protection from those that lie.

The lists of the presets: [ai-crawlers](../../src/plugins/bot-detection/ai-crawlers.ts),
[scanners](../../src/plugins/bot-detection/scanners.ts). Search engines are on none of them.

\`tarpit_ms\` makes the refused wait for their answer: it costs them a connection, and the gateway a little memory. When 10000
of an instance wait, the next ones are refused at once.`,
  group: "access",
  order: 9200,
  phases: ["pre_auth"],
  scopes: ["global", "service", "route"],
  config: schema,
  example: { presets: ["scanners"], deny: ["^python-requests/"], allow: ["uptime"] },
  onError: "open",
  create(own) {
    const judge = judgeOf(own);
    const waiting = own.tarpit_ms === 0 ? null : new Waiting();
    return {
      preAuth(context): Outcome | Promise<Outcome> {
        const refusal = judge(context.header("user-agent"));
        if (refusal === undefined || waiting === null) return refusal;
        return waiting.wait(own.tarpit_ms, context.signal).then(() => refusal);
      },
      close: () => waiting?.end(),
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
