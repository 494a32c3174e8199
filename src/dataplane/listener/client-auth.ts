// Client certificate verification of a listener, as options for its TLS servers; knows no handshake.
import type { Listener } from "../../model/listener.ts";
import type { ClientAuth } from "./tls-terminators.ts";

/** Null when the listener requests no client certificate. */
export function clientAuthOf(listener: Listener): ClientAuth | null {
  const { client_auth: mode, client_ca: ca, client_crl: crl } = listener;
  if (mode === "none") return null;
  // The snapshot compiler rejects it; without a CA, TLS would trust the system's CAs.
  if (ca === null || ca === "") throw new Error("client_auth without client_ca");
  return { mode, ca, crl, key: clientAuthKey(listener) ?? "" };
}

/** Identifies the listener's client certificate settings; null without client_auth. */
export const clientAuthKey = (listener: Listener): string | null =>
  listener.client_auth === "none"
    ? null
    : JSON.stringify([listener.client_auth, listener.client_ca, listener.client_crl]);
