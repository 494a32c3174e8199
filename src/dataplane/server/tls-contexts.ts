// The TLS contexts of an address and port, by certificate and by rules of a listener; knows no name and no socket.
import { constants } from "node:crypto";
import type { Listener } from "../../model/listener.ts";
import type { ListenerPlan } from "../../snapshot/snapshot.ts";
import { type ClientAuth, clientAuthOf } from "../listener/client-auth.ts";
import { createTlsContext, type ServerCertificate, type TlsContext } from "./bun-tls.ts";

/** How TLS ends for the names of a listener. */
export interface TlsRules {
  readonly clientAuth: ClientAuth | null;
  /** Throws when TLS does not accept the certificate. */
  contextOf(certificate: ServerCertificate): TlsContext;
}

class Rules implements TlsRules {
  readonly clientAuth: ClientAuth | null;
  readonly #minVersion: "TLSv1.2" | "TLSv1.3";
  readonly #contexts = new WeakMap<ServerCertificate, TlsContext>();

  constructor(listener: Listener) {
    this.clientAuth = clientAuthOf(listener);
    this.#minVersion = listener.tls_min_version === "1.3" ? "TLSv1.3" : "TLSv1.2";
  }

  contextOf(certificate: ServerCertificate): TlsContext {
    const known = this.#contexts.get(certificate);
    if (known !== undefined) return known;
    const { cert, key } = certificate;
    const minVersion = this.#minVersion;
    const context = createTlsContext({ cert, key, minVersion, ...this.#options });
    this.#contexts.set(certificate, context);
    return context;
  }

  get #options() {
    const preference = constants.SSL_OP_CIPHER_SERVER_PREFERENCE;
    if (this.clientAuth === null) return { secureOptions: preference };
    const { ca, crl } = this.clientAuth;
    // Without session tickets every connection presents its certificate again.
    const secureOptions = preference | constants.SSL_OP_NO_TICKET;
    return { ca, secureOptions, ...(crl === null ? {} : { crl }) };
  }
}

/**
 * A context is made at the first handshake that needs it, and lives as long as its certificate and rules: a handshake gets the
 * current ones, and a session of earlier ones is unknown to it.
 */
export class TlsContexts {
  #byKey = new Map<string, Rules>();
  #byListener = new WeakMap<Listener, Rules>();

  readonly #withoutRules = new WeakMap<ServerCertificate, TlsContext>();

  /** `plans`: of all listeners at the port, as they are now. */
  rulesOf(listener: Listener, plans: () => readonly ListenerPlan[]): TlsRules {
    const known = this.#byListener.get(listener);
    if (known !== undefined) return known;
    // Listeners have changed: what none of them asks for goes.
    const before = this.#byKey;
    this.#byKey = new Map();
    this.#byListener = new WeakMap();
    for (const one of new Set([listener, ...plans().map((plan) => plan.listener)])) {
      const key = rulesKey(one);
      const rules = this.#byKey.get(key) ?? before.get(key) ?? new Rules(one);
      this.#byKey.set(key, rules);
      this.#byListener.set(one, rules);
    }
    return this.rulesOf(listener, plans);
  }

  /** For challenges and TCP streams. Throws when TLS does not accept the certificate. */
  withoutRules(certificate: ServerCertificate): TlsContext {
    const { cert, key } = certificate;
    const minVersion = "TLSv1.2";
    const secureOptions = constants.SSL_OP_CIPHER_SERVER_PREFERENCE;
    const context =
      this.#withoutRules.get(certificate) ??
      createTlsContext({ cert, key, minVersion, secureOptions });
    this.#withoutRules.set(certificate, context);
    return context;
  }
}

const rulesKey = (listener: Listener): string => {
  const { tls_min_version, client_auth, client_ca, client_crl } = listener;
  const clients = client_auth === "none" ? [] : [client_auth, client_ca, client_crl];
  return JSON.stringify([tls_min_version, ...clients]);
};
