// The open ACME challenges: responses and certificates for CAs that validate names; knows no order and no route.
import type { Challenges } from "../snapshot/message.ts";
import { FieldList } from "../http/field-list.ts";
import type { LocalResponse } from "./error-page.ts";
import type { ServerCertificate } from "./server/bun-tls.ts";

/** RFC 8555 section 8.3. */
export const CHALLENGE_PATH = "/.well-known/acme-challenge/";

/** RFC 8737 section 6.2. */
export const ACME_PROTOCOL = "acme-tls/1";

/** Before the same name is reported again. */
const REPORT_PAUSE_MS = 10_000;
const MAX_REPORTED = 1000;

/**
 * How long handshakes are still read after the last name is removed. Orders come in groups, and whenever a listener is
 * rebound the kernel resets connections in the closed socket's backlog: one may be the CA's for the next name.
 */
const LINGER_MS = 2000;

export class OpenChallenges {
  readonly #report: (name: string) => void;
  #onDemandNames: ReadonlySet<string> = new Set();
  readonly #reported = new Map<string, number>();
  #byToken = new Map<string, Uint8Array<ArrayBuffer>>();
  /** Whether requests have to be compared with the tokens. */
  hasTokens = false;
  #byName = new Map<string, ServerCertificate>();
  #namesUntil = Number.NEGATIVE_INFINITY;

  /** `report`: a client uses a TLS server name whose certificate can be issued on demand. */
  constructor(report: (name: string) => void) {
    this.#report = report;
  }

  replace({ http, tls, wanted = [] }: Challenges): void {
    this.#onDemandNames = new Set(wanted);
    const encoder = new TextEncoder();
    this.#byToken = new Map(http.map(({ token, answer }) => [token, encoder.encode(answer)]));
    this.hasTokens = this.#byToken.size > 0;
    const old = this.#byName;
    if (old.size > 0 && tls.length === 0) this.#namesUntil = performance.now() + LINGER_MS;
    this.#byName = new Map(
      tls.map(({ name, cert, key }) => {
        const known = old.get(name);
        // The same object for the same certificate, because TLS contexts are kept by identity.
        return [name, known?.cert === cert ? known : { cert, key }];
      }),
    );
  }

  /** Whether handshakes have to be read, or had to a moment ago. */
  get hasNames(): boolean {
    return this.#byName.size + this.#onDemandNames.size > 0 || performance.now() < this.#namesUntil;
  }

  /** No certificate matches the server name of a handshake. */
  missing(name: string | null): void {
    if (name === null || this.#onDemandNames.size === 0) return;
    if (!this.#onDemandNames.has(name) && !this.#onDemandNames.has(name.replace(/^[^.]+/, "*")))
      return;
    const now = performance.now();
    if ((this.#reported.get(name) ?? Number.NEGATIVE_INFINITY) > now - REPORT_PAUSE_MS) return;
    if (this.#reported.size >= MAX_REPORTED) this.#reported.clear();
    this.#reported.set(name, now);
    this.#report(name);
  }

  /** Null for unknown tokens: applications behind the gateway may use ACME too. */
  respond(method: string, path: string): LocalResponse | null {
    if (!path.startsWith(CHALLENGE_PATH) || (method !== "GET" && method !== "HEAD")) return null;
    const bytes = this.#byToken.get(path.slice(CHALLENGE_PATH.length));
    if (bytes === undefined) return null;
    const isHead = method === "HEAD";
    return {
      status: 200,
      body: isHead ? null : bytes,
      fields: new FieldList({
        "Content-Type": "application/octet-stream",
        "Cache-Control": "no-store",
        ...(isHead ? { "Content-Length": String(bytes.byteLength) } : {}),
      }),
    };
  }

  /** The challenge certificate for a CA's handshake; null for every other handshake. */
  certificateFor(name: string | null, protocols: readonly string[]): ServerCertificate | null {
    if (name === null || !protocols.includes(ACME_PROTOCOL)) return null;
    return this.#byName.get(name) ?? null;
  }
}
