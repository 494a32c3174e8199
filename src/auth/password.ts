// The password policy, and generated passwords; knows nothing of storage.
import { randomInt } from "node:crypto";
import { commonPhrases, commonWords } from "../crypto/common-passwords.ts";
import { invalid } from "../model/error.ts";

const MIN_CHARACTERS = 10;
const MAX_LENGTH = 1024;

/**
 * Throws a 400 that never holds the password. `about` holds texts that must not be the password: e-mail address and name of
 * the user.
 */
export function checkPassword(
  password: unknown,
  about: readonly unknown[],
): asserts password is string {
  const problem = problemOf(password, about);
  if (problem !== null) throw invalid("password", problem);
}

function problemOf(password: unknown, about: readonly unknown[]): string | null {
  if (typeof password !== "string") return "must be a string";
  // A lone surrogate is replaced before hashing, so that different passwords would be equal.
  if (!password.isWellFormed()) return "must be valid Unicode";
  // In UTF-16 units, as in the schema of the sign-in.
  if (password.length > MAX_LENGTH) return `must have at most ${MAX_LENGTH} characters`;
  if ([...password].length < MIN_CHARACTERS)
    return `must have at least ${MIN_CHARACTERS} characters`;
  const plain = password.normalize("NFKC").toLowerCase();
  if (about.some((text) => isSame(text, plain)))
    return "must not be the e-mail address or the name of the user";
  return isCommon(plain) ? "is too common" : null;
}

const isSame = (text: unknown, plain: string) =>
  typeof text === "string" && text.normalize("NFKC").trim().toLowerCase() === plain.trim();

/** Whether a lower-case password is a common one or a simple variation of one. */
function isCommon(plain: string): boolean {
  if (plain.trim() === "" || isRun(plain) || isRepeated(plain)) return true;
  if (isListed(plain)) return true;
  // Leading and trailing digits and signs: "password2024!".
  const core = plain.replace(/^[^\p{L}]+|[^\p{L}]+$/gu, "");
  const repeated = /^(.+?)\1+$/su.exec(core)?.[1] ?? core;
  return [core, repeated].some((word) => word !== "" && isListed(word));
}

const isListed = (text: string) =>
  [text, withLetters(text)].some((word) => commonWords.has(word) || commonPhrases.has(word));

const LETTERS: Readonly<Record<string, string>> = {
  "0": "o",
  "1": "i",
  "3": "e",
  "4": "a",
  "5": "s",
  "7": "t",
  "@": "a",
  $: "s",
  "!": "i",
};

/** Signs that are written for letters: "p@ssw0rd". */
const withLetters = (text: string) => text.replace(/[013457@$!]/g, (sign) => LETTERS[sign] ?? sign);

/** A repeated sequence of a few characters: "abcabcabcabc", "aaaaaaaaaa". */
const isRepeated = (text: string) => /^(.{1,5})\1+$/su.test(text);

/** Each character is the one after, or the one before, the last: "abcdefghij", "9876543210". */
function isRun(text: string): boolean {
  const codes = [...text].map((character) => character.codePointAt(0) ?? 0);
  const steps = new Set(codes.slice(1).map((code, index) => code - (codes[index] ?? 0)));
  return steps.size === 1 && (steps.has(1) || steps.has(-1));
}

/** Without characters that look alike. */
const ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789";

/** 20 characters in groups, more than 98 bits of entropy, easy to read and type. */
export function createPassword(): string {
  const group = () =>
    Array.from({ length: 5 }, () => ALPHABET[randomInt(ALPHABET.length)]).join("");
  return [group(), group(), group(), group()].join("-");
}
