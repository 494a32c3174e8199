// Documents of credentials before a change begins: secrets are made, passwords are hashed; knows no change.
import { type Credential, credentialTypes } from "../model/credential.ts";
import { invalid } from "../model/error.ts";
import { isDocument } from "./body.ts";
import { checkSecret, createSecret, hashBasic } from "./credential-secrets.ts";

/** A document, and what was made for it. */
export interface Prepared {
  readonly document: unknown;
  /** A secret that was made, to be shown in this one answer. */
  readonly secret: string | null;
}

/** Stands in a document in the place of a password that was hashed. */
export const HASH = "secret_hash";

const MAX_CHARACTERS = 4096;

/**
 * Does what takes a while before the change begins: the document with the hash of its password in the place of the password.
 * A new credential without a secret gets one.
 */
export async function prepareDocument(body: unknown, old: Credential | null): Promise<Prepared> {
  if (!isDocument(body)) return { document: body, secret: null };
  if (HASH in body) throw invalid(HASH, "is not a known field");
  const type = old?.type ?? credentialTypes.find((word) => word === body["type"]);
  // Decoding says what is wrong with it.
  if (type === undefined) return { document: body, secret: null };
  const isNew = old === null && body["secret"] === undefined && !hasKeyPair(body);
  const secret = isNew ? createSecret(type) : body["secret"];
  // Nothing that decoding refuses is hashed: that takes long.
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
