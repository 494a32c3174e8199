// A port of a stream route where TLS ends, with a certificate for each name; knows no target.
import type { Arrival, Ticket, Verdict } from "../listener/arriving-connection.ts";
import type { CertificateIndex } from "../listener/certificate-index.ts";
import type { ClientSocket, SocketOwner } from "../listener/carried-connection.ts";
import { type ConnectionFacts, factsOf } from "../listener/connection-facts.ts";
import { Front } from "../listener/front.ts";
import { TlsEnds } from "../listener/tls-ends.ts";
import { routeOfName, type StreamRouteRuntime } from "./stream-runtime.ts";

/** Whether something of the client must be read before TLS ends: the name that chooses, or a PROXY header. */
export const needsFront = ({ plan, route }: StreamRouteRuntime): boolean =>
  plan.tls !== null &&
  (route.certificate_id === null || route.proxy_protocol_in || route.sni.length > 0);

export interface TerminatingPortOptions {
  readonly address: string;
  readonly port: number;
  readonly expectsProxy: boolean;
  /** The route that is served at the port now; null when there is none. */
  route(): StreamRouteRuntime | null;
  certificates(): CertificateIndex | null;
  /** Milliseconds. */
  prereadTimeout(): number;
  /** Takes over a connection whose TLS has ended. */
  accepted(socket: ClientSocket, facts: ConnectionFacts): SocketOwner;
  refused(reason: string, address: string): void;
}

/** Limits are the route's, and counted where it is served. */
const freeTicket: Ticket = { claim: () => null, leave() {} };

export class TerminatingPort {
  readonly #options: TerminatingPortOptions;
  readonly #front: Front;
  readonly #ends: TlsEnds;

  /** Binds at once; throws the system's error. */
  constructor(options: TerminatingPortOptions) {
    this.#options = options;
    const { accepted, refused } = options;
    this.#ends = new TlsEnds({
      minVersion: "1.2",
      protocols: [],
      clientAuth: null,
      accepted,
      refused,
    });
    this.#front = new Front({
      address: options.address,
      port: options.port,
      trusts: options.expectsProxy ? (address) => options.route()?.trusts(address) ?? false : null,
      readsHello: true,
      prereadTimeout: options.prereadTimeout,
      admit: () => freeTicket,
      settle: (arrival) => this.#settle(arrival),
      refused,
    });
  }

  /** Accepts no more; connections go on. Resolves when the last is gone. */
  async stop(): Promise<void> {
    await this.#front.stop();
    this.#ends.stop();
  }

  /** Closes everything, once what is on its way has got out. */
  close(): Promise<void> {
    return this.#front.close();
  }

  /** Call it when certificates have changed: no server stays that presents one of the past. */
  update(): void {
    const names = this.#options.certificates();
    const fallback = this.#options.route()?.plan.tls;
    this.#ends.keep((certificate) => certificate === fallback || names?.has(certificate) === true);
  }

  #settle(arrival: Arrival): Verdict {
    const route = this.#options.route();
    const name = arrival.hello?.serverName ?? null;
    if (route?.plan.tls == null) return { refusal: "no stream route is there any more" };
    if (routeOfName([route], name) === null)
      return { refusal: "no stream route takes the TLS name" };
    const own = route.route.certificate_id === null ? this.#options.certificates() : null;
    const end = this.#ends.find(own?.find(name) ?? route.plan.tls);
    return this.#front.carry(arrival, end, factsOf(arrival));
  }
}
