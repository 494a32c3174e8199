// Accounts at CAs: generates their keys and never shows them; does not register them.
import { generateKeyPairSync } from "node:crypto";
import type { SecretBox } from "../crypto/secret-box.ts";
import { certificatesProblem } from "../crypto/certificate-chain.ts";
import { type AcmeAccount, acmeAccountInput, directoryOf } from "../model/acme-account.ts";
import { decode } from "../model/decode.ts";
import { invalid } from "../model/error.ts";
import type { Changes } from "../control/change.ts";
import type { Draft } from "../control/draft.ts";
import { Resource, type ResourceKind } from "../control/resource.ts";

/** An account in responses: none of its keys. */
export type AcmeAccountView = Omit<
  AcmeAccount,
  "sealed_key" | "sealed_next_key" | "sealed_eab_key"
>;

export type AcmeAccounts = Resource<"acme_accounts", AcmeAccountView>;

export const createAcmeAccounts = (changes: Changes, box: SecretBox): AcmeAccounts =>
  new Resource(changes, createKind(box));

function viewOf(account: AcmeAccount): AcmeAccountView {
  const { sealed_key: _, sealed_next_key: __, sealed_eab_key: ___, ...view } = account;
  return view;
}

const createKind = (box: SecretBox): ResourceKind<"acme_accounts", AcmeAccountView> => ({
  collection: "acme_accounts",
  decode: (document, draft, old) => {
    const { eab_hmac_key: eabKey, ...fields } = decode(acmeAccountInput, document);
    if (!fields.terms_agreed)
      throw invalid(
        "terms_agreed",
        "must be true: the CA only issues certificates after you agree to its terms of service",
      );
    if (directoryOf(fields) === null)
      throw invalid(
        "staging_directory_url",
        "is required: no staging directory of this CA is known",
      );
    const wrong =
      fields.ca_certificates === "" ? null : certificatesProblem(fields.ca_certificates);
    if (wrong !== null) throw invalid("ca_certificates", wrong);
    const sent = { keyId: fields.eab_key_id, eabKey };
    const sealed_eab_key = sealEabKey(sent, old, { box, draft });
    return {
      fields: {
        ...fields,
        sealed_eab_key,
        sealed_next_key: old?.sealed_next_key ?? null,
        sealed_key: old?.sealed_key ?? box.seal(newAccountKey()),
      },
    };
  },
  sendable: viewOf,
  viewer: () => viewOf,
});

/** Both parts of an external account binding, or neither. */
function sealEabKey(
  { keyId, eabKey }: { readonly keyId: string | null; readonly eabKey: string | undefined },
  old: AcmeAccount | null,
  { box, draft }: { readonly box: SecretBox; readonly draft: Draft },
): string | null {
  if (keyId === null) {
    if (eabKey !== undefined) throw invalid("eab_key_id", "is required with eab_hmac_key");
    return null;
  }
  const sealed = old?.sealed_eab_key ?? null;
  if (eabKey === undefined) {
    if (sealed === null) throw invalid("eab_hmac_key", "is required with eab_key_id");
    return sealed;
  }
  // Sealing returns a new text each time, but writing the stored value again must change nothing.
  if (draft.isByAdmin && sealed !== null && box.open(sealed) === eabKey) return sealed;
  const next = box.seal(eabKey);
  draft.markSent(next);
  return next;
}

/** PEM. */
export function newAccountKey(): string {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  return privateKey.export({ type: "pkcs8", format: "pem" }).toString();
}
