// Publishes events of certificates and ACME orders; knows no subscriber.
import type { Clock } from "../clock.ts";
import type { Certificate } from "../model/certificate.ts";
import type { AcmeEvent, CertificateEvent, EventHub } from "../control/events.ts";
import type { AcmeState } from "./state.ts";

export class AcmeEvents {
  readonly #events: Pick<EventHub, "publish">;
  readonly #clock: Clock;

  constructor(events: Pick<EventHub, "publish">, clock: Clock) {
    this.#events = events;
    this.#clock = clock;
  }

  certificate(what: CertificateEvent["what"], certificate: Certificate): void {
    const { id, name, domains, not_after } = certificate;
    this.#events.publish("certificate", { at: this.#now(), what, id, name, domains, not_after });
  }

  acme(status: AcmeEvent["status"], certificate: Certificate, state: AcmeState): void {
    const { id, name, domains } = certificate;
    const { attempts, last_error, next_attempt_at } = state;
    this.#events.publish("acme", {
      at: this.#now(),
      status,
      id,
      name,
      domains,
      attempts,
      last_error,
      next_attempt_at,
    });
  }

  #now(): string {
    return new Date(this.#clock.now()).toISOString();
  }
}
