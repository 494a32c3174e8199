// Checks passwords against hashes that other programs made: argon2id, bcrypt, and those of htpasswd and `openssl passwd`. It makes none.
import { createHash, timingSafeEqual } from "node:crypto";
import { Pace, type Steps } from "../pace.ts";

const ARGON2ID =
  /^\$argon2id\$v=19\$m=(\d{1,7}),t=(\d{1,2}),p=(\d{1,2})\$[A-Za-z0-9+/]{11,86}\$[A-Za-z0-9+/]{16,172}$/;
const BCRYPT = /^\$2[aby]\$(\d\d)\$[A-Za-z0-9./]{53}$/;
/** Limits of one password check: 256 MiB, ten passes. */
const MAX_ARGON2_KIB = 262_144;
const MAX_ARGON2_PASSES = 10;
const MAX_BCRYPT_COST = 14;

/** `$apr1$` of Apache and `$1$` of crypt(3). */
const MD5_CRYPT = /^\$(apr1|1)\$([^$:\s]{0,8})\$([A-Za-z0-9./]{22})$/;
/** https://www.akkadia.org/drepper/SHA-crypt.txt */
const SHA_CRYPT =
  /^\$([56])\$(?:rounds=([1-9]\d{0,8})\$)?([^$:\s]{0,16})\$([A-Za-z0-9./]{43}|[A-Za-z0-9./]{86})$/;
/** RFC 2307 section 5.3. */
const SHA1 = /^\{(S?)SHA\}([A-Za-z0-9+/]{27,64}={0,2})$/;
const SHA1_BYTES = 20;
const DEFAULT_ROUNDS = 5000;
const MIN_ROUNDS = 1000;
/** About 0.3 s of one core. */
const MAX_ROUNDS = 200_000;
/** That of crypt(3): the cost of a round grows with the password. */
const MAX_PASSWORD_BYTES = 512;

/** Why no password can be checked against the hash; null: it can. Worded to follow the name of a field, and without any part of the hash. */
export function passwordHashProblem(hash: string): string | null {
  const argon2 = ARGON2ID.exec(hash);
  if (argon2 !== null) {
    const [kib, passes, lanes] = argon2.slice(1).map(Number);
    const isFair =
      (kib ?? 0) <= MAX_ARGON2_KIB && (passes ?? 0) <= MAX_ARGON2_PASSES && (lanes ?? 0) <= 16;
    return isFair ? null : "is too expensive to check: at most m=262144, t=10";
  }
  const bcrypt = BCRYPT.exec(hash);
  if (bcrypt !== null) {
    const cost = Number(bcrypt[1]);
    return cost >= 4 && cost <= MAX_BCRYPT_COST ? null : "must have a cost from 4 to 14";
  }
  const sha = SHA_CRYPT.exec(hash);
  if (sha !== null && (sha[4] ?? "").length === (sha[1] === "5" ? 43 : 86)) {
    const rounds = Number(sha[2] ?? DEFAULT_ROUNDS);
    return rounds >= MIN_ROUNDS && rounds <= MAX_ROUNDS
      ? null
      : `must have from ${MIN_ROUNDS} to ${MAX_ROUNDS} rounds`;
  }
  if (MD5_CRYPT.test(hash) || saltedSha1(hash) !== null) return null;
  return "must be a hash of argon2id, bcrypt, $apr1$, $1$, $5$, $6$, {SHA} or {SSHA}";
}

/** Of the password as sent. False for a hash with a problem. Costly checks do not block the event loop. */
export async function verifyForeignPassword(password: string, hash: string): Promise<boolean> {
  if (passwordHashProblem(hash) !== null) return false;
  try {
    if (ARGON2ID.test(hash) || BCRYPT.test(hash)) {
      // Bun rejects an empty password.
      const fits = await Bun.password.verify(password || "\0", hash);
      return fits && password !== "";
    }
    const bytes = Buffer.from(password);
    const isFair = bytes.length > 0 && bytes.length <= MAX_PASSWORD_BYTES;
    // The same work for a password that cannot be right.
    const found = await digestOf(isFair ? bytes : Buffer.from("\0"), hash);
    const fits = isSame(found, hash.slice(hash.lastIndexOf(hash.startsWith("{") ? "}" : "$") + 1));
    return fits && isFair;
  } catch {
    return false;
  }
}

const isSame = (one: string, other: string): boolean => {
  const [a, b] = [Buffer.from(one), Buffer.from(other)];
  return a.length === b.length && timingSafeEqual(a, b);
};

