// Named tokens: shown once, stored as a hash; knows no HTTP.
import { createToken, fingerprintOf, hashToken } from "../crypto/token.ts";
import { decode } from "../model/decode.ts";
import { definitionOf } from "../model/gateway-config.ts";
import { type Token, tokenInput } from "../model/token.ts";
import type { Changes } from "../control/change.ts";
import { Resource, type ResourceKind } from "../control/resource.ts";
import type { TokenUse } from "./token-use.ts";

/** A token in responses. */
export type TokenView = Omit<Token, "token_hash"> & {
  /** The first 8 hexadecimal digits of its SHA-256. */
  readonly fingerprint: string;
  /** RFC 3339, UTC; null: never. */
  readonly last_used_at: string | null;
};

export function createTokens(changes: Changes, use: TokenUse): Resource<"tokens", TokenView> {
  changes.onStored(({ change }) => use.forget(change.tokens.removals));
  return new Resource(changes, createKind(use));
}

const withoutHash = ({ token_hash: _, ...token }: Token) => token;

const createKind = (use: TokenUse): ResourceKind<"tokens", TokenView> => ({
  collection: "tokens",
  readOnly: [...definitionOf("tokens").readOnly, "token_hash"],
  decode: (document, _, old) => {
    const { expires_at, ...rest } = decode(tokenInput, document);
    const fields = {
      ...rest,
      // A normalized time, because times are compared as texts.
      expires_at: expires_at === null ? null : new Date(expires_at).toISOString(),
    };
    if (old !== null) return { fields: { ...fields, token_hash: old.token_hash } };
    const token = createToken();
    return { fields: { ...fields, token_hash: hashToken(token) }, shownOnce: { token } };
  },
  sendable: withoutHash,
  viewer: () => (token) => ({
    ...withoutHash(token),
    fingerprint: fingerprintOf(token.token_hash),
    last_used_at: use.lastUsedAt(token.id),
  }),
});
