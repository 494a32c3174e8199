// basic-auth: authenticates clients by user name and password.
import { createHmac } from "node:crypto";
import { Type as t } from "@sinclair/typebox";
import { type Outcome, reject } from "../pdk/response.ts";
import { authenticationFields, isExempt, refuse, validMaterial } from "../pdk/authentication.ts";
import { type BasicLogin, readBasicLogin } from "../pdk/basic-login.ts";
import { Cache } from "../pdk/cache.ts";
import type { CredentialView, RequestContext } from "../pdk/context.ts";
import { passwordHashProblem, verifyForeignPassword, verifyPassword } from "../pdk/crypto.ts";
import { authScopes, definePlugin } from "../pdk/definition.ts";
import { stays } from "../pdk/destination.ts";
import { config, flag, listOf, secret } from "../pdk/fields.ts";
import { isFieldValue } from "../pdk/http.ts";
import type { PluginKit } from "../pdk/kit.ts";
import { networkOf } from "../pdk/net.ts";

const user = t.Object(
  {
    username: t.String({
      minLength: 1,
      maxLength: 256,
      pattern: "^[^:\\u0000-\\u001f\\u007f]+$",
      errorMessage: "must be text without colons and control characters",
      description: "User name",
    }),
    password_hash: stays(
      "it is only compared with what clients send",
      secret({
        description:
          "Hash of the password: argon2id as printed by `sluice hash-password`, or bcrypt as printed by `htpasswd -nB`; of existing password files also `$apr1$`, `$1$`, `$5$`, `$6$` (up to 200,000 rounds), `{SHA}` and `{SSHA}`",
      }),
    ),
  },
  { additionalProperties: false },
);

const schema = config({
  users: listOf(user, {
    description:
      "Users without a consumer; they precede consumers with credentials of the same name",
  }),
  consumers: flag(
    true,
    "Also authenticate consumers with credentials of the type basic; false: only the users above",
  ),
  ...authenticationFields,
});

type Config = (typeof schema)["static"];

/** RFC 7617 section 2.1. */
const CHALLENGE = 'Basic charset="UTF-8"';
const CACHE_MS = 60_000;
const MAX_CACHED = 10_000;
const WINDOW_MS = 60_000;
/** Wrong passwords per window and address. */
const MAX_FAILURES = 10;
/** An IPv6 client has at least such a network. */
const IPV6_PREFIX = 64;
/** Concurrent password checks; each takes about 20 MB and 30 ms. */
const MAX_UNDER_WAY = 256;

export default definePlugin({
  name: "basic-auth",
  summary: "Authenticates clients by user name and password (HTTP Basic)",
  description: `Users are part of this configuration, or are consumers with credentials of the type \`basic\`
(\`POST /api/v1/consumers/:id/credentials\`). Passwords are hashed outside of the request threads; a correct one is cached for a
minute, so that only the first request of a client waits for it.

After ten wrong passwords in a minute from one address (IPv6: one /64 network), the gateway responds 429 without checking further
ones, in all workers together. Cached logins are not affected. Without TLS, anyone on the network path can read the passwords.
bcrypt uses only the first 72 bytes of a password, and other programs truncate longer ones differently. The hashes of MD5 and SHA
in old password files (\`htpasswd -m\`, \`-s\`, \`-2\`, \`-5\`, \`openssl passwd\`) are accepted so that their users need no new password, but they
are weak: set new passwords with bcrypt or argon2id. They accept passwords of up to 512 bytes.`,
  group: "authentication",
  order: 8200,
  phases: ["auth"],
  scopes: authScopes,
  config: schema,
  example: {
    users: [
      {
        username: "alice",
        password_hash: "$2b$05$MhkTtlyhT7jGs040w89tq.moFGeyONR4LfL4X3wzJe7AffwYOLTo6",
      },
    ],
  },
  onError: "closed",
  ignoresPath: true,
  check: ({ users }) => {
    const names = new Set<string>();
    return users.flatMap(({ username, password_hash: hash }, at) => {
      const isKnown = names.has(username);
      names.add(username);
      // The gateway reports a missing secret itself.
      const problem = hash === "-" ? null : passwordHashProblem(hash);
      return [
        ...(isKnown ? [{ path: `users[${at}].username`, message: "is used twice" }] : []),
        ...(problem === null ? [] : [{ path: `users[${at}].password_hash`, message: problem }]),
      ];
    });
  },
  create(own, kit) {
    const authenticator = new Authenticator(own, kit);
    return {
      auth: (context) => authenticator.auth(context),
      authSkipped: (context) => authenticator.authSkipped(context),
    };
  },
});

