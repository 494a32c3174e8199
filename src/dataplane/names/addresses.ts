// The addresses of a target: a fixed one, or those that its name resolves to; knows no connection and no name service.

/** One address to connect to. The same object as long as the name resolves to it. */
export interface Address {
  /** IP address; "" for a unix socket. */
  readonly host: string;
  /** From an SRV record; 0: the endpoint's. */
  readonly port: number;
  /** Path of a unix socket. */
  readonly unix: string | null;
}

/** The addresses of one target. */
export interface Addresses {
  /** Known addresses. */
  readonly size: number;
  /** Changes whenever an address is added or removed. */
  readonly version: number;
  /** Whether the address never changes. */
  readonly isFixed: boolean;
  /** Whether the name still resolves to the address. */
  has(address: Address): boolean;
  /** The next address that was not tried; null: none is left. */
  next(tried: ReadonlySet<Address> | null): Address | null;
  /** Deprioritizes an address that accepted no connection: for a while `next` returns it last. */
  failed(address: Address): void;
  /**
   * Calls `listener` once, at the end of the lookup under way. Returns a function that unsubscribes; null when no address is
   * known and the last lookup failed a moment ago.
   */
  whenFound(listener: () => void): (() => void) | null;
  /** Looks the name up again once its TTL has passed; call about once a second. `now` in the worker's milliseconds. */
  sweep(now: number): void;
  /** A new version of the service is active: `static` names are looked up again. */
  renew(): void;
  /** Ends all lookups. */
  close(): void;
  /** Part of the pool's key (PoolRegistry). */
  toJSON(): string;
}

/** A literal address or a unix socket. */
export class FixedAddress implements Addresses {
  readonly size = 1;
  readonly version = 0;
  readonly isFixed = true;
  readonly #address: Address;

  constructor(address: Partial<Address>) {
    this.#address = { host: "", port: 0, unix: null, ...address };
  }

  has(): boolean {
    return true;
  }

  next(tried: ReadonlySet<Address> | null): Address | null {
    return tried === null ? this.#address : null;
  }

  failed(): void {}

  whenFound(): null {
    return null;
  }

  sweep(): void {}

  renew(): void {}

  close(): void {}

  toJSON(): string {
    return this.#address.unix === null ? this.#address.host : `unix:${this.#address.unix}`;
  }
}
