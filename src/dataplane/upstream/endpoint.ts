// How to connect to a target, as plain data; knows no socket.
import type { Addresses } from "../names/addresses.ts";

export interface Endpoint {
  /** The target's name or address; also the name to verify over TLS, unless `serverName` is set. */
  readonly hostname: string;
  /** 0: the port of the resolved address. */
  readonly port: number;
  readonly addresses: Addresses;
  /** Null for plain TCP. */
  readonly tls: {
    readonly rejectUnauthorized: boolean;
    readonly ca?: string;
    readonly serverName?: string;
    readonly minVersion: number;
    /** Client certificate for the target: PEM chain and key. */
    readonly cert?: string;
    readonly key?: string;
    /** The protocol that the target must select by ALPN; none: no ALPN is sent. */
    readonly alpn?: "h2";
  } | null;
}
