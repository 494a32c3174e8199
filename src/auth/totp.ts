// The second factor of users: one-time passwords of an authenticator app, and recovery codes; knows no password and no HTTP.
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import {
  codesNear,
  createTotpKey,
  findStep,
  looksLikeCode,
  type StepCode,
  toBase32,
  totpUri,
} from "../crypto/one-time-password.ts";
import type { SecretBox } from "../crypto/secret-box.ts";
import { ApiError, invalid } from "../model/error.ts";
import type { StoredSecondFactor } from "../model/fact.ts";
import type { User } from "../model/user.ts";
import type { Changes } from "../control/change.ts";
import type { RecordedFacts } from "../control/change-contract.ts";

/** The storage: at most one per user. */
export interface TotpStore {
  get(userId: string): StoredSecondFactor | null;
  all(): readonly StoredSecondFactor[];
  /** Does nothing when there is none. */
  remove(userId: string): void;
}

export interface SecondFactorsOptions {
  readonly store: TotpStore;
  readonly box: SecretBox;
  readonly changes: Changes;
}

/** The codes that the app of a user shows now, computed before the decision, which is made in one turn. */
export interface CurrentCodes {
  readonly sealedKey: string;
  readonly codes: readonly StepCode[];
}

/** What an authenticator app needs, shown once. */
export interface TotpSetup {
  /** The key in base32, to be typed. */
  readonly secret: string;
  /** The same as an address, to be shown as a picture. */
  readonly uri: string;
}

const ISSUER = "Sluice";
const RECOVERY_CODES = 10;
/** 80 bits: too many to guess, even with the hashes. */
const RECOVERY_BYTES = 10;

/** Decides what is to be recorded: with Changes.record no code can be used twice at the same time. */
export class SecondFactors {
  readonly #store: TotpStore;
  readonly #box: SecretBox;

  constructor({ store, box, changes }: SecondFactorsOptions) {
    this.#store = store;
    this.#box = box;
    // A user may have been deleted right before the process died.
    for (const { user_id } of store.all())
      if (!changes.config.users.has(user_id)) store.remove(user_id);
    changes.onStored(({ change }) => {
      for (const id of change.users.removals) store.remove(id);
    });
  }

  /** Users with a second factor. */
  userIds(): ReadonlySet<string> {
    const confirmed = this.#store.all().filter((record) => record.confirmed);
    return new Set(confirmed.map(({ user_id }) => user_id));
  }

  /** Whether sign-in requires a code beside the password. */
  needsSecondFactor(userId: string): boolean {
    return this.#store.get(userId)?.confirmed ?? false;
  }

  /** How many recovery codes have not been used; 0 without a second factor. */
  recoveryCodesLeft(userId: string): number {
    const record = this.#store.get(userId);
    return record?.confirmed === true ? record.recovery_hashes.length : 0;
  }

  /** Those at `now` (milliseconds); null for users without a second factor. */
  async currentCodes(userId: string, now: number): Promise<CurrentCodes | null> {
    const sealedKey = this.#store.get(userId)?.sealed_key;
    if (sealedKey === undefined) return null;
    const key = new Uint8Array(Buffer.from(this.#box.open(sealedKey), "base64url"));
    return { sealedKey, codes: await codesNear(key, now) };
  }

  /**
   * Whether `code`, from the app or one of the recovery codes, is right. The facts use it up. False for users without a second
   * factor.
   */
  verifySecondFactor(
    userId: string,
    code: string,
    current: CurrentCodes | null,
  ): RecordedFacts<boolean> {
    const record = this.#store.get(userId);
    if (record === null || !record.confirmed) return WRONG;
    const plain = normalized(code);
    return looksLikeCode(plain)
      ? useCode(record, plain, current)
      : this.#useRecoveryCode(record, plain);
  }

  /** Makes a key, which takes the place of one that was not confirmed; throws a 409 when the second factor is in use. */
  begin(user: User): RecordedFacts<TotpSetup> {
    if (this.needsSecondFactor(user.id))
      throw new ApiError(409, "the second factor is enabled already; disable it first");
    const key = createTotpKey();
    const setup = { secret: toBase32(key), uri: totpUri(ISSUER, user.email, key) };
    return put(setup, {
      user_id: user.id,
      sealed_key: this.#box.seal(Buffer.from(key).toString("base64url")),
      confirmed: false,
      last_step: 0,
      recovery_hashes: [],
    });
  }

  /** From here on a code is needed. Returns the recovery codes, which are shown once; throws a 400 for a wrong code. */
  confirm(
    userId: string,
    code: string,
    current: CurrentCodes | null,
  ): RecordedFacts<readonly string[]> {
    const record = this.#store.get(userId);
    if (record === null) throw new ApiError(409, "no second factor waits for a confirmation");
    if (record.confirmed) throw new ApiError(409, "the second factor is confirmed already");
    const step = stepOf(record, normalized(code), current);
    if (step === null) throw invalid("code", "is not the current code of the authenticator app");
    const codes = Array.from({ length: RECOVERY_CODES }, createRecoveryCode);
    return put(codes, {
      ...record,
      confirmed: true,
      last_step: step,
      recovery_hashes: codes.map((text) => hashOf(normalized(text))),
    });
  }

  /** False when there was none. */
  remove(userId: string): RecordedFacts<boolean> {
    if (this.#store.get(userId) === null) return WRONG;
    return { value: true, facts: [{ kind: "second_factor", user_id: userId, record: null }] };
  }

  #useRecoveryCode(record: StoredSecondFactor, code: string): RecordedFacts<boolean> {
    const given = Buffer.from(hashOf(code));
    // All are compared, so that the time does not tell which one it was.
    const left = record.recovery_hashes.filter(
      (hash) => hash.length !== given.length || !timingSafeEqual(Buffer.from(hash), given),
    );
    if (left.length === record.recovery_hashes.length) return WRONG;
    return put(true, { ...record, recovery_hashes: left });
  }
}

/** Nothing is right, and nothing to be recorded. */
const WRONG: RecordedFacts<boolean> = { value: false, facts: [] };

const put = <T>(value: T, record: StoredSecondFactor): RecordedFacts<T> => ({
  value,
  facts: [{ kind: "second_factor", user_id: record.user_id, record }],
});

function useCode(
  record: StoredSecondFactor,
  code: string,
  current: CurrentCodes | null,
): RecordedFacts<boolean> {
  const step = stepOf(record, code, current);
  return step === null ? WRONG : put(true, { ...record, last_step: step });
}

/** Null, too, when the user has got another key since the codes were computed. */
function stepOf(
  { sealed_key, last_step }: StoredSecondFactor,
  code: string,
  current: CurrentCodes | null,
): number | null {
  return current?.sealedKey === sealed_key ? findStep(current.codes, code, last_step) : null;
}

/** Four groups of four letters and digits. */
function createRecoveryCode(): string {
  const text = toBase32(new Uint8Array(randomBytes(RECOVERY_BYTES))).toLowerCase();
  return text.match(/.{4}/g)?.join("-") ?? text;
}

/** However people write it. */
const normalized = (code: string) => code.replaceAll(/[\s-]/g, "").toLowerCase();

const hashOf = (code: string) => createHash("sha256").update(code).digest("hex");
