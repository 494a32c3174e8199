// Since which format entries of the fleet's log can hold what: marks in the model say it, for values and plugins a line here.
import type { Fact } from "../model/fact.ts";
import { formerParts, needsPresentEngines, presentParts } from "../model/former-engines.ts";
import {
  type CollectionName,
  collectionNames,
  type ConfigChange,
  definitionOf,
  type SingletonName,
  singletonNames,
} from "../model/gateway-config.ts";
import { proxyNames } from "../model/known-proxies.ts";
import { recordSchemas } from "../model/records.ts";
import { newFieldsIn } from "../model/resource.ts";

/** A part of the configuration that an older format cannot hold. */
export interface NewerPart {
  /** The first format that can. */
  readonly since: number;
  readonly in: CollectionName | SingletonName;
  /** Only in objects of this name: a plugin, whose settings have names of their own. */
  readonly of?: string;
  /** Names joined by dots, through lists; absent: the whole collection is new. */
  readonly field?: string;
  /** For new values of an old field, such as the name of a plugin; absent, like `above`: the field is new. */
  readonly values?: readonly unknown[];
  /** For a limit that was raised: numbers above it are new. */
  readonly above?: number;
  /**
   * The default of a new field, with which it is stored, also in settings of plugins: an older format leaves it out. Absent: the field
   * is stored only where it was given.
   */
  readonly absent?: unknown;
}

export interface FormatRules {
  /** Of each kind of facts. A new field that older nodes must not ignore needs a new kind. */
  readonly facts: Readonly<Record<Fact["kind"], number>>;
  readonly parts: readonly NewerPart[];
}

const newCache = { since: 3, in: "plugins", of: "response-cache" } as const;

/** New collections, and new fields of stored objects. */
function markedParts(): NewerPart[] {
  const collections = collectionNames.flatMap((name): NewerPart[] => {
    const { since } = definitionOf(name);
    return since === undefined ? [] : [{ since, in: name }];
  });
  const fields = [...collectionNames, ...singletonNames].flatMap((name) =>
    newFieldsIn(recordSchemas[name]).map((field): NewerPart => ({ ...field, in: name })),
  );
  return [...collections, ...fields];
}

/** Never changed once released, only added to. */
export const formatRules: FormatRules = {
  facts: {
    session_began: 1,
    sessions_ended: 1,
    second_factor: 1,
    admin_token: 1,
    acme_state: 1,
    acme_challenges: 1,
    node_activity: 1,
    node_drained: 1,
    cache_purged: 2,
    cache_soft_purged: 3,
    health_override: 2,
    secret_key: 2,
    local_ca: 7,
    discovery_claims: 8,
    // Older nodes send no notifications while a newer one leads.
    alert_sent: 1,
  },
  parts: [
    ...markedParts(),
    { since: 2, in: "plugins", of: "rate-limit", field: "config.shared", absent: null },
    { since: 2, in: "plugins", of: "rate-limit", field: "config.on_shared_error", absent: "node" },
    { ...newCache, field: "config.heuristic", absent: 0 },
    { ...newCache, field: "config.heuristic_max", absent: 86_400 },
    {
      ...newCache,
      field: "config.target_fields",
      absent: ["Sluice-Cache-Control", "CDN-Cache-Control"],
    },
    { ...newCache, field: "config.statuses", values: [400, 405, 414, 500, 501, 502, 503, 504] },
    { ...newCache, field: "config.storage", absent: "memory" },
    { ...newCache, field: "config.disk_above", absent: 65_536 },
    { ...newCache, field: "config.disk_total", absent: 1_073_741_824 },
    { since: 4, in: "services", field: "protocol", values: ["h2", "h2c", "grpc", "grpcs"] },
    { since: 4, in: "services", field: "health.active.type", values: ["grpc", "grpcs"] },
    { since: 4, in: "plugins", field: "name", values: ["grpc-web"] },
    {
      since: 4,
      in: "plugins",
      of: "transform",
      field: "config.response.trailers",
      absent: { set: {}, add: {}, remove: [], rename: {} },
    },
    {
      since: 9,
      in: "plugins",
      of: "transform",
      field: "config.response.gateway_responses",
      absent: false,
    },
    { since: 7, in: "certificates", field: "source", values: ["local_ca"] },
    { since: 7, in: "applications", field: "https.mode", values: ["local_ca"] },
    {
      since: 5,
      in: "plugins",
      of: "waf-lite",
      field: "config.rulesets",
      values: ["block-exploits"],
    },
    { since: 6, in: "plugins", field: "name", values: ["blocklist", "crowdsec"] },
    { since: 9, in: "services", field: "tls.min_version", values: ["1.0", "1.1"] },
    { since: 9, in: "applications", field: "access", values: ["networks"] },
    { since: 9, in: "alerts", field: "events", values: ["node_failing"] },
    { since: 9, in: "settings", field: "trusted_proxies", values: proxyNames },
    { since: 9, in: "listeners", field: "trusted_proxies", values: proxyNames },
    { since: 9, in: "listeners", field: "max_header_bytes", above: 16_384 },
  ],
};

