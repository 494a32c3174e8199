// The header fields that name the authenticated client to the target; knows no plugin.
import type { ConsumerView, CredentialView } from "../../pdk/context.ts";

/** Only the gateway sets these fields: it removes what clients send under these names. */
export const IDENTITY_FIELDS: ReadonlySet<string> = new Set([
  "x-consumer-id",
  "x-consumer-username",
  "x-consumer-custom-id",
  "x-consumer-groups",
  "x-credential-identifier",
  "x-anonymous-consumer",
  "client-cert",
  "client-cert-chain",
]);

/** What is known of the client. */
export interface Identity {
  readonly consumer: ConsumerView | null;
  readonly credential: CredentialView | null;
  readonly credentialId: string | null;
  readonly isAnonymous: boolean;
}

/**
 * The lines of the fields, each with its end. They replace nothing: the gateway removes a client's fields of these names.
 */
export function identityLines({
  consumer,
  credential,
  credentialId,
  isAnonymous,
}: Identity): string {
  const shown = credential?.identifier ?? credential?.name ?? credential?.id ?? credentialId;
  return (
    line("X-Consumer-ID", consumer?.id ?? null) +
    line("X-Consumer-Username", consumer?.username ?? null) +
    line("X-Consumer-Custom-ID", consumer?.customId ?? null) +
    line("X-Credential-Identifier", isAnonymous ? null : shown) +
    line("X-Anonymous-Consumer", isAnonymous ? "true" : null)
  );
}

/** Nearly all names fit this, and need no replacement. */
const PLAIN = /^[!-~](?:[ -~]*[!-~])?$/;

/** Identity providers may send names that no header field can hold. */
function line(name: string, value: string | null): string {
  if (value === null) return "";
  const text = PLAIN.test(value) ? value : value.replace(/[^\x20-\x7e]/g, "?").trim();
  return text === "" ? "" : `${name}: ${text}\r\n`;
}
