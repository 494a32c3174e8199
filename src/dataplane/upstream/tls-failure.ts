// Maps TLS errors of targets to failures that name the failed check; knows no socket.
import { failures, type ProxyError } from "../error.ts";

/** By error code of OpenSSL and Node. */
const certificateChecks: Readonly<Record<string, Parameters<typeof failures.tlsCertificate>[0]>> = {
  CERT_HAS_EXPIRED: "the target's certificate has expired",
  CERT_NOT_YET_VALID: "the target's certificate is not valid yet",
  DEPTH_ZERO_SELF_SIGNED_CERT: "the target's certificate is self-signed",
  SELF_SIGNED_CERT_IN_CHAIN: "the target's certificate comes from an unknown CA",
  UNABLE_TO_GET_ISSUER_CERT: "the target's certificate comes from an unknown CA",
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: "the target's certificate comes from an unknown CA",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: "the target's certificate comes from an unknown CA",
  ERR_TLS_CERT_ALTNAME_INVALID: "the target's certificate is for another name",
  HOSTNAME_MISMATCH: "the target's certificate is for another name",
  IP_ADDRESS_MISMATCH: "the target's certificate is for another name",
};

/** A handshake that failed. */
export function tlsFailure(error: Error | null): ProxyError {
  const code = (error as { code?: string } | null)?.code ?? "";
  const check = certificateChecks[code];
  if (check !== undefined) return failures.tlsCertificate(check, error);
  if (/CERT|ISSUER|SIGNATURE|CHAIN|CRL|ALTNAME|INVALID_CA|INVALID_PURPOSE/.test(code))
    return failures.tlsCertificate("the target's certificate is not valid", error);
  const text = error?.message ?? "";
  if (/PROTOCOL_VERSION|UNSUPPORTED_PROTOCOL|VERSION_TOO_LOW/.test(text))
    return failures.tlsProtocol("the target's TLS version is too low", error);
  if (/WRONG_VERSION_NUMBER|HTTP_REQUEST/.test(text))
    return failures.tlsProtocol("the target does not speak TLS", error);
  return failures.tlsProtocol("the TLS handshake with the target failed", error);
}

/**
 * An error on a connection after the handshake; null: not a TLS alert. In TLS 1.3 a target that requires a client
 * certificate reports its absence only then.
 */
export function tlsBroken(error: Error): ProxyError | null {
  return /CERTIFICATE_REQUIRED|ALERT_BAD_CERTIFICATE|ALERT_UNKNOWN_CA/.test(error.message)
    ? failures.tlsAlert(error)
    : null;
}
