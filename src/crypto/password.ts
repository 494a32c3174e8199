// Hashes and checks passwords with argon2id; knows neither whose they are nor which ones are good.

/** What OWASP recommends at least: 19 MiB and two passes, about 30 ms of one core. */
const COST = { algorithm: "argon2id", memoryCost: 19_456, timeCost: 2 } as const;

/**
 * The hash of a random password: checked when a user has none or does not exist, so that the response time does not reveal
 * either.
 */
const DUMMY_HASH =
  "$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/** In PHC form, with a salt of its own. Runs beside the event loop. */
export function hashPassword(password: string): Promise<string> {
  return Bun.password.hash(comparable(password), COST);
}

/** Whether the password belongs to the hash; takes as long when there is no hash. False for a hash of an unknown kind. */
export async function verifyPassword(password: string, hash: string | null): Promise<boolean> {
  try {
    const fits = await Bun.password.verify(comparable(password), hash ?? DUMMY_HASH);
    return fits && hash !== null;
  } catch {
    return false;
  }
}

/** Keyboards send the same letter in different forms: NIST SP 800-63B 3.1.1.2. Bun refuses to hash nothing at all. */
const comparable = (password: string) => password.normalize("NFKC") || "\0";
