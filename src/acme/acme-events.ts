// Publishes events of certificates and ACME orders; knows no subscriber.
import type { Clock } from "../clock.ts";
import type { Certificate } from "../model/certificate.ts";
import type { EventHub } from "../control/events.ts";
import type { AcmeState } from "./state.ts";

export interface CertificateEvent {
  readonly at: string;
  readonly what: "issued" | "renewed" | "revoked" | "expiring" | "expired";
  readonly id: string;
  readonly name: string;
  readonly domains: readonly string[];
  readonly not_after: string | null;
}

/** A step of an order. */
export interface AcmeEvent {
  readonly at: string;
  readonly status: "ordering" | "valid" | "failed";
  readonly id: string;
  readonly name: string;
  readonly domains: readonly string[];
  readonly attempts: number;
  readonly last_error: string | null;
  readonly next_attempt_at: string | null;
}

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
