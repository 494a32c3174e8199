// Where a target is found: one fixed place, or the changing addresses of a name; knows no connection and no name service.

/** One place that a connection can be made to. The same object as long as the place is known. */
export interface Address {
  /** IP address; "" for a unix socket. */
  readonly host: string;
  /** From an SRV record; 0: the endpoint's. */
  readonly port: number;
  /** Path of a unix socket. */
  readonly unix: string | null;
}

/** The places of one target. */
export interface Addresses {
  /** How many are known. */
  readonly size: number;
  /** Changes whenever a place comes or goes. */
  readonly version: number;
  /** Whether that never happens. */
  readonly isFixed: boolean;
  /** Whether it still is one of them. */
  has(address: Address): boolean;
  /** Whose turn it is among those that were not tried; null: there is none. */
  next(tried: ReadonlySet<Address> | null): Address | null;
  /** Sets one that did not accept a connection aside for a while: it is taken last. */
  failed(address: Address): void;
  /**
   * Calls `listener` once, when the search that is under way has ended. Returns what takes that back; null when nothing is
   * known and the last search failed a moment ago, so that waiting is no use.
   */
  whenFound(listener: () => void): (() => void) | null;
  /** Looks the name up again when it is time; call about once a second. `now` in the worker's milliseconds. */
  sweep(now: number): void;
  /** A new version of the service begins: what is looked up once for each is looked up again. */
  renew(): void;
  /** Nobody needs them any more. */
  close(): void;
  /** Endpoints are told apart by their JSON. */
  toJSON(): string;
}

/** A literal address or a unix socket: costs nothing. */
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
