// Checks the requirements of an order beforehand: addresses, port 80, CAA, the DNS zone; reports the results as texts.
import type { Dialer } from "../dialer/dialer.ts";
import type { ServerAddress } from "../pdk/kit.ts";
import { isIP } from "node:net";
import { networkInterfaces } from "node:os";
import { type Static, Type as t } from "@sinclair/typebox";
import { PRIVATE_NETWORKS } from "../model/local-ca.ts";
import type { AcmeAccount } from "../model/acme-account.ts";
import { challengeTypes, type ChallengeType } from "../model/certificate.ts";
import { decode } from "../model/decode.ts";
import type { DnsProvider } from "../model/dns-provider.ts";
import { invalid } from "../model/error.ts";
import type { GatewayConfig } from "../model/gateway-config.ts";
import { compileCidrs } from "../net/cidr.ts";
import { needsAdmin } from "../control/admin-dns-providers.ts";
import { isPublicName } from "./domains.ts";
import { resolveKey } from "../control/key.ts";
import { type Actor, roleOf } from "../control/principal.ts";
import { caaRefusal } from "../acme/caa.ts";
import { type DnsParts, putUpRecord } from "../acme/dns-proof.ts";
import { failureText } from "../acme/dns/failure.ts";
import type { DnsLookup } from "../acme/dns/lookup.ts";
import type { Check, CheckStatus } from "../acme/dns/trial.ts";
import { probe, type ShowProbe } from "../acme/self-probe.ts";
import { asHostName } from "../model/host-name.ts";

const domain = t.String({
  maxLength: 253,
  pattern:
    "^(?:\\*\\.)?(?:[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9])?\\.)+[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9])?$",
  errorMessage: "must be a host name with a dot, or one behind *.",
  description: "Host name",
});

/** The body of a preflight. */
export const preflightInput = t.Object(
  {
    domains: t.Array(asHostName(domain), {
      minItems: 1,
      maxItems: 20,
      description: "Names of the planned certificate",
    }),
    challenge: t.Optional(
      t.Unsafe<ChallengeType>({
        type: "string",
        enum: [...challengeTypes],
        description: "Default: dns-01 if a wildcard or dns_provider_id is given, else http-01",
      }),
    ),
    dns_provider_id: t.Optional(
      t.String({
        minLength: 1,
        maxLength: 128,
        description:
          "ID or name of the DNS provider; default: the one with the longest matching zone",
      }),
    ),
  },
  { additionalProperties: false, title: "Preflight" },
);

export interface DomainCheck extends Check {
  readonly domain: string;
}

export interface PreflightReport {
  /** Whether all checks passed. */
  readonly ok: boolean;
  readonly challenge: ChallengeType;
  readonly checks: readonly DomainCheck[];
}

export interface PreflightOptions {
  readonly config: () => GatewayConfig;
  readonly lookup: DnsLookup;
  readonly dns: DnsParts;
  /** Identities of a directory's CA in CAA records; empty: unknown. */
  readonly dialer: Dialer;
  readonly identitiesOf: (account: AcmeAccount) => Promise<readonly string[]>;
  /** Null: no workers serve. */
  readonly show: ShowProbe | null;
  /** Ports that CAs connect to; default: 80 and 443. */
  readonly ports?: { readonly http: number; readonly tls: number };
  /** Default: those of the machine's interfaces. */
  readonly ownAddresses?: () => readonly string[];
}

/** A client waits for the response. */
const TIMEOUT_MS = 60_000;
const LONGEST_WAIT_MS = 20_000;
const CONNECT_MS = 5000;

interface Asked {
  /** Without `*.`. */
  readonly name: string;
  readonly domain: string;
  readonly isWildcard: boolean;
  readonly challenge: ChallengeType;
  readonly provider: DnsProvider | null;
  readonly by: Actor;
}

type Found = readonly [CheckStatus, string];

export class Preflight {
  readonly #options: PreflightOptions;

  constructor(options: PreflightOptions) {
    this.#options = options;
  }

  /** Never throws for problems with the names: the report holds them. */
  async check(body: unknown, by: Actor): Promise<PreflightReport> {
    const input = decode(preflightInput, body);
    const challenge = challengeOf(input);
    const provider = this.#providerOf(input.dns_provider_id);
    const address = input.domains.findIndex((each) => isIP(each) !== 0);
    if (address !== -1) throw invalid(`domains[${address}]`, "must be a name, not an address");
    const domains = [...new Set(input.domains.map((each) => each.toLowerCase()))];
    const found = await Promise.all(
      domains.map((each) => {
        const isWildcard = each.startsWith("*.");
        const name = isWildcard ? each.slice(2) : each;
        return this.#checkDomain({ name, domain: each, isWildcard, challenge, provider, by });
      }),
    );
    const checks = found.flat();
    return { ok: checks.every(({ status }) => status !== "failed"), challenge, checks };
  }

