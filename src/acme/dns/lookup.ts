// DNS queries to the system's name servers or those of a zone; caches nothing.
import type { CaaRecord } from "node:dns";
import { Resolver } from "node:dns/promises";
import { isIP } from "node:net";
import { DnsError } from "./failure.ts";
import { suffixesOf } from "./names.ts";

const TIMEOUT_MS = 3000;
const TRIES = 2;
/** Queried name servers of a zone, at most. */
const MAX_SERVERS = 8;
/** No such name or record, or a server without support for the query. */
const NOTHING: ReadonlySet<string> = new Set(["ENODATA", "ENOTFOUND", "ENOTIMP"]);

/** A name server of a zone. */
export interface NameServer {
  readonly name: string;
  /** `address` or `address:port`. */
  readonly addresses: readonly string[];
}

export class DnsLookup {
  readonly #servers: readonly string[];

  /** `address` or `address:port` of the servers to query; empty: the system's. */
  constructor(servers: readonly string[]) {
    this.#servers = servers;
  }

  /** Empty when there are none; throws a DnsError without a response. `servers`: overrides the configured ones. */
  async txt(name: string, servers?: readonly string[]): Promise<readonly string[]> {
    const records = await this.#ask(`TXT of ${name}`, (from) => from.resolveTxt(name), servers);
    return (records ?? []).map((parts) => parts.join(""));
  }

  async cname(name: string): Promise<string | null> {
    const records = await this.#ask(`CNAME of ${name}`, (from) => from.resolveCname(name));
    return records?.[0] ?? null;
  }

  /** IPv4 and IPv6. */
  async addresses(name: string): Promise<readonly string[]> {
    const [four, six] = await Promise.all([
      this.#ask(`address of ${name}`, (from) => from.resolve4(name)),
      this.#ask(`address of ${name}`, (from) => from.resolve6(name)),
    ]);
    return [...(four ?? []), ...(six ?? [])];
  }

  /** The relevant records: of the name itself, else of its closest parent that has some (RFC 8659 section 3). */
  async caa(
    name: string,
  ): Promise<{ readonly at: string; readonly records: readonly CaaRecord[] }> {
    for (const at of suffixesOf(name, 1)) {
      const records = await this.#ask(`CAA of ${at}`, (from) => from.resolveCaa(at));
      if (records !== null && records.length > 0) return { at, records };
    }
    return { at: name, records: [] };
  }

  /** The name servers of the name's zone; null when unknown. */
  async serversOf(name: string): Promise<readonly NameServer[] | null> {
    for (const zone of suffixesOf(name, 1)) {
      const names = await this.#ask(`NS of ${zone}`, (from) => from.resolveNs(zone));
      if (names === null || names.length === 0) continue;
      const servers = await Promise.all(
        names
          .toSorted()
          .slice(0, MAX_SERVERS)
          .map(async (server) => ({ name: server, addresses: await this.#addressesOf(server) })),
      );
      const known = servers.filter(({ addresses }) => addresses.length > 0);
      return known.length === 0 ? null : known;
    }
    return null;
  }

  async #addressesOf(server: string): Promise<readonly string[]> {
    try {
      return (await this.addresses(server)).map((address) => this.#withPort(address));
    } catch (error) {
      if (!(error instanceof DnsError)) throw error;
      return [];
    }
  }

  /** A configured server with a port other than 53 also serves its zones there. */
  #withPort(address: string): string {
    const host = isIP(address) === 6 ? `[${address}]` : address;
    return this.#servers.find((server) => server.startsWith(`${host}:`)) ?? address;
  }

  /** Null when there is no such name or no such record. */
  async #ask<T>(
    what: string,
    question: (from: Resolver) => Promise<T>,
    servers: readonly string[] = this.#servers,
  ): Promise<T | null> {
    // A new resolver each time: it would cache answers, and the records have just changed.
    const from = new Resolver({ timeout: TIMEOUT_MS, tries: TRIES });
    if (servers.length > 0) from.setServers(servers);
    try {
      return await question(from);
    } catch (error) {
      const { code } = error as { readonly code?: string };
      if (code !== undefined && NOTHING.has(code)) return null;
      throw new DnsError(`no name server returned the ${what} (${code ?? "unknown reason"})`);
    }
  }
}
