// Resolves a name with the hosts file, name servers and the system; caches nothing and knows no target.
import { promises as dns, type SrvRecord } from "node:dns";
import { HostsFile } from "./hosts-file.ts";

/** The addresses of a name, or those of its SRV records. */
export interface NameQuestion {
  readonly kind: "dns" | "srv";
  readonly name: string;
}

export interface FoundAddress {
  readonly host: string;
  /** From an SRV record, else 0. */
  readonly port: number;
  /** At least 1. */
  readonly weight: number;
  /** Lowest first. */
  readonly priority: number;
}

export interface Found {
  /** At least one; no duplicates. */
  readonly addresses: readonly FoundAddress[];
  readonly ttlSeconds: number;
}

export interface NameResolverOptions {
  /** `address` or `address:port` of the name servers to ask instead of the system's; empty: the system's. */
  readonly servers: readonly string[];
  readonly hostsFile?: string;
}

/** For answers without a TTL: the hosts file, the system resolver, SRV records. */
const SYSTEM_TTL_SECONDS = 30;
/** For each of two tries per server. */
const SERVER_TIMEOUT_MS = 2000;
/** SRV records used of one name. */
const MAX_SRV_RECORDS = 64;

interface Hosts {
  readonly hosts: readonly string[];
  readonly ttlSeconds: number;
}

/** Concurrent lookups of one name share one query. */
export class NameResolver {
  readonly #resolver = new dns.Resolver({ timeout: SERVER_TIMEOUT_MS, tries: 2 });
  readonly #hostsFile: HostsFile;
  readonly #asksSystem: boolean;
  readonly #open = new Map<string, Promise<Found>>();

  constructor({ servers, hostsFile = "/etc/hosts" }: NameResolverOptions) {
    this.#hostsFile = new HostsFile(hostsFile);
    this.#asksSystem = servers.length === 0;
    if (servers.length > 0) this.#resolver.setServers(servers);
  }

  /** Rejects when there is no address. */
  find(question: NameQuestion): Promise<Found> {
    const key = `${question.kind} ${question.name}`;
    const open = this.#open.get(key);
    if (open !== undefined) return open;
    const search = question.kind === "srv" ? this.#srv(question.name) : this.#dns(question.name);
    const begun = search.finally(() => this.#open.delete(key));
    this.#open.set(key, begun);
    return begun;
  }

  async #dns(name: string): Promise<Found> {
    const { hosts, ttlSeconds } = await this.#hosts(name);
    return {
      addresses: hosts.map((host) => ({ host, port: 0, weight: 1, priority: 0 })),
      ttlSeconds,
    };
  }

  async #srv(name: string): Promise<Found> {
    const records = (await this.#resolver.resolveSrv(name)).slice(0, MAX_SRV_RECORDS);
    const found = await Promise.allSettled(records.map((record) => this.#hosts(record.name)));
    const addresses = new Map<string, FoundAddress>();
    let ttlSeconds = SYSTEM_TTL_SECONDS;
    for (const [index, outcome] of found.entries()) {
      const record = records[index];
      if (record === undefined || outcome.status === "rejected") continue;
      ttlSeconds = Math.min(ttlSeconds, outcome.value.ttlSeconds);
      for (const address of addressesOfRecord(record, outcome.value.hosts)) {
        const key = `${address.host} ${address.port}`;
        if (!addresses.has(key)) addresses.set(key, address);
      }
    }
    const failure = found.find((outcome) => outcome.status === "rejected");
    if (addresses.size === 0) throw failure?.reason ?? new Error(`${name} has no SRV records`);
    return { addresses: [...addresses.values()], ttlSeconds };
  }

  async #hosts(name: string): Promise<Hosts> {
    const listed = await this.#hostsFile.addressesOf(name);
    if (listed.length > 0) return { hosts: listed, ttlSeconds: SYSTEM_TTL_SECONDS };
    // RFC 6761 section 6.3: localhost never goes to a name server.
    if (/(^|\.)localhost$/.test(name))
      return { hosts: ["127.0.0.1", "::1"], ttlSeconds: SYSTEM_TTL_SECONDS };
    const [four, six] = await Promise.allSettled([
      this.#resolver.resolve4(name, { ttl: true }),
      this.#resolver.resolve6(name, { ttl: true }),
    ]);
    const records = [four, six].flatMap((answer) =>
      answer.status === "fulfilled" ? answer.value : [],
    );
    if (records.length > 0)
      return {
        hosts: [...new Set(records.map(({ address }) => address))],
        ttlSeconds: Math.min(...records.map(({ ttl }) => ttl)),
      };
    if (!this.#asksSystem) throw four.status === "rejected" ? four.reason : noAddress(name);
    // The system resolver knows search domains, mDNS and other configured sources.
    const known = await dns.lookup(name, { all: true });
    if (known.length === 0) throw noAddress(name);
    return {
      hosts: [...new Set(known.map(({ address }) => address))],
      ttlSeconds: SYSTEM_TTL_SECONDS,
    };
  }
}

const noAddress = (name: string) => new Error(`${name} has no address`);

/** The addresses of a record's host share its weight, so that a host with two does not get twice as much. */
function addressesOfRecord(
  { port, weight, priority }: SrvRecord,
  hosts: readonly string[],
): FoundAddress[] {
  return hosts.map((host) => ({
    host,
    port,
    weight: Math.max(1, weight) / hosts.length,
    priority,
  }));
}