  #providerOf(key: string | undefined): DnsProvider | null {
    if (key === undefined) return null;
    const { dns_providers: providers } = this.#options.config();
    const id = resolveKey(providers, key, { path: "dns_provider_id", word: "DNS provider" });
    return providers.get(id) ?? null;
  }

  async #checkDomain(asked: Asked): Promise<DomainCheck[]> {
    const { isWildcard, challenge, domain } = asked;
    const addresses = isWildcard ? null : await this.#addressesOf(asked);
    const checks: [string, () => Promise<Found>][] = [];
    if (addresses !== null) checks.push(["address", () => this.#checkAddress(asked, addresses)]);
    if (isWildcard && challenge !== "dns-01")
      checks.push([
        "challenge",
        () => Promise.resolve(["failed", "A wildcard needs the challenge dns-01"]),
      ]);
    if (Array.isArray(addresses) && challenge === "http-01")
      checks.push(["port_80", () => this.#checkPort80(asked, addresses)]);
    if (Array.isArray(addresses) && challenge === "tls-alpn-01")
      checks.push(["port_443", () => this.#checkPort443(addresses)]);
    checks.push(["caa", () => this.#checkCaa(asked)]);
    if (challenge === "dns-01") checks.push(["zone", () => this.#checkZone(asked)]);
    return await Promise.all(
      checks.map(async ([name, run]) => {
        const [status, message] = await run().catch((error: unknown): Found => [
          "failed",
          failureText(error),
        ]);
        return { domain, name, status, message };
      }),
    );
  }

  /** A text for unknown results. */
  async #addressesOf({ name }: Asked): Promise<readonly string[] | string> {
    return await this.#options.lookup.addresses(name).catch(failureText);
  }

  #checkAddress({ name, challenge }: Asked, addresses: readonly string[] | string): Promise<Found> {
    // dns-01 does not need an address.
    const bad = challenge === "dns-01" ? "warning" : "failed";
    if (typeof addresses === "string") return Promise.resolve([bad, addresses]);
    if (addresses.length === 0)
      return Promise.resolve([
        bad,
        `${name} has no address: create an A or AAAA record for this gateway`,
      ]);
    const own = (this.#options.ownAddresses ?? interfaceAddresses)();
    const foreign = addresses.filter((address) => !own.includes(address));
    const list = addresses.join(", ");
    // A public name that a local name server resolves to a private address.
    const isAsked = challenge !== "dns-01" && isPublicName(name);
    const inner = isAsked ? addresses.filter(isUnreachable) : [];
    if (foreign.length === 0 && inner.length > 0)
      return Promise.resolve([
        "warning",
        `${name} resolves to this gateway: ${list}. A CA on the Internet cannot connect to ${inner.join(", ")}; use the challenge dns-01`,
      ]);
    if (foreign.length === 0)
      return Promise.resolve(["ok", `${name} resolves to this gateway: ${list}`]);
    return Promise.resolve([
      "warning",
      `${name} resolves to ${list}, and ${foreign.join(", ")} is no address of this machine: that only works behind a router or load balancer that forwards connections to it`,
    ]);
  }

  /** A self-probe proves more than a comparison of addresses. */
  async #checkPort80({ name }: Asked, addresses: readonly string[]): Promise<Found> {
    const { dialer, show, ports } = this.#options;
    if (addresses.length === 0) return ["failed", "There is no address to connect to"];
    if (show === null) return ["warning", "Not tested: no worker serves"];
    const port = ports?.http ?? 80;
    const proof = { token: `preflight-${crypto.randomUUID()}`, answer: crypto.randomUUID() };
    const takeDown = await show(proof);
    try {
      const outcomes = await Promise.all(
        addresses
          .slice(0, 4)
          .map((address) => probe(proof, { name, address, port, fetch: dialer.fetch })),
      );
      const other = outcomes.find((outcome) => outcome.kind === "other");
      if (other !== undefined) return ["failed", other.message];
      const unclear = outcomes.find((outcome) => outcome.kind === "unclear");
      if (unclear === undefined) return ["ok", `Port ${port} of ${name} reaches this gateway`];
      return [
        "warning",
        `${unclear.message}; this proves little behind a router without hairpin NAT`,
      ];
    } finally {
      takeDown();
    }
  }

  async #checkPort443(addresses: readonly string[]): Promise<Found> {
    const { dialer, ports } = this.#options;
    const port = ports?.tls ?? 443;
    if (addresses.length === 0) return ["failed", "There is no address to connect to"];
    const open = await Promise.all(
      addresses.slice(0, 4).map((address) => accepts({ host: address, port }, dialer)),
    );
    const closed = addresses.filter((_, index) => open[index] === false);
    return closed.length === 0
      ? ["ok", `Port ${port} accepts connections; whether they reach this gateway is unknown`]
      : ["warning", `${closed.join(", ")}, port ${port}, accepts no connection from here`];
  }

  async #checkCaa({ name, isWildcard, challenge }: Asked): Promise<Found> {
    const { config, lookup, identitiesOf } = this.#options;
    const { at, records } = await lookup.caa(name);
    if (records.length === 0)
      return ["ok", `No CAA record of ${name} or above restricts who may issue`];
    const accounts = [...config().acme_accounts.values()].filter((account) => account.enabled);
    if (accounts.length === 0)
      return [
        "warning",
        `There are CAA records at ${at}, but no ACME account to compare them with`,
      ];
    const refusals: string[] = [];
    for (const account of accounts) {
      const identities = await identitiesOf(account);
      const host = URL.parse(account.directory_url)?.host ?? "";
      const refusal = caaRefusal({ records, isWildcard, challenge, identities });
      if (refusal === null) return ["ok", `The CAA records at ${at} permit ${host} to issue`];
      if (identities.length === 0)
        return [
          "warning",
          `There are CAA records at ${at}, but the identity of ${host} in them is unknown: ${refusal}`,
        ];
      refusals.push(`${host} may not issue, since ${refusal}`);
    }
    return ["failed", `CAA records at ${at}: ${refusals.join("; ")}`];
  }

  async #checkZone({ name, provider, by }: Asked): Promise<Found> {
    const { config, dns } = this.#options;
    const isAdmin = roleOf(by) === "admin";
    if (provider !== null && needsAdmin(provider) && !isAdmin)
      return ["warning", `Not tested: only an admin may run the program of "${provider.name}"`];
    const all = [...config().dns_providers.values()].filter(
      (each) => each.enabled && (isAdmin || !needsAdmin(each)),
    );
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const bounded: DnsParts = {
      ...dns,
      waitForPropagation: (record, { timeoutMs }) =>
        dns.waitForPropagation(record, { timeoutMs: Math.min(timeoutMs, LONGEST_WAIT_MS), signal }),
    };
    const options = {
      providers: provider === null ? all : [provider],
      isChosen: provider !== null,
      signal,
    };
    const text = `sluice-preflight-${crypto.randomUUID()}`;
    try {
      const proof = await putUpRecord({ name, text }, options, bounded);
      const seen = await proof.appears().then(
        () => null,
        (error: unknown) => wordsOf(error),
      );
      await proof.takeDown();
      if (seen !== null) return ["warning", `The record was written, but: ${seen}`];
      return ["ok", `A TXT record for ${name} was written, found at the name servers and deleted`];
    } catch (error) {
      return ["failed", wordsOf(error)];
    }
  }
}

/** Errors of providers have readable messages. */
const wordsOf = (error: unknown) => (error instanceof Error ? error.message : "unexpected");

function challengeOf({
  domains,
  challenge,
  dns_provider_id,
}: Static<typeof preflightInput>): ChallengeType {
  if (challenge !== undefined && challenge !== "dns-01" && dns_provider_id !== undefined)
    throw invalid("dns_provider_id", "is only valid with the challenge dns-01");
  if (challenge !== undefined) return challenge;
  const isDns = dns_provider_id !== undefined || domains.some((each) => each.startsWith("*."));
  return isDns ? "dns-01" : "http-01";
}

/** With the shared address space of carriers (RFC 6598). */
const isUnreachable = compileCidrs([...PRIVATE_NETWORKS, "100.64.0.0/10"]);

const interfaceAddresses = () =>
  Object.values(networkInterfaces()).flatMap((entries) =>
    (entries ?? []).map(({ address }) => address.replace(/%.*$/, "")),
  );

const accepts = (to: ServerAddress, dialer: Dialer): Promise<boolean> =>
  new Promise<boolean>((resolve) => {
    const socket = dialer.connect(to);
    socket.setTimeout(CONNECT_MS);
    const settle = (isOpen: boolean) => {
      socket.destroy();
      resolve(isOpen);
    };
    socket.once("connect", () => settle(true));
    socket.once("timeout", () => settle(false));
    socket.once("error", () => settle(false));
    // The address is refused.
  }).catch(() => false);
