// Prepares documents of credentials before a change: generates secrets and hashes passwords; knows no change.
import { type Credential, credentialTypes } from "../model/credential.ts";
import { invalid } from "../model/error.ts";
import { isDocument } from "./body.ts";
import { checkSecret, createSecret, hashBasic } from "./credential-secrets.ts";

/** A document, and the secret that was generated for it. */
export interface Prepared {
  readonly document: unknown;
  /** A generated secret, which only this response shows. */
  readonly secret: string | null;
}

/** Replaces the password in a document by its hash. */
export const HASH = "secret_hash";

const MAX_CHARACTERS = 4096;

/**
 * Does slow work before the change begins: replaces the password by its hash. A new credential without a secret gets a
 * generated one.
 */
export async function prepareDocument(body: unknown, old: Credential | null): Promise<Prepared> {
  if (!isDocument(body)) return { document: body, secret: null };
  if (HASH in body) throw invalid(HASH, "is not a known field");
  const type = old?.type ?? credentialTypes.find((word) => word === body["type"]);
  // Decoding reports the error.
  if (type === undefined) return { document: body, secret: null };
  const isNew = old === null && body["secret"] === undefined && !hasKeyPair(body);
  const secret = isNew ? createSecret(type) : body["secret"];
  // Hashing is slow: skip values that decoding rejects.
  if (typeof secret !== "string" || secret === "" || secret.length > MAX_CHARACTERS)
    return { document: body, secret: null };
  const shown = isNew ? secret : null;
  if (type !== "basic") return { document: { ...body, secret }, secret: shown };
  checkSecret(type, secret);
  const { secret: _, ...rest } = body;
  const hash = await hashBasic(secret, old?.secret_hash ?? null);
  return { document: { ...rest, [HASH]: hash }, secret: shown };
}

function hasKeyPair({ algorithm }: Readonly<Record<string, unknown>>): boolean {
  return (
    typeof algorithm === "string" && !algorithm.startsWith("HS") && algorithm !== "hmac-sha256"
  );
}
