// What certificate authorities are shown while they check that names are ours; knows no order and no route.
import type { Challenges } from "../snapshot/message.ts";
import type { EndCertificate } from "./listener/tls-ends.ts";

/** RFC 8555 section 8.3. */
const PREFIX = "/.well-known/acme-challenge/";

/** RFC 8737 section 6.2. */
export const ACME_PROTOCOL = "acme-tls/1";

export class OpenChallenges {
  #byToken = new Map<string, Uint8Array<ArrayBuffer>>();
  #byName = new Map<string, EndCertificate>();

  replace({ http, tls }: Challenges): void {
    const encoder = new TextEncoder();
    this.#byToken = new Map(http.map(({ token, answer }) => [token, encoder.encode(answer)]));
    const old = this.#byName;
    this.#byName = new Map(
      tls.map(({ name, cert, key }) => {
        const known = old.get(name);
        // The same object as long as it is the same certificate: servers are kept for it.
        return [name, known?.cert === cert ? known : { cert, key }];
      }),
    );
  }

  /** Whether any request has to be looked at. */
  get hasTokens(): boolean {
    return this.#byToken.size > 0;
  }

  /** Whether any handshake has to be looked at. */
  get hasNames(): boolean {
    return this.#byName.size > 0;
  }

  /** Null for everything but a token that an authority has given out: applications may have orders of their own. */
  answer(method: string, path: string): Response | null {
    if (!path.startsWith(PREFIX) || (method !== "GET" && method !== "HEAD")) return null;
    const bytes = this.#byToken.get(path.slice(PREFIX.length));
    if (bytes === undefined) return null;
    const isHead = method === "HEAD";
    return new Response(isHead ? null : bytes, {
      headers: {
        "Content-Type": "application/octet-stream",
        "Cache-Control": "no-store",
        ...(isHead ? { "Content-Length": String(bytes.byteLength) } : {}),
      },
    });
  }

  /** The certificate for a handshake of an authority; null for every other handshake. */
  certificateFor(name: string | null, protocols: readonly string[]): EndCertificate | null {
    if (name === null || !protocols.includes(ACME_PROTOCOL)) return null;
    return this.#byName.get(name) ?? null;
  }

  isOpen(certificate: EndCertificate): boolean {
    return [...this.#byName.values()].includes(certificate);
  }
}
