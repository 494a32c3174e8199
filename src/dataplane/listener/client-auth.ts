// How the client certificates of a listener are verified; knows no socket.
import type { Listener } from "../../model/listener.ts";
import type { ConnectionInfo } from "./connection-info.ts";

/** How client certificates are verified. */
export interface ClientAuth {
  readonly mode: "request" | "require";
  /** CA bundle for client certificates, PEM. */
  readonly ca: string;
  /** Certificate revocation lists, PEM. */
  readonly crl: string | null;
  /** Identifies these settings, to notice when the listener's have changed (`clientAuthKey`). */
  readonly key: string;
}

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

/** Checks a finished handshake: the connection's info, or the reason to refuse it. */
export function verifyHandshake(
  socket: HandshakeSocket,
  info: ConnectionInfo,
  clientAuth: ClientAuth | null,
): ConnectionInfo | string {
  const { tlsVersion } = socket;
  if (clientAuth === null) return { ...info, tlsVersion };
  // The certificate was chosen by the name in the ClientHello; the handshake must have used the same one.
  if (nameOf(socket.serverName) !== info.serverName)
    return "the TLS handshake was for another server name";
  const raw = certificateOf(socket.peerCertificate);
  if (raw === null && clientAuth.mode === "require") return "the client sent no certificate";
  if (raw !== null && !socket.isAuthorized) return "the client's certificate is not valid";
  return {
    ...info,
    tlsVersion,
    clientAuthKey: clientAuth.key,
    clientCertificate: raw,
    clientCertificateField: raw === null ? "" : `Client-Cert: :${raw.toString("base64")}:\r\n`,
  };
}

/** A finished handshake. */
export interface HandshakeSocket {
  readonly tlsVersion: string | null;
  readonly serverName: unknown;
  readonly isAuthorized: boolean;
  readonly peerCertificate: unknown;
}

const nameOf = (name: unknown): string | null =>
  typeof name === "string" && name !== "" ? name.toLowerCase().replace(/\.$/, "") : null;

function certificateOf(certificate: unknown): Buffer | null {
  const { raw } = (certificate ?? {}) as { readonly raw?: Uint8Array };
  return raw === undefined ? null : Buffer.from(raw);
}
