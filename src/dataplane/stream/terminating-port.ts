// A stream route's port that terminates TLS with a certificate for each server name; knows no target.
import { Acceptor } from "../listener/acceptor.ts";
import type { CertificateIndex } from "../listener/certificate-index.ts";
import type { ClientSocket, SocketOwner } from "../listener/client-socket.ts";
import type { ConnectionInfo } from "../listener/connection-info.ts";
import type { AcceptDecision, ConnectionSlot, Preread } from "../listener/pending-connection.ts";
import { TlsContexts } from "../server/tls-contexts.ts";
import { routeOfName, type StreamRouteRuntime } from "./stream-runtime.ts";

export interface TerminatingPortOptions {
  readonly address: string;
  readonly port: number;
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
  readonly #contexts = new TlsContexts();

  /** Binds at once; throws the system's error. */
  constructor(options: TerminatingPortOptions) {
    this.#options = options;
    const { address, port, route, prereadTimeout, refused } = options;
    this.#acceptor = new Acceptor({
      address,
      port,
      trusts() {
        const runtime = route();
        return runtime?.route.proxy_protocol_in === true ? runtime.trusts : null;
      },
      readsHello: () => true,
      prereadTimeout,
      admit: () => UNCOUNTED,
      decide: (preread) => this.#decide(preread),
      refused,
    });
  }

  /** Stops accepting; connections go on. */
  stop(): void {
    void this.#acceptor.stop();
  }

  #decide(preread: Preread): AcceptDecision {
    const { route: live, certificates, accepted } = this.#options;
    const route = live();
    const name = preread.hello?.serverName ?? null;
    if (route?.plan.tls == null) return { refusal: "the port has no stream route any more" };
    if (routeOfName([route], name) === null)
      return { refusal: "no stream route matches the TLS server name" };
    const own = route.route.certificate_id === null ? certificates() : null;
    return this.#acceptor.secure(preread, {
      context: this.#contexts.withoutRules(own?.find(name) ?? route.plan.tls),
      clientAuth: null,
      protocol: null,
      accepted(secured, info) {
        secured.data = accepted(secured, info);
      },
    });
  }
}