/** The user a login may belong to: its password must match one of the hashes. */
interface Candidate {
  readonly credential: CredentialView | null;
  readonly verify: (password: string) => Promise<boolean>;
  /** Everything that must be unchanged for a cached result to hold. */
  readonly fingerprint: string;
  readonly isKnown: boolean;
}

class Authenticator {
  readonly #own: Config;
  readonly #kit: PluginKit;
  readonly #users: ReadonlyMap<string, string>;
  /** Hashes for checking the passwords of unknown users; null: that of consumers. */
  readonly #decoys: readonly (string | null)[];
  readonly #key: Uint8Array;
  /** Correct logins. */
  readonly #right = new Cache<true>({ maxEntries: MAX_CACHED, ttlMs: CACHE_MS });
  readonly #underWay = new Map<string, Promise<boolean>>();

  constructor(own: Config, kit: PluginKit) {
    this.#own = own;
    this.#kit = kit;
    this.#users = new Map(own.users.map(({ username, password_hash: hash }) => [username, hash]));
    this.#decoys = [...this.#users.values(), null];
    this.#key = kit.deriveKey("logins");
  }

  auth(context: RequestContext): Outcome | Promise<Outcome> {
    if (isExempt(context, this.#own)) return undefined;
    const header = context.header("authorization");
    if (header === null)
      return this.#reject(context, "auth.basic.missing", "user name and password are required");
    const login = readBasicLogin(header);
    if (login === null)
      return this.#reject(
        context,
        "auth.basic.malformed",
        "the user name and password are not valid",
      );
    const candidate = this.#candidateOf(context, login.username);
    const digest = this.#digest(login.username, login.password, candidate.fingerprint);
    if (this.#right.get(digest) === true) return this.#accept(context, login, candidate);
    return this.#check(context, { login, candidate, digest });
  }

  /** Removes the password of a user of this instance; the application may have its own users. */
  authSkipped(context: RequestContext): void {
    const login = readBasicLogin(context.header("authorization") ?? "");
    if (login === null || !this.#own.hide_credentials) return;
    const { username } = login;
    if (this.#users.has(username) || this.#credentialOf(context, username) !== null)
      context.upstream.removeHeader("authorization");
  }

  async #check(
    context: RequestContext,
    attempt: { readonly login: BasicLogin; readonly candidate: Candidate; readonly digest: string },
  ): Promise<Outcome> {
    const { login, candidate, digest } = attempt;
    let verdict = this.#underWay.get(digest);
    if (verdict === undefined) {
      if (this.#underWay.size >= MAX_UNDER_WAY)
        return reject(503, "auth.basic.busy", {
          detail: "too many concurrent password checks",
          headers: { "Retry-After": "1" },
        });
      const waitSeconds = this.#reserve(context);
      if (waitSeconds > 0)
        return reject(429, "auth.basic.throttled", {
          detail: "too many wrong passwords from this address",
          headers: { "Retry-After": String(waitSeconds) },
        });
      verdict = this.#verify(context, attempt);
      this.#underWay.set(digest, verdict);
    }
    if (!(await verdict))
      return this.#reject(context, "auth.basic.wrong", "the user name and password are not valid");
    return this.#accept(context, login, candidate);
  }

  async #verify(
    context: RequestContext,
    {
      login,
      candidate,
      digest,
    }: { readonly login: BasicLogin; readonly candidate: Candidate; readonly digest: string },
  ): Promise<boolean> {
    try {
      const isRight = (await candidate.verify(login.password)) && candidate.isKnown;
      if (isRight) {
        this.#right.set(digest, true);
        this.#kit.counters.add(networkKey(context), -1, WINDOW_MS);
      }
      return isRight;
    } finally {
      this.#underWay.delete(digest);
    }
  }

  /**
   * Counts an attempt as a failure before its password is checked, because concurrent ones would exceed the limit otherwise.
   * Returns 0 when the attempt is allowed, else the seconds until the next one is.
   */
  #reserve(context: RequestContext): number {
    const { counters } = this.#kit;
    const key = networkKey(context);
    // Atomic: adding and subtracting again could reject an attempt of another worker.
    const { isAdmitted, current, previous, elapsedMs } = counters.admit(key, {
      windowMs: WINDOW_MS,
      max: MAX_FAILURES,
      cost: 1,
      isSliding: true,
    });
    if (isAdmitted) return 0;
    const left = WINDOW_MS - elapsedMs;
    // The weight of the previous window falls during this window, and that of this window during the next.
    const waitMs =
      current < MAX_FAILURES
        ? left - (WINDOW_MS * (MAX_FAILURES - 1 - current)) / previous
        : left + WINDOW_MS * (1 - (MAX_FAILURES - 1) / current);
    return Math.max(1, Math.ceil(waitMs / 1000));
  }

  #candidateOf(context: RequestContext, username: string): Candidate {
    const hash = this.#users.get(username);
    if (hash !== undefined) return ofHash(hash, true);
    const credential = this.#credentialOf(context, username);
    const hashes = credential === null ? [] : hashesOf(credential);
    if (hashes.length === 0) return this.#decoyOf(username);
    return {
      credential,
      fingerprint: hashes.join(" "),
      isKnown: true,
      verify: async (password) => {
        const verdicts = await Promise.all(hashes.map((each) => verifyPassword(password, each)));
        return verdicts.includes(true);
      },
    };
  }

  #credentialOf(context: RequestContext, username: string): CredentialView | null {
    return this.#own.consumers ? context.consumers.credential("basic", username) : null;
  }

