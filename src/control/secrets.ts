// Secrets: seals their values and never returns them; knows no HTTP.
import type { SecretBox } from "../crypto/secret-box.ts";
import { decode } from "../model/decode.ts";
import { ApiError, invalid } from "../model/error.ts";
import { type Secret, secretInput } from "../model/secret.ts";
import type { Changes } from "./change.ts";
import type { Draft } from "./draft.ts";
import { labelOf, referrersOf } from "./reference.ts";
import { Resource, type ResourceKind } from "./resource.ts";

/** A secret in responses: never its value. */
export type SecretView = Omit<Secret, "sealed_value">;

export function createSecrets(changes: Changes, box: SecretBox): Resource<"secrets", SecretView> {
  return new Resource(changes, createKind(box));
}

const withoutValue = ({ sealed_value: _, ...view }: Secret): SecretView => view;

const createKind = (box: SecretBox): ResourceKind<"secrets", SecretView> => ({
  collection: "secrets",
  decode: (document, draft, old) => {
    const { value, ...fields } = decode(secretInput, document);
    if (old !== null && old.name !== fields.name) refuseRename(old, draft);
    return { fields: { ...fields, sealed_value: seal(box, value, old) } };
  },
  sendable: withoutValue,
  viewer: () => withoutValue,
});

function seal(box: SecretBox, value: string | undefined, old: Secret | null): string {
  if (value === undefined) {
    if (old === null) throw invalid("value", "is required");
    return old.sealed_value;
  }
  // Sealing returns a new text each time, but writing the stored value again must change nothing.
  return old !== null && box.open(old.sealed_value) === value ? old.sealed_value : box.seal(value);
}

/** References hold the name of a secret, so a rename would break them. */
function refuseRename(old: Secret, { config }: Draft): void {
  const referrers = referrersOf(config, { collection: "secrets", id: old.id });
  if (referrers.length === 0) return;
  const labels = referrers.map((referrer) => labelOf(config, referrer)).join(", ");
  throw new ApiError(
    409,
    `name: secret "${old.name}" is used by ${labels}, which refer to it by name`,
  );
}
