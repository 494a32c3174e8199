// Where connections to a target lead, as plain data; knows no socket.
import type { Addresses } from "../names/addresses.ts";

/** Where a connection leads. */
export interface Endpoint {
  /** The target's name or address; over TLS the name that its certificate must be for, unless another one is given. */
  readonly hostname: string;
  /** 0: as the addresses say. */
  readonly port: number;
  readonly addresses: Addresses;
  /** Null for plain TCP. */
  readonly tls: {
    readonly rejectUnauthorized: boolean;
    readonly ca?: string;
    readonly serverName?: string;
    readonly minVersion: number;
    /** PEM chain and key to show to the target. */
    readonly cert?: string;
    readonly key?: string;
  } | null;
}
