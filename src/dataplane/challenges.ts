// What certificate authorities are shown while they check that names are ours; knows no order and no route.
import type { Challenges } from "../snapshot/message.ts";
import type { LocalResponse } from "./error-page.ts";
import type { TerminatorCertificate } from "./listener/tls-terminators.ts";

/** RFC 8555 section 8.3. */
export const CHALLENGE_PATH = "/.well-known/acme-challenge/";

/** RFC 8737 section 6.2. */
export const ACME_PROTOCOL = "acme-tls/1";

/** Names that were reported a moment ago are not reported again. */
const REPORT_PAUSE_MS = 10_000;
const MOST_REPORTED = 1000;

/**
 * So long handshakes are still looked at after the last name is gone. Orders come in groups, and each time that a listener is
 * bound anew the system resets what waits at the socket that is closed: one of these may be the authority for the next name.
 */
const LINGER_MS = 2000;

export class OpenChallenges {
  readonly #report: (name: string) => void;
  #wanted: ReadonlySet<string> = new Set();
  readonly #reported = new Map<string, number>();
  #byToken = new Map<string, Uint8Array<ArrayBuffer>>();
  /** Whether any request has to be looked at. */
  hasTokens = false;
  #byName = new Map<string, TerminatorCertificate>();
  #namesUntil = Number.NEGATIVE_INFINITY;

  /** `report`: a client has asked for a name that a certificate could be ordered for. */
  constructor(report: (name: string) => void) {
    this.#report = report;
  }

  replace({ http, tls, wanted = [] }: Challenges): void {
    this.#wanted = new Set(wanted);
    const encoder = new TextEncoder();
    this.#byToken = new Map(http.map(({ token, answer }) => [token, encoder.encode(answer)]));
    this.hasTokens = this.#byToken.size > 0;
    const old = this.#byName;
    if (old.size > 0 && tls.length === 0) this.#namesUntil = performance.now() + LINGER_MS;
    this.#byName = new Map(
      tls.map(({ name, cert, key }) => {
        const known = old.get(name);
        // The same object as long as it is the same certificate: servers are kept for it.
        return [name, known?.cert === cert ? known : { cert, key }];
      }),
    );
  }

  /** Whether any handshake has to be looked at, or had to a moment ago. */
  get hasNames(): boolean {
    return this.#byName.size + this.#wanted.size > 0 || performance.now() < this.#namesUntil;
  }

  /** Nobody has a certificate for this name of a handshake. */
  missing(name: string | null): void {
    if (name === null || this.#wanted.size === 0) return;
    if (!this.#wanted.has(name) && !this.#wanted.has(name.replace(/^[^.]+/, "*"))) return;
    const now = performance.now();
    if ((this.#reported.get(name) ?? Number.NEGATIVE_INFINITY) > now - REPORT_PAUSE_MS) return;
    if (this.#reported.size >= MOST_REPORTED) this.#reported.clear();
    this.#reported.set(name, now);
    this.#report(name);
  }

  /** Null for everything but a token that a CA has given out: applications may have orders of their own. */
  respond(method: string, path: string): LocalResponse | null {
    if (!path.startsWith(CHALLENGE_PATH) || (method !== "GET" && method !== "HEAD")) return null;
    const bytes = this.#byToken.get(path.slice(CHALLENGE_PATH.length));
    if (bytes === undefined) return null;
    const isHead = method === "HEAD";
    return {
      status: 200,
      body: isHead ? null : bytes,
      headers: new Headers({
        "Content-Type": "application/octet-stream",
        "Cache-Control": "no-store",
        ...(isHead ? { "Content-Length": String(bytes.byteLength) } : {}),
      }),
    };
  }

  /** The certificate for a handshake of an authority; null for every other handshake. */
  certificateFor(name: string | null, protocols: readonly string[]): TerminatorCertificate | null {
    if (name === null || !protocols.includes(ACME_PROTOCOL)) return null;
    return this.#byName.get(name) ?? null;
  }

  isOpen(certificate: TerminatorCertificate): boolean {
    return [...this.#byName.values()].includes(certificate);
  }
}