/** The newest format of entries that this version reads. Each entry has the lowest one that can hold it, for older nodes. */
export const ENTRY_FORMAT = Math.max(
  ...formatRules.parts.map(({ since }) => since),
  ...Object.values(formatRules.facts),
);

/** Of a change only the parts that it has. */
export type ChangedParts = Partial<ConfigChange>;

export interface FormatNeed {
  /** The lowest format that can hold an entry. */
  readonly format: number;
  /** What needs it, for messages: `settings.fleet.absent_after`; empty for format 1. */
  readonly because: readonly string[];
}

/** What an entry with these parts and facts needs. */
export function formatNeed(
  { change, facts }: { readonly change: ChangedParts; readonly facts: readonly Fact[] },
  rules = formatRules,
): FormatNeed {
  const needs = new Map<string, number>();
  for (const { kind } of facts) needs.set(kind.replaceAll("_", " "), rules.facts[kind]);
  for (const part of rules.parts) if (isUsed(part, change)) needs.set(nameOf(part), part.since);
  if (needsPresentEngines(change)) needs.set("listeners.engine", PRESENT_ENGINES);
  const newer = [...needs].filter(([, since]) => since > 1);
  return {
    format: Math.max(1, ...newer.map(([, since]) => since)),
    because: newer.map(([name]) => name),
  };
}

const nameOf = ({ in: collection, of, field }: NewerPart) =>
  [collection, of, field].filter((name) => name !== undefined).join(".");

const isOf = ({ of }: NewerPart, object: unknown) =>
  of === undefined || (object as { readonly name?: unknown }).name === of;

/** The first format whose listeners have the present engines, and the first that had any. */
const PRESENT_ENGINES = 9;
const FIRST_ENGINES = 4;

/** Without the fields that nodes of `format` do not know: they have the values that stand for their absence. */
export const withoutNewer = (change: ChangedParts, format: number, rules = formatRules) => {
  const known = rewritten(change, { format, rules }, () => undefined);
  return format >= FIRST_ENGINES && format < PRESENT_ENGINES ? formerParts(known) : known;
};

/** The reverse, for entries of a node of `format`. */
export const withNewer = (change: ChangedParts, format: number, rules = formatRules) =>
  rewritten(
    format < PRESENT_ENGINES ? presentParts(change, "standard") : change,
    { format, rules },
    (member, absent) => (member === undefined ? absent : member),
  );

function rewritten(
  change: ChangedParts,
  { format, rules }: { readonly format: number; readonly rules: FormatRules },
  replace: (member: unknown, absent: unknown) => unknown,
): ChangedParts {
  let result = change;
  for (const rule of rules.parts) {
    const { since, in: name, field, absent } = rule;
    const part = result[name] ?? null;
    if (since <= format || part === null || field === undefined || absent === undefined) continue;
    const path = field.split(".");
    const edit = <T>(object: T): T =>
      isOf(rule, object)
        ? (edited(object, path, (member) => replace(member, absent)) as T)
        : object;
    result = {
      ...result,
      [name]: "upserts" in part ? { ...part, upserts: part.upserts.map(edit) } : edit(part),
    };
  }
  return result;
}

function isUsed(rule: NewerPart, change: ChangedParts): boolean {
  const { field, values, above, absent } = rule;
  const part = change[rule.in] ?? null;
  if (part === null) return false;
  if (field === undefined) return true;
  const isNewer = (member: unknown) =>
    above !== undefined
      ? typeof member === "number" && member > above
      : values === undefined
        ? member !== undefined && !Bun.deepEquals(member, absent)
        : values.some((value) =>
            Array.isArray(member) ? member.includes(value) : value === member,
          );
  const path = field.split(".");
  const objects: readonly unknown[] = "upserts" in part ? part.upserts : [part];
  return objects.some((object) => isOf(rule, object) && membersAt(object, path).some(isNewer));
}

/** The members of `value` at `path`; of lists those of all elements. */
function membersAt(value: unknown, [key, ...rest]: readonly string[]): readonly unknown[] {
  if (key === undefined) return [value];
  if (Array.isArray(value)) return value.flatMap((each) => membersAt(each, [key, ...rest]));
  if (typeof value !== "object" || value === null) return [];
  return membersAt((value as Readonly<Record<string, unknown>>)[key], rest);
}

/** A copy with the members at `path` as `replace` returns them; undefined removes one. */
function edited(
  value: unknown,
  [key, ...rest]: readonly string[],
  replace: (member: unknown) => unknown,
): unknown {
  if (key === undefined) return replace(value);
  if (Array.isArray(value)) return value.map((each) => edited(each, [key, ...rest], replace));
  if (typeof value !== "object" || value === null) return value;
  const { [key]: member, ...others } = value as Readonly<Record<string, unknown>>;
  const next = edited(member, rest, replace);
  return next === undefined ? others : { ...value, [key]: next };
}
