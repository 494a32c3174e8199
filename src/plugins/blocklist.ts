// blocklist: denies the addresses in lists that other servers publish.
import { Type as t } from "@sinclair/typebox";
import type { Pace } from "../pace.ts";
import { definePlugin } from "../pdk/definition.ts";
import { DenyFeed, type DenySource, type Fetched } from "../pdk/deny-feed.ts";
import { DENY_DESCRIPTION, denyFields, denyHandlers, denyMetrics } from "../pdk/deny-list.ts";
import { destination } from "../pdk/destination.ts";
import { config, integer, secret, url } from "../pdk/fields.ts";
import { isFieldValue, isToken } from "../pdk/http.ts";
import type { CalloutResponse, FeedKit } from "../pdk/kit.ts";
import { NEVER, type NetworkEntry } from "../pdk/net.ts";
import { readLines } from "./blocklist/lines.ts";

const PRIVATE_NETWORKS = [
  ...["127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16"],
  ...["::1", "fc00::/7", "fe80::/10"],
];

const schema = config({
  lists: t.Array(
    t.Object(
      {
        name: t.String({
          pattern: "^[a-z0-9][a-z0-9-]{0,39}$",
          errorMessage: "must be lower-case letters, digits and hyphens, such as firehol-level1",
          description: "Name of the list in reasons and messages",
        }),
        url: destination(url({ maxLength: 2048, description: "URL of the list" })),
        headers: t.Record(
          t.String({ minLength: 1, maxLength: 256 }),
          secret({ maxLength: 4096, description: "Value of the header" }),
          {
            default: {},
            maxProperties: 20,
            description: "Headers of the requests, such as one with a key",
          },
        ),
      },
      { additionalProperties: false, description: "One list" },
    ),
    { minItems: 1, maxItems: 20, description: "The lists; an address in one of them is denied" },
  ),
  refresh_interval: t.Number({
    default: 3600,
    minimum: 0.1,
    maximum: 604_800,
    description: "Seconds between two requests for a list; at most 30 after a failed one",
  }),
  max_bytes: integer(16_777_216, {
    minimum: 1024,
    maximum: 67_108_864,
    description: "Maximum size of a list in bytes; a larger one is not used",
  }),
  max_entries: integer(200_000, {
    minimum: 1,
    maximum: 500_000,
    description: "Maximum number of networks in all lists; a list with more is not used",
  }),
  ...denyFields({ allow: PRIVATE_NETWORKS, timeout: 15_000 }),
});

type Config = (typeof schema)["static"];

export default definePlugin({
  name: "blocklist",
  summary: "Denies addresses in public lists such as those of FireHOL, Spamhaus and AbuseIPDB",
  description: `Reads lists with an address or a network in each line, IPv4 or IPv6. Comments begin with \`#\` or \`;\`, and what follows an address
in its line is ignored, and so are lines without one. The gateway does not use a response in which most lines have no address, and
ignores \`0.0.0.0/0\` and \`::/0\`, which would deny every client. It asks with \`If-None-Match\` and \`If-Modified-Since\`, and does not follow
redirects: give the last URL. A list that cannot be fetched, or is not valid, stays as it was. Lists come from URLs only, not from files; use
\`https\`, because the list decides who is denied.

${DENY_DESCRIPTION}

With several lists, all must have been loaded, and \`max_age\` applies to the oldest one.

AbuseIPDB sends its list in this form from \`https://api.abuseipdb.com/api/v2/blacklist?plaintext\`, with the header \`Key\`.

Some lists contain private networks, as \`firehol_level1\` does: by default \`allow\` has those networks, so that clients of your own network
are not denied. Terms of use differ: Spamhaus, for example, allows one request per hour.

The main thread of the gateway sends the requests, once for all workers and once for all instances with the same lists and limits. The metrics
\`sluice_blocklist_entries\`, \`_up\`, \`_contact_timestamp_seconds\` and \`_requests_total\` show the state of the lists; the log has the last
error.`,
  group: "access",
  order: 9140,
  phases: ["connect", "pre_auth"],
  scopes: ["global", "service", "route", "stream_route"],
  config: schema,
  example: {
    lists: [
      { name: "drop", url: "https://lists.example.net/drop.txt" },
      {
        name: "abuse",
        url: "https://api.example.net/blacklist?plaintext",
        headers: { Key: "the API key" },
      },
    ],
    refresh_interval: 86_400,
    fail_open: true,
  },
  onError: "closed",
  ignoresPath: true,
  check: problemsOf,
  metrics: denyMetrics("sluice_blocklist"),
  feed: {
    keyOf: ({ lists, refresh_interval, max_bytes, max_entries, timeout }) =>
      JSON.stringify([lists, refresh_interval, max_bytes, max_entries, timeout]),
    start: (kit) => new DenyFeed<Config>(kit, new Lists(kit)),
  },
  create: (own, kit) =>
    denyHandlers(own, kit, {
      name: "blocklist",
      reasons: own.lists.map(({ name }) => `blocklist.listed.${name}`),
    }),
});

