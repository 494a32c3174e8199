// Prepares documents of credentials before a change: generates secrets, hashes passwords; knows no change.
import { type Credential, credentialTypes } from "../model/credential.ts";
import { invalid } from "../model/error.ts";
import { isDocument } from "./body.ts";
import { checkSecret, createSecret, hashBasic } from "./credential-secrets.ts";

/** A document, with its generated secret. */
export interface Prepared {
  readonly document: unknown;
  /** A generated secret, to be shown only in this response. */
  readonly secret: string | null;
}

/** The member with the hash that replaces a password. */
export const HASH = "secret_hash";

const MAX_CHARACTERS = 4096;

/**
 * Does the slow work before the change: replaces a password with its hash. A new credential without a secret gets a generated
 * one.
 */
export async function prepareDocument(body: unknown, old: Credential | null): Promise<Prepared> {
  if (!isDocument(body)) return { document: body, secret: null };
  if (HASH in body) throw invalid(HASH, "is not a known field");
  const type = old?.type ?? credentialTypes.find((word) => word === body["type"]);
  // Decoding reports the problem.
  if (type === undefined) return { document: body, secret: null };
  const isNew = old === null && body["secret"] === undefined && !hasKeyPair(body);
  const secret = isNew ? createSecret(type) : body["secret"];
  // Hashing is slow: values that decoding refuses are not hashed.
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
