// The one way out to servers that a configuration names: resolves a name, decides, and connects to what it decided on; knows no protocol.
import { lookup } from "node:dns/promises";
import { connect, isIP, type LookupFunction, type Socket } from "node:net";
import { connect as connectTls, type ConnectionOptions, type TLSSocket } from "node:tls";
import {
  type Destination,
  destinationProblem,
  type DestinationRules,
} from "../net/destinations.ts";

/** The gateway must not connect there. The message follows the name of the host. */
export class DestinationError extends Error {
  readonly code = "REFUSED_DESTINATION";
}

export type Fetch = (url: string | URL, init?: BunFetchRequestInit) => Promise<Response>;
export type TlsTo = ConnectionOptions & { readonly host: string; readonly port: number };

interface Server extends Destination {
  readonly port: number;
}

export interface DialerOptions {
  /** Asked for each decision. */
  readonly rules: () => DestinationRules;
  /** Default: the system's resolver. */
  readonly resolve?: (name: string) => Promise<readonly string[]>;
  /** Default: that of the process, with its proxy. */
  readonly fetch?: Fetch;
}

/** As long as Bun's own cache. */
const KEEP_MS = 30_000;
const MAX_NAMES = 1000;
/** IPv4 first: where IPv6 leads nowhere, every attempt takes its whole timeout. */
const systemAddresses = async (name: string): Promise<readonly string[]> =>
  (await lookup(name, { all: true, order: "ipv4first" })).map(({ address }) => address);

/** One for each thread; all have the same rules. */
export class Dialer {
  readonly #options: DialerOptions;
  readonly #names = new Map<
    string,
    { readonly found: Promise<readonly string[]>; until: number }
  >();

  constructor(options: DialerOptions) {
    this.#options = options;
  }

  /** The addresses to connect to, at least one: those of the name that are not refused. Rejects with a DestinationError. */
  async addressesOf({ host, port }: Server): Promise<readonly string[]> {
    const name = bare(host);
    this.#require({ host: name, port });
    if (isIP(name) !== 0) return [name];
    const found = await this.#resolve(name);
    const allowed = found.filter((each) => this.#problem({ host: each, port }) === null);
    // Rejects with the reason of the first.
    if (allowed.length === 0) this.#require({ host: found[0] ?? name, port });
    return allowed;
  }

  /**
   * Connects to an address that was decided on, whatever the name resolves to then; the name stays that of the Host header and of the
   * certificate. Follows no redirect, whose destination is not decided.
   */
  readonly fetch: Fetch = async (given, init = {}) => {
    const url = new URL(given);
    const host = bare(url.hostname);
    const send = this.#options.fetch ?? fetch;
    const server = { host, port: Number(url.port) || (url.protocol === "https:" ? 443 : 80) };
    const redirect = init.redirect === "error" ? "error" : "manual";
    const direct = { ...init, redirect } as const;
    if (this.#options.fetch === undefined && hasProxy) {
      // The proxy resolves the name, and often only it can.
      await this.addressesOf(server).catch(ifRefused);
      return await send(url, direct);
    }
    const addresses = await abortable(this.addressesOf(server), init.signal);
    if (isIP(host) !== 0) return await send(url, direct);
    const headers = new Headers(init.headers);
    if (!headers.has("host")) headers.set("host", url.host);
    const tls = url.protocol === "https:" ? { tls: { ...init.tls, serverName: host } } : {};
    for (const [index, address] of addresses.entries()) {
      const at = new URL(url);
      at.hostname = isIP(address) === 6 ? `[${address}]` : address;
      try {
        return await send(at, { ...direct, ...tls, headers });
      } catch (error) {
        this.#names.delete(host);
        if (index === addresses.length - 1 || !isUnconnected(error)) throw error;
      }
    }
    throw new Error("a name has no address");
  };

  /** Throws a DestinationError for an address; emits it for a name. */
  connect({ host, port }: Server): Socket {
    return connect({
      host: this.#require({ host: bare(host), port }),
      port,
      lookup: this.#lookup(port),
    });
  }

  /** The same with TLS. */
  connectTls(options: TlsTo): TLSSocket {
    const { host, port } = options;
    return connectTls({
      ...options,
      host: this.#require({ host: bare(host), port }),
      lookup: this.#lookup(port),
    });
  }

  /** For sockets of Node: they connect to what it calls back with. */
  #lookup(port: number): LookupFunction {
    return (host, options, done) => {
      this.addressesOf({ host, port }).then(
        (found) => {
          const list = found.map((address) => ({ address, family: isIP(address) }));
          if (options.all === true) done(null, list);
          else done(null, list[0]?.address ?? "", list[0]?.family);
        },
        (error: NodeJS.ErrnoException) => done(error, []),
      );
    };
  }

  #problem(destination: Destination): string | null {
    return destinationProblem(destination, this.#options.rules());
  }

  #require(destination: Destination): string {
    const problem = this.#problem(destination);
    if (problem !== null) throw new DestinationError(problem);
    return destination.host;
  }

  #resolve(name: string): Promise<readonly string[]> {
    const now = performance.now();
    const known = this.#names.get(name);
    if (known !== undefined && now < known.until) return known.found;
    if (this.#names.size >= MAX_NAMES) this.#names.clear();
    const found = (this.#options.resolve ?? systemAddresses)(name);
    this.#names.set(name, { found, until: now + KEEP_MS });
    found.catch(() => this.#names.delete(name));
    return found;
  }
}

const bare = (host: string) => host.replace(/^\[(.*)\]$/, "$1");

const hasProxy = ["http_proxy", "https_proxy", "all_proxy"].some(
  (name) => (process.env[name] ?? process.env[name.toUpperCase()] ?? "") !== "",
);

function ifRefused(error: unknown): void {
  if (error instanceof DestinationError) throw error;
}

/** Whether nothing was sent, so that another address can be tried. */
const isUnconnected = (error: unknown): boolean =>
  /^(?:ConnectionRefused|FailedToOpenSocket|ECONNREFUSED|ENETUNREACH|EHOSTUNREACH|EADDRNOTAVAIL)$/.test(
    String((error as { readonly code?: unknown }).code),
  );

/** A lookup cannot be cancelled. */
async function abortable<T>(work: Promise<T>, signal: AbortSignal | null | undefined): Promise<T> {
  if (!signal) return await work;
  signal.throwIfAborted();
  const { promise, reject } = Promise.withResolvers<never>();
  const abort = () => reject(signal.reason);
  signal.addEventListener("abort", abort, { once: true });
  try {
    return await Promise.race([work, promise]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}
