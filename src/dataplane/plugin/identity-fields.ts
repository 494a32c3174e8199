// The fields that tell a target who the client is, written from what an authentication has found; knows no plugin.
import type { ConsumerView, CredentialView } from "../../pdk/context.ts";
import type { UpstreamEdits } from "./upstream-edits.ts";

/** Fields that say who the client is; whatever a client sends under these names stays behind. */
const IDENTITY_FIELDS = {
  id: "x-consumer-id",
  username: "x-consumer-username",
  customId: "x-consumer-custom-id",
  credential: "x-credential-identifier",
  anonymous: "x-anonymous-consumer",
} as const;

/** Tells the target who it is. */
export function tellIdentity(
  upstream: UpstreamEdits,
  who: {
    readonly consumer: ConsumerView | null;
    readonly credential: CredentialView | null;
    readonly credentialId: string | null;
    readonly isAnonymous: boolean;
  },
): void {
  const { consumer, credential, credentialId, isAnonymous } = who;
  const say = (name: string, value: string | null) =>
    value === null || value === "" ? upstream.removeHeader(name) : upstream.setHeader(name, value);
  say(IDENTITY_FIELDS.id, consumer?.id ?? null);
  say(IDENTITY_FIELDS.username, consumer?.username ?? null);
  say(IDENTITY_FIELDS.customId, consumer?.customId ?? null);
  const shown = credential?.identifier ?? credential?.name ?? credential?.id ?? null;
  say(IDENTITY_FIELDS.credential, isAnonymous ? null : (shown ?? asFieldValue(credentialId)));
  say(IDENTITY_FIELDS.anonymous, isAnonymous ? "true" : null);
}

/** A name from outside may hold what a field cannot. */
const asFieldValue = (text: string | null) => text?.replace(/[^\x20-\x7e]/g, "?").trim() ?? null;
