// On-demand certificates: decides which requested names get one; knows no CA.
import type { Fetch } from "../dialer/dialer.ts";
import type { Clock } from "../clock.ts";
import type { Log } from "../log.ts";
import type { Certificate } from "../model/certificate.ts";
import type { GatewayConfig } from "../model/gateway-config.ts";
import { ApiError } from "../model/error.ts";
import type { Changes } from "../control/change.ts";
import { materialOfNone } from "./certificate-fields.ts";
import { issuer } from "./installation.ts";

export interface OnDemandOptions {
  readonly changes: Changes;
  readonly clock: Clock;
  readonly log: Log;
}

const TAG = "on-demand";
/** Maximum number of certificates per template. */
const MOST_OF_ONE = 500;
/** New ones in ten minutes, for all templates together. */
const MOST_AT_ONCE = 20;
const WINDOW_MS = 600_000;
/** How long a refused name is cached. */
const REFUSED_MS = 300_000;
const MOST_REMEMBERED = 10_000;
const ASK_TIMEOUT_MS = 5000;
const MOST_ASKED_AT_ONCE = 10;

/** Names whose handshakes workers report: the patterns of all templates. */
export const wantedNames = ({ certificates }: GatewayConfig): readonly string[] => [
  ...new Set([...certificates.values()].filter(isTemplate).flatMap(hostsOf)),
];

const isTemplate = ({ source, enabled, on_demand }: Certificate) =>
  source === "acme" && enabled && on_demand !== null;

const hostsOf = ({ on_demand }: Certificate) =>
  (on_demand?.hosts ?? []).map((host) => host.toLowerCase());

export class OnDemand {
  readonly #options: OnDemandOptions;
  readonly #asking = new Set<string>();
  /** Refused names, with the end of their cache time. */
  readonly #refused = new Map<string, number>();
  #begun: number[] = [];

  constructor(options: OnDemandOptions) {
    this.#options = options;
  }

  /** A client has requested this name. Never throws. */
  async wanted(name: string): Promise<void> {
    const { changes, clock, log } = this.#options;
    if (!isHostName(name)) return;
    const all = [...changes.config.certificates.values()];
    // A report of an earlier handshake may arrive after its creation.
    if (all.some(({ domains }) => domains.includes(name))) return;
    const template = all.find(
      (certificate) =>
        isTemplate(certificate) && hostsOf(certificate).some((host) => fits(host, name)),
    );
    if (template === undefined || this.#asking.has(name)) return;
    if (this.#asking.size >= MOST_ASKED_AT_ONCE || (this.#refused.get(name) ?? 0) > clock.now())
      return;
    this.#asking.add(name);
    try {
      const why =
        this.#overLimit(template) ?? (await refusal(template, name, changes.dialer.fetch));
      if (why === null) await this.#create(template, name);
      else {
        this.#remember(name);
        log.info("no on-demand certificate is issued for a name", { name, why });
      }
    } catch (error) {
      this.#remember(name);
      log.warn("an on-demand certificate could not be created", { name, error });
    } finally {
      this.#asking.delete(name);
    }
  }

  #overLimit(template: Certificate): string | null {
    const { changes, clock } = this.#options;
    const since = clock.now() - WINDOW_MS;
    this.#begun = this.#begun.filter((at) => at > since);
    if (this.#begun.length >= MOST_AT_ONCE)
      return `the limit of ${MOST_AT_ONCE} in ten minutes is reached`;
    const own = [...changes.config.certificates.values()].filter((one) => isMadeOf(template, one));
    return own.length >= MOST_OF_ONE
      ? `the limit of ${MOST_OF_ONE} for "${template.name}" is reached`
      : null;
  }

  async #create(template: Certificate, host: string): Promise<void> {
    const { changes, clock } = this.#options;
    this.#begun.push(clock.now());
    await changes.run({
      by: issuer,
      dryRun: false,
      mutate: (draft) => {
        const all = [...draft.config.certificates.values()];
        if (all.some(({ domains }) => domains.includes(host))) return;
        if (!draft.config.certificates.has(template.id)) return;
        const name = `${template.name} ${host}`.slice(0, 128);
        if (all.some((other) => other.name === name))
          throw new ApiError(409, `certificate "${name}" exists already`);
        const at = draft.stamp();
        draft.put("certificates", {
          ...template,
          ...materialOfNone,
          id: Bun.randomUUIDv7(),
          name,
          domains: [host],
          on_demand: null,
          tags: [TAG, tagOf(template)],
          description: "",
          created_at: at,
          updated_at: at,
        });
        draft.summary = `create certificate "${name}" on demand`;
      },
    });
  }

  #remember(name: string): void {
    if (this.#refused.size >= MOST_REMEMBERED) this.#refused.clear();
    this.#refused.set(name, this.#options.clock.now() + REFUSED_MS);
  }
}

const tagOf = ({ id }: Certificate) => `on-demand ${id}`;

/** Whether it was created on demand from the template. */
export const isMadeOf = (template: Certificate, { tags }: Certificate): boolean =>
  tags.includes(tagOf(template));

/** Clients may send anything; CAs issue for nothing else, and not for underscores (RFC 5280 section 4.2.1.6). */
const isHostName = (name: string) =>
  name.length <= 253 && /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.(?!$)|$)){2,}$/.test(name);

/** The wildcard matches exactly one label. */
const fits = (pattern: string, name: string) =>
  pattern === name || (pattern.startsWith("*.") && name.replace(/^[^.]+/, "*") === pattern);

/** Requests ask_url; null: the name is allowed. */
async function refusal(
  { on_demand }: Certificate,
  name: string,
  send: Fetch,
): Promise<string | null> {
  if (on_demand === null || on_demand.ask_url === "") return null;
  const url = new URL(on_demand.ask_url);
  url.searchParams.set("domain", name);
  const signal = AbortSignal.timeout(ASK_TIMEOUT_MS);
  const { status } = await send(url, { redirect: "manual", signal });
  return status === 200 ? null : `ask_url returned status ${status}`;
}
