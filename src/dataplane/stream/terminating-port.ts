// A stream route's port that terminates TLS with a certificate for each server name; knows no target.
import type { Preread, ConnectionSlot, AcceptDecision } from "../listener/pending-connection.ts";
import type { CertificateIndex } from "../listener/certificate-index.ts";
import type { ClientSocket, SocketOwner } from "../listener/loopback-tunnel.ts";
import { type ConnectionInfo, connectionInfo } from "../listener/connection-info.ts";
import { Acceptor } from "../listener/acceptor.ts";
import { TlsTerminators } from "../listener/tls-terminators.ts";
import { routeOfName, type StreamRouteRuntime } from "./stream-runtime.ts";

/** Whether the gateway must read the client's first bytes before TLS: the server name or a PROXY header. */
export const needsAcceptor = ({ plan, route }: StreamRouteRuntime): boolean =>
  plan.tls !== null &&
  (route.certificate_id === null || route.proxy_protocol_in || route.sni.length > 0);

export interface TerminatingPortOptions {
  readonly address: string;
  readonly port: number;
  readonly expectsProxy: boolean;
  /** The live version's route at the port; null when there is none. */
  route(): StreamRouteRuntime | null;
  certificates(): CertificateIndex | null;
  /** Milliseconds. */
  prereadTimeout(): number;
  /** Takes over a connection after its TLS handshake. */
  accepted(socket: ClientSocket, info: ConnectionInfo): SocketOwner;
  refused(reason: string, address: string): void;
}

/** The connection limits are those of the route; Streams counts them. */
const UNCOUNTED: ConnectionSlot = { claim: () => null, release() {} };

export class TerminatingPort {
  readonly #options: TerminatingPortOptions;
  readonly #acceptor: Acceptor;
  readonly #terminators: TlsTerminators;

  /** Binds at once; throws the system's error. */
  constructor(options: TerminatingPortOptions) {
    this.#options = options;
    const { accepted, refused } = options;
    this.#terminators = new TlsTerminators({
      minVersion: "1.2",
      protocols: [],
      clientAuth: null,
      accepted,
      refused,
    });
    this.#acceptor = new Acceptor({
      address: options.address,
      port: options.port,
      trusts: options.expectsProxy ? (address) => options.route()?.trusts(address) ?? false : null,
      readsHello: true,
      prereadTimeout: options.prereadTimeout,
      admit: () => UNCOUNTED,
      decide: (preread) => this.#decide(preread),
      refused,
    });
  }

  /** Stops accepting; connections go on. Resolves when the last one is closed. */
  async stop(): Promise<void> {
    await this.#acceptor.stop();
    this.#terminators.stop();
  }

  /** Flushes what is under way and closes everything. */
  close(): Promise<void> {
    return this.#acceptor.close();
  }

  /** Call it when certificates have changed: closes the servers of replaced certificates. */
  update(): void {
    const names = this.#options.certificates();
    const fallback = this.#options.route()?.plan.tls;
    this.#terminators.closeUnused(
      (certificate) => certificate === fallback || names?.has(certificate) === true,
    );
  }

  #decide(preread: Preread): AcceptDecision {
    const route = this.#options.route();
    const name = preread.hello?.serverName ?? null;
    if (route?.plan.tls == null) return { refusal: "the port has no stream route any more" };
    if (routeOfName([route], name) === null)
      return { refusal: "no stream route matches the TLS server name" };
    const own = route.route.certificate_id === null ? this.#options.certificates() : null;
    const terminator = this.#terminators.find(own?.find(name) ?? route.plan.tls);
    return this.#acceptor.tunnel(preread, terminator, connectionInfo(preread));
  }
}
