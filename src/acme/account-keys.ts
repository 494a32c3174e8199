// Rolls over account keys at the CA; an interrupted rollover loses no account. Knows no certificate and no HTTP.
import type { AcmeAccount } from "../model/acme-account.ts";
import type { Changes } from "../control/change.ts";
import type { Draft } from "../control/draft.ts";
import type { Actor } from "../control/principal.ts";
import { newAccountKey } from "./accounts.ts";
import { AcmeFailure } from "./failure.ts";
import { openCa, openWithNextKey, type OpenParts } from "./issue.ts";

/**
 * Resolves when the CA has accepted the new key. Stores the key before the request: without it the account would be lost.
 * Throws an AcmeFailure.
 */
export async function changeAccountKey(
  account: AcmeAccount,
  by: Actor,
  { changes, ...parts }: OpenParts & { readonly changes: Changes },
): Promise<void> {
  const { box } = parts;
  const write = (what: string, change: (now: AcmeAccount, draft: Draft) => Partial<AcmeAccount>) =>
    changes.run({
      by,
      dryRun: false,
      mutate: (draft) => {
        const now = draft.config.acme_accounts.get(account.id);
        if (now === undefined) return;
        const fields = change(now, draft);
        draft.put("acme_accounts", { ...now, ...fields, updated_at: draft.stamp() });
        draft.summary = `${what} ACME account "${now.name}"`;
      },
    });
  await write("start the key rollover of", ({ sealed_next_key: next }) => ({
    sealed_next_key: next ?? box.seal(newAccountKey()),
  }));
  const begun = changes.config.acme_accounts.get(account.id);
  const next = begun?.sealed_next_key ?? null;
  if (begun === undefined || next === null) return;
  try {
    // An interrupted rollover may have reached the CA.
    if ((await openWithNextKey(begun, parts)) === null)
      await changeAt(begun, box.open(next), parts);
  } catch (error) {
    // Retains both keys while it is unknown which one the CA accepts.
    if (error instanceof AcmeFailure && !error.isOutage)
      await write("cancel the key rollover of", () => ({ sealed_next_key: null }));
    throw error;
  }
  await write("roll over the key of", ({ sealed_next_key: now }) =>
    // Another secret key may have come meanwhile.
    now !== null && box.open(now) === box.open(next)
      ? { sealed_key: now, sealed_next_key: null }
      : {},
  );
}

/** Registers the account again when the CA has lost it. */
async function changeAt(account: AcmeAccount, key: string, parts: OpenParts): Promise<void> {
  const ca = await openCa(account, parts);
  try {
    await ca.changeKey(key);
  } catch (error) {
    if (!(error instanceof AcmeFailure) || error.type !== "accountDoesNotExist") throw error;
    ca.forget();
    await (await openCa(account, parts)).changeKey(key);
  }
}