  /** Takes as long as for a known user, and the same time on each attempt: timing does not reveal which users exist. */
  #decoyOf(username: string): Candidate {
    const [first = 0] = createHmac("sha256", this.#key).update(`decoy ${username}`).digest();
    return ofHash(this.#decoys[first % this.#decoys.length] ?? null, false);
  }

  /** Identifies a login without the password. */
  #digest(username: string, password: string, fingerprint: string): string {
    const text = JSON.stringify([username, password, fingerprint]);
    return createHmac("sha256", this.#key).update(text).digest("base64");
  }

  #accept(context: RequestContext, { username }: BasicLogin, { credential }: Candidate): Outcome {
    if (credential === null) {
      const credentialId = isFieldValue(username) ? username : null;
      context.authenticate(null, { credentialId });
    } else {
      context.authenticate(credential.consumer, { credential });
      this.#kit.used(credential.id);
    }
    if (this.#own.hide_credentials) context.upstream.removeHeader("authorization");
    return undefined;
  }

  #reject(context: RequestContext, reason: string, detail: string): Outcome {
    return refuse(context, this.#own, { reason, detail, challenge: CHALLENGE });
  }
}

const networkKey = (context: RequestContext) => networkOf(context.clientAddress(), IPV6_PREFIX);

const hashesOf = (credential: CredentialView): string[] =>
  validMaterial(credential, Date.now())
    .map(({ hash }) => hash)
    .filter((hash) => hash !== null);

/** Hashes of other programs are of the password as sent. */
const ofHash = (hash: string | null, isKnown: boolean): Candidate => ({
  credential: null,
  fingerprint: hash ?? "",
  isKnown,
  verify: (password) =>
    hash === null ? verifyPassword(password, null) : verifyForeignPassword(password, hash),
});
