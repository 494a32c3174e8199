// What a listener asks of client certificates; knows no handshake.
import type { Listener } from "../../model/listener.ts";
import type { ClientAuth } from "./tls-ends.ts";

/** Null when it asks for none. */
export function clientAuthOf(listener: Listener): ClientAuth | null {
  const { client_auth: mode, client_ca: ca, client_crl: crl } = listener;
  if (mode === "none") return null;
  // The compiler refuses it; an empty list would make the system's authorities count.
  if (ca === null || ca === "") throw new Error("client_auth without client_ca");
  return { mode, ca, crl, authority: clientAuthority(listener) ?? "" };
}

/** The same text for the same demands; null when there are none. */
export const clientAuthority = (listener: Listener): string | null =>
  listener.client_auth === "none"
    ? null
    : JSON.stringify([listener.client_auth, listener.client_ca, listener.client_crl]);
