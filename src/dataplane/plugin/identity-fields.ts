// The fields that tell a target who the client is, written from what an authentication has found; knows no plugin.
import type { ConsumerView, CredentialView } from "../../pdk/context.ts";

/** What only the gateway says of the client: whatever a client sends under these names never goes upstream. */
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
 * The lines of the fields, each with its end. Whatever a client sends under these names never goes upstream, so nothing has to
 * be replaced.
 */
export function identityLines({
  consumer,
  credential,
  credentialId,
  isAnonymous,
}: Identity): string {
  const shown = credential?.identifier ?? credential?.name ?? credential?.id ?? credentialId;
  return (
    line("x-consumer-id", consumer?.id ?? null) +
    line("x-consumer-username", consumer?.username ?? null) +
    line("x-consumer-custom-id", consumer?.customId ?? null) +
    line("x-credential-identifier", isAnonymous ? null : shown) +
    line("x-anonymous-consumer", isAnonymous ? "true" : null)
  );
}

/** Nearly all names, which one look tells apart from the others. */
const PLAIN = /^[!-~](?:[ -~]*[!-~])?$/;

/** A name from outside may hold what a field cannot. */
function line(name: string, value: string | null): string {
  if (value === null) return "";
  const text = PLAIN.test(value) ? value : value.replace(/[^\x20-\x7e]/g, "?").trim();
  return text === "" ? "" : `${name}: ${text}\r\n`;
}
