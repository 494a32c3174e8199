// crowdsec: denies the addresses that a local API of CrowdSec has decided to ban.
import { Type as t } from "@sinclair/typebox";
import type { Pace } from "../pace.ts";
import { definePlugin } from "../pdk/definition.ts";
import { DenyFeed, type DenySource, type Fetched } from "../pdk/deny-feed.ts";
import { DENY_DESCRIPTION, denyFields, denyHandlers, denyMetrics } from "../pdk/deny-list.ts";
import { destination } from "../pdk/destination.ts";
import { config, integer, secret, url } from "../pdk/fields.ts";
import { isFieldValue } from "../pdk/http.ts";
import type { FeedKit } from "../pdk/kit.ts";
import { errorTextOf, quote } from "../pdk/net.ts";
import { Decisions, decisionTypes, readStream, type StreamResponse } from "./crowdsec/decisions.ts";

const schema = config({
  url: destination(
    url({
      maxLength: 2048,
      description: "URL of the local API, such as `http://127.0.0.1:8080`",
    }),
  ),
  api_key: secret({
    maxLength: 1024,
    description: "Key of a bouncer, from `cscli bouncers add`",
  }),
  poll_interval: t.Number({
    default: 10,
    minimum: 0.1,
    maximum: 3600,
    description: "Seconds between two requests for new and deleted decisions",
  }),
  resync_interval: t.Number({
    default: 600,
    minimum: 0,
    maximum: 86_400,
    description: "Seconds after which a request is for all decisions; 0: all requests are",
  }),
  max_decisions: integer(100_000, {
    minimum: 1,
    maximum: 500_000,
    description: "Maximum number of decisions; further ones are dropped",
  }),
  ...denyFields({ allow: [], timeout: 5000 }),
});

type Config = (typeof schema)["static"];

export default definePlugin({
  name: "crowdsec",
  summary: "Denies addresses that CrowdSec has decided to ban",
  description: `A bouncer for [CrowdSec](https://docs.crowdsec.net): the gateway reads the decisions of a local API
(\`GET /v1/decisions/stream\`) and denies the addresses and networks in them. Decisions with the scopes \`Ip\` and \`Range\` and the types
\`ban\` and \`captcha\` count; a captcha denies too, because the gateway shows none. A decision ends with its duration, also while
the local API is away, or earlier when the local API deletes it.

${DENY_DESCRIPTION}

The main thread of the gateway sends the requests, once for all workers, and once for all instances with the same \`url\` and \`api_key\`: they
use the shortest interval and the largest limit among them. The first request, the one after a failure, and one every \`resync_interval\`
are for all decisions, the others for changes. The local API remembers for each key what it has sent, so that a key must belong to one
gateway: where several use the same, as in a fleet, each may miss changes until the next request for all of them. A short
\`resync_interval\`, or 0, is right there.

An \`https\` URL needs a certificate that the system trusts. The gateway drops decisions beyond \`max_decisions\`, and logs that. The
metrics \`sluice_crowdsec_entries\`, \`_up\`, \`_contact_timestamp_seconds\` and \`_requests_total\` show the state of the list; the log has
the last error.`,
  group: "access",
  order: 9150,
  phases: ["connect", "pre_auth"],
  scopes: ["global", "service", "route", "stream_route"],
  config: schema,
  example: {
    url: "http://127.0.0.1:8080",
    api_key: "the key of cscli bouncers add",
    fail_open: true,
  },
  onError: "closed",
  ignoresPath: true,
  check: ({ api_key }) =>
    // A reference to a secret is no text here.
    typeof api_key === "string" && !isFieldValue(api_key)
      ? [{ path: "api_key", message: "must be a valid header value" }]
      : [],
  metrics: denyMetrics("sluice_crowdsec"),
  feed: {
    keyOf: ({ url: address, api_key }) => JSON.stringify([address, api_key]),
    start: (kit) => new DenyFeed<Config>(kit, new LocalApi(kit)),
  },
  create: (own, kit) =>
    denyHandlers(own, kit, {
      name: "crowdsec",
      reasons: decisionTypes.map((type) => `crowdsec.${type}`),
    }),
});

/** Bytes of a decision in JSON: mostly 200 to 300. */
const DECISION_BYTES = 512;
const OTHER_BYTES = 65_536;

/** The decisions at a local API. */
class LocalApi implements DenySource<Config> {
  readonly #kit: FeedKit;
  readonly #decisions = new Decisions(Date.now);
  #own: Config | null = null;
  #contactMs: number | null = null;
  /** When the next request is for all decisions, by `performance.now`. */
  #wholeAt = 0;

  constructor(kit: FeedKit) {
    this.#kit = kit;
  }

  configure(configs: readonly Config[]): number {
    const [first] = configs;
    if (first === undefined) return 0;
    const least = (of: (own: Config) => number) => Math.min(...configs.map(of));
    this.#own = {
      ...first,
      poll_interval: least((own) => own.poll_interval),
      resync_interval: least((own) => own.resync_interval),
      timeout: least((own) => own.timeout),
      max_decisions: Math.max(...configs.map((own) => own.max_decisions)),
    };
    // A larger limit has room for what was dropped.
    this.#wholeAt = 0;
    return this.#own.poll_interval * 1000;
  }

  async fetch(pace: Pace): Promise<Fetched> {
    const own = this.#own as Config;
    const isWhole = performance.now() >= this.#wholeAt;
    let response: StreamResponse;
    try {
      response = await this.#ask(own, isWhole);
    } catch (error) {
      // The local API may believe that its changes have arrived.
      this.#wholeAt = 0;
      return { entries: null, contactMs: this.#contactMs, problems: [(error as Error).message] };
    }
    this.#contactMs = Date.now();
    if (isWhole) {
      this.#decisions.clear();
      // Other settings may have come meanwhile.
      if (this.#own === own) this.#wholeAt = performance.now() + own.resync_interval * 1000;
    }
    const hasChanged = await this.#decisions.apply(response, { max: own.max_decisions, pace });
    const { dropped } = this.#decisions;
    if (dropped > 0 && isWhole)
      this.#kit.log("warn", "there are more decisions than max_decisions", { dropped });
    return {
      entries: hasChanged || isWhole ? this.#decisions.entries() : null,
      contactMs: this.#contactMs,
      problems: [],
    };
  }

  async #ask(own: Config, isWhole: boolean): Promise<StreamResponse> {
    const base = own.url.replace(/\/+$/, "");
    const { status, body } = await this.#kit.callout({
      // With `dedup` the API would hide a decision behind a longer one, and not send it when that one is deleted.
      url: `${base}/v1/decisions/stream?startup=${isWhole}&scopes=ip,range&dedup=false`,
      headers: { "x-api-key": own.api_key, accept: "application/json" },
      timeoutMs: own.timeout,
      maxBytes: OTHER_BYTES + own.max_decisions * DECISION_BYTES,
    });
    if (status !== 200) {
      const did =
        status === 401 || status === 403 ? `refused the key (${status})` : `responded ${status}`;
      const said = quote(errorTextOf(new TextDecoder().decode(body)), [own.api_key]);
      throw new Error(`the local API ${did}${said === "" ? "" : `: ${said}`}`);
    }
    return readStream(body);
  }
}
