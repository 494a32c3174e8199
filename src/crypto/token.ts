// Makes tokens that cannot be guessed and their hashes; knows nothing of what they open.
import { timingSafeEqual } from "node:crypto";
import { alphabet, generateRandomString } from "oslo/crypto";

/** Starts every token, so that programs that look for secrets in texts can find one. */
const PREFIX = "slt_";

/** That of base64url: a character has 6 random bits. */
const CHARACTERS = alphabet("a-z", "A-Z", "0-9", "-", "_");

/** 43 characters, which have 258 random bits. */
export const createRandomText = (): string => generateRandomString(43, CHARACTERS);

export const createToken = (): string => PREFIX + createRandomText();

/** SHA-256, hexadecimal: enough for a random text, and fast. */
export const hashToken = (token: string): string => Bun.SHA256.hash(token, "hex");

/**
 * What a session is found by. Behind HTTPS the cookie has the prefix `__Host-`, which other hosts of the domain cannot set;
 * the same value under a name that they can set opens nothing.
 */
export const hashSession = (value: string, isSecure: boolean): string =>
  hashToken(isSecure ? `__Host-${value}` : value);

/** Takes as long whatever they have in common. */
export const isSameHash = (one: string, other: string): boolean =>
  one.length === other.length && timingSafeEqual(Buffer.from(one), Buffer.from(other));

/** Tells tokens apart without telling what they are: the first 8 hexadecimal digits of the hash. */
export const fingerprintOf = (hash: string): string => hash.slice(0, 8);
