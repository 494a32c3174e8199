// Gives accounts new keys at their authorities, so that a broken-off change locks nobody out; knows no certificate and no HTTP.
import type { AcmeAccount } from "../../model/acme-account.ts";
import type { Changes } from "../change.ts";
import type { Draft } from "../draft.ts";
import type { Actor } from "../principal.ts";
import { newAccountKey } from "./accounts.ts";
import { AcmeFailure } from "./failure.ts";
import { openAuthority, openWithNextKey, type OpenParts } from "./issue.ts";

/**
 * Resolves when the authority knows the account by a new key. The key is stored before the authority hears of it: whoever
 * lost it in between could do nothing with the account any more. Throws an AcmeFailure.
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
  await write("begin to change the key of", ({ sealed_next_key: next }) => ({
    sealed_next_key: next ?? box.seal(newAccountKey()),
  }));
  const begun = changes.config.acme_accounts.get(account.id);
  const next = begun?.sealed_next_key ?? null;
  if (begun === undefined || next === null) return;
  try {
    // One that was broken off may have reached the authority.
    if ((await openWithNextKey(begun, parts)) === null)
      await changeAt(begun, box.open(next), parts);
  } catch (error) {
    // Where nobody knows whether it was heard, both keys are kept.
    if (error instanceof AcmeFailure && !error.isOutage)
      await write("give up changing the key of", () => ({ sealed_next_key: null }));
    throw error;
  }
  await write("change the key of", (now) =>
    now.sealed_next_key === next ? { sealed_key: next, sealed_next_key: null } : {},
  );
}

/** An authority that has lost the account gets it once more. */
async function changeAt(account: AcmeAccount, key: string, parts: OpenParts): Promise<void> {
  const authority = await openAuthority(account, parts);
  try {
    await authority.changeKey(key);
  } catch (error) {
    if (!(error instanceof AcmeFailure) || error.type !== "accountDoesNotExist") throw error;
    authority.forget();
    await (await openAuthority(account, parts)).changeKey(key);
  }
}