/** What follows the salt of the hash when the password is right. */
async function digestOf(password: Buffer, hash: string): Promise<string> {
  const salted = saltedSha1(hash);
  if (salted !== null)
    return Buffer.concat([digest("sha1", password, salted), salted]).toString("base64");
  const [, magic = "", salt = ""] = MD5_CRYPT.exec(hash) ?? [];
  if (magic !== "") return inTurn(md5Crypt(password, magic, Buffer.from(salt)));
  const [, kind, rounds = DEFAULT_ROUNDS, shaSalt = ""] = SHA_CRYPT.exec(hash) ?? [];
  const algorithm = kind === "5" ? "sha256" : "sha512";
  return inTurn(shaCrypt(algorithm, password, { salt: Buffer.from(shaSalt), rounds: +rounds }));
}

/** The salt behind the digest, empty for `{SHA}`; null: another kind of hash. */
function saltedSha1(hash: string): Buffer | null {
  const [, isSalted, text = ""] = SHA1.exec(hash) ?? [];
  if (isSalted === undefined) return null;
  const bytes = Buffer.from(text, "base64");
  const isWhole = bytes.toString("base64") === text && bytes.length >= SHA1_BYTES;
  const salt = bytes.subarray(SHA1_BYTES);
  return isWhole && (isSalted === "" ? salt.length === 0 : salt.length > 0) ? salt : null;
}

let last: Promise<unknown> = Promise.resolve();

/** One check at a time, in slices of the time that a worker may be busy. */
function inTurn(steps: Steps<string>): Promise<string> {
  const done = last.then(() => new Pace({ objects: 1000, ms: 2 }).run(steps));
  last = done.catch(() => {});
  return done;
}

function digest(algorithm: string, ...parts: readonly Uint8Array[]): Buffer {
  const hash = createHash(algorithm);
  for (const part of parts) hash.update(part);
  return hash.digest();
}

/** Rounds between two looks at the clock. */
const ROUNDS_AT_ONCE = 50;

interface Round {
  readonly count: number;
  /** The digest before the first round. */
  readonly first: Buffer;
  readonly password: Buffer;
  readonly salt: Buffer;
}

/** The loop of both kinds. */
function* stretched(algorithm: string, { count, first, password, salt }: Round): Steps<Buffer> {
  let made = first;
  for (let at = 0; at < count; at++) {
    const hash = createHash(algorithm).update(at % 2 === 1 ? password : made);
    if (at % 3 !== 0) hash.update(salt);
    if (at % 7 !== 0) hash.update(password);
    made = hash.update(at % 2 === 1 ? made : password).digest();
    if (at % ROUNDS_AT_ONCE === 0) yield;
  }
  return made;
}

const repeated = (bytes: Buffer, length: number): Buffer => Buffer.alloc(length, bytes);

function* md5Crypt(password: Buffer, magic: string, salt: Buffer): Steps<string> {
  const parts = [password, Buffer.from(`$${magic}$`), salt];
  parts.push(repeated(digest("md5", password, salt, password), password.length));
  for (let left = password.length; left > 0; left >>= 1)
    parts.push(left % 2 === 1 ? Buffer.from([0]) : password.subarray(0, 1));
  const first = digest("md5", ...parts);
  const made = yield* stretched("md5", { count: 1000, first, password, salt });
  const triples = [0, 1, 2, 3, 4].map((at) => [at, at + 6, at === 4 ? 5 : at + 12]);
  return encoded(made, [...triples, [11]]);
}

function* shaCrypt(
  algorithm: "sha256" | "sha512",
  password: Buffer,
  { salt, rounds }: { readonly salt: Buffer; readonly rounds: number },
): Steps<string> {
  const other = digest(algorithm, password, salt, password);
  const parts = [password, salt, repeated(other, password.length)];
  for (let left = password.length; left > 0; left >>= 1)
    parts.push(left % 2 === 1 ? other : password);
  const first = digest(algorithm, ...parts);
  const passwords = repeated(password, password.length * password.length);
  const salts = repeated(salt, salt.length === 0 ? 0 : salt.length * (16 + (first[0] ?? 0)));
  const made = yield* stretched(algorithm, {
    count: rounds,
    first,
    password: repeated(digest(algorithm, passwords), password.length),
    salt: repeated(digest(algorithm, salts), salt.length),
  });
  const third = algorithm === "sha256" ? 10 : 21;
  // Each triple begins one third later, or earlier, than the one before it.
  const turn = algorithm === "sha256" ? 2 : 1;
  const triples = Array.from({ length: third }, (_, at) =>
    [0, 1, 2].map((one) => at + third * ((one + at * turn) % 3)),
  );
  return encoded(made, [...triples, algorithm === "sha256" ? [31, 30] : [63]]);
}

const DIGITS = "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/** Base64 of crypt(3): the low bits first, of the bytes at these places. */
function encoded(bytes: Buffer, places: readonly (readonly number[])[]): string {
  return places
    .map((group) => {
      let bits = group.reduce((sum, at) => sum * 256 + (bytes[at] ?? 0), 0);
      let text = "";
      for (let left = group.length + 1; left > 0; left--) {
        text += DIGITS[bits % 64];
        bits = Math.floor(bits / 64);
      }
      return text;
    })
    .join("");
}
