// Finds the addresses of a name: hosts file, name servers, the system; remembers nothing and knows no target.
import { promises as dns, type SrvRecord } from "node:dns";
import { isMetadataAddress } from "../../net/metadata-network.ts";
import { HostsFile } from "./hosts-file.ts";

/** What is asked: the addresses of a name, or the places that its SRV records name. */
export interface NameQuestion {
  readonly kind: "dns" | "srv";
  readonly name: string;
}

export interface FoundAddress {
  readonly host: string;
  /** 0 unless an SRV record says. */
  readonly port: number;
  /** At least 1. */
  readonly weight: number;
  /** The lowest is used first. */
  readonly priority: number;
}

export interface Found {
  /** At least one; none twice. */
  readonly addresses: readonly FoundAddress[];
  readonly ttlSeconds: number;
}

export interface NameResolverOptions {
  /** `address` or `address:port` of the name servers to ask instead of the system's; empty: the system's. */
  readonly servers: readonly string[];
  readonly hostsFile?: string;
}

/** Of what says nothing of its own life: the hosts file, the system's answers, SRV records. */
const SYSTEM_TTL_SECONDS = 30;
/** A server gets this long, and a second chance. */
const SERVER_TIMEOUT_MS = 2000;
/** Hosts of one name's SRV records; more are left out. */
const MAX_SRV_RECORDS = 64;

interface Hosts {
  readonly hosts: readonly string[];
  readonly ttlSeconds: number;
}

/** Questions that are under way are not asked twice. */
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
      for (const place of placesOf(record, outcome.value.hosts)) {
        const key = `${place.host} ${place.port}`;
        if (!addresses.has(key)) addresses.set(key, place);
      }
    }
    const failure = found.find((outcome) => outcome.status === "rejected");
    if (addresses.size === 0) throw failure?.reason ?? new Error(`${name} has no SRV records`);
    return { addresses: [...addresses.values()], ttlSeconds };
  }

  /** The owner of a name chooses its addresses: without those that no target may have. */
  async #hosts(name: string): Promise<Hosts> {
    const { hosts, ttlSeconds } = await this.#lookUp(name);
    const allowed = hosts.filter((host) => !isMetadataAddress(host));
    if (allowed.length === 0) throw new Error(`${name} has only link-local addresses`);
    return { hosts: allowed, ttlSeconds };
  }

  async #lookUp(name: string): Promise<Hosts> {
    const listed = await this.#hostsFile.addressesOf(name);
    if (listed.length > 0) return { hosts: listed, ttlSeconds: SYSTEM_TTL_SECONDS };
    // RFC 6761 section 6.3: no name server is asked about the machine itself.
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
    // Search domains of the machine, mDNS, and whatever else it was told to ask.
    const known = await dns.lookup(name, { all: true });
    if (known.length === 0) throw noAddress(name);
    return {
      hosts: [...new Set(known.map(({ address }) => address))],
      ttlSeconds: SYSTEM_TTL_SECONDS,
    };
  }
}

const noAddress = (name: string) => new Error(`${name} has no address`);

/** A record's weight is shared by the addresses of its host, so that a host with two does not get twice as much. */
function placesOf({ port, weight, priority }: SrvRecord, hosts: readonly string[]): FoundAddress[] {
  return hosts.map((host) => ({
    host,
    port,
    weight: Math.max(1, weight) / hosts.length,
    priority,
  }));
}