function problemsOf({ lists }: Config): { path: string; message: string }[] {
  const names = lists.map(({ name }) => name);
  return lists.flatMap(({ name, headers }, at) => {
    const problems = Object.entries(headers).flatMap(([header, value]) => {
      const path = `lists[${at}].headers.${header}`;
      if (!isToken(header)) return [{ path, message: "must be a valid header name" }];
      return typeof value === "string" && !isFieldValue(value)
        ? [{ path, message: "must be a valid header value" }]
        : [];
    });
    if (names.indexOf(name) === at) return problems;
    return [...problems, { path: `lists[${at}].name`, message: "must differ from other names" }];
  });
}

/** One list as it was fetched last. */
interface Loaded {
  readonly keys: ReadonlySet<string>;
  /** Validators of the response. */
  readonly etag: string | null;
  readonly modified: string | null;
  readonly contactMs: number;
}

/** The lists of a configuration. */
class Lists implements DenySource<Config> {
  readonly #kit: FeedKit;
  readonly #loaded = new Map<string, Loaded>();
  #own: Config | null = null;

  constructor(kit: FeedKit) {
    this.#kit = kit;
  }

  configure([own]: readonly Config[]): number {
    this.#own = own ?? null;
    return (own?.refresh_interval ?? 0) * 1000;
  }

  async fetch(pace: Pace): Promise<Fetched> {
    const own = this.#own as Config;
    const problems: string[] = [];
    let hasChanged = false;
    // One after the other, so that memory holds one response at a time.
    for (const list of own.lists) {
      try {
        const response = await this.#ask(own, list);
        if (await this.#use(list.name, response, pace)) hasChanged = true;
      } catch (error) {
        problems.push(`${list.name}: ${(error as Error).message}`);
      }
    }
    const contacts = own.lists.map(({ name }) => this.#loaded.get(name)?.contactMs ?? 0);
    const oldest = Math.min(...contacts);
    return {
      entries: hasChanged ? this.#entries(own) : null,
      contactMs: oldest === 0 ? null : oldest,
      problems,
    };
  }

  async #ask(own: Config, { name, url: address, headers }: Config["lists"][number]) {
    const before = this.#loaded.get(name);
    const conditions: Record<string, string> = {};
    if (before?.etag != null) conditions["if-none-match"] = before.etag;
    if (before?.modified != null) conditions["if-modified-since"] = before.modified;
    return await this.#kit.callout({
      url: address,
      headers: { accept: "text/plain, */*;q=0.1", ...headers, ...conditions },
      timeoutMs: own.timeout,
      maxBytes: own.max_bytes,
    });
  }

  /** Whether the list has changed. */
  async #use(name: string, { status, headers, body }: CalloutResponse, pace: Pace) {
    const before = this.#loaded.get(name);
    if (status === 304 && before !== undefined) {
      this.#loaded.set(name, { ...before, contactMs: Date.now() });
      return false;
    }
    if (status !== 200) throw new Error(`the server responded ${status}`);
    let max = this.#own?.max_entries ?? 0;
    for (const [other, { keys }] of this.#loaded) if (other !== name) max -= keys.size;
    this.#loaded.set(name, {
      keys: await readLines(body, { max, pace }),
      etag: headers.get("etag"),
      modified: headers.get("last-modified"),
      contactMs: Date.now(),
    });
    return true;
  }

  *#entries(own: Config): Iterable<NetworkEntry> {
    for (const [value, { name }] of own.lists.entries())
      for (const key of this.#loaded.get(name)?.keys ?? []) yield { key, value, until: NEVER };
  }
}
