// ldap-auth: authenticates clients by user name and password against an LDAP directory.
import { type Outcome, reject } from "../pdk/response.ts";
import { isExempt, refuse } from "../pdk/authentication.ts";
import { type BasicLogin, readBasicLogin } from "../pdk/basic-login.ts";
import { Cache } from "../pdk/cache.ts";
import type { RequestContext } from "../pdk/context.ts";
import { authScopes, definePlugin } from "../pdk/definition.ts";
import type { PluginKit } from "../pdk/kit.ts";
import { networkOf } from "../pdk/net.ts";
import { Directory, type DirectoryUser } from "./ldap-auth/directory.ts";
import { type Config, problemsOf, schema } from "./ldap-auth/settings.ts";

/** RFC 7617 section 2.1. */
const CHALLENGE = 'Basic charset="UTF-8"';
const MAX_CACHED = 10_000;
const MAX_NAME = 256;
const MAX_PASSWORD = 1024;
/** Concurrent connections to the directory. */
const MAX_UNDER_WAY = 64;
const WINDOW_MS = 60_000;
/** Wrong passwords per minute and address: directories lock accounts after a few. */
const MAX_FAILURES = 10;
/** An IPv6 client has at least such a network. */
const IPV6_PREFIX = 64;

type Verdict =
  | { readonly kind: "right"; readonly user: DirectoryUser }
  | { readonly kind: "wrong" | "unavailable" };

class Authenticator {
  readonly #own: Config;
  readonly #kit: PluginKit;
  readonly #directory: Directory;
  readonly #key: Uint8Array;
  readonly #right: Cache<DirectoryUser>;
  readonly #underWay = new Map<string, Promise<Verdict>>();

  constructor(own: Config, kit: PluginKit, directory: Directory) {
    this.#own = own;
    this.#kit = kit;
    this.#directory = directory;
    this.#key = kit.deriveKey("logins");
    this.#right = new Cache({ maxEntries: MAX_CACHED, ttlMs: own.cache_ttl * 1000 });
  }

  auth(context: RequestContext): Outcome | Promise<Outcome> {
    if (isExempt(context, this.#own)) return undefined;
    const header = context.header("authorization");
    if (header === null)
      return this.#reject(context, "auth.ldap.missing", "user name and password are required");
    const login = readBasicLogin(header);
    if (login === null || !isPossible(login)) return this.#wrong(context);
    const text = JSON.stringify([login.username, login.password]);
    const digest = new Bun.CryptoHasher("sha256", this.#key).update(text).digest("base64url");
    const known = this.#right.get(digest);
    if (known !== undefined) return this.#accept(context, login, known);
    return this.#check(context, login, digest);
  }

  async #check(context: RequestContext, login: BasicLogin, digest: string): Promise<Outcome> {
    let verdict = this.#underWay.get(digest);
    if (verdict === undefined) {
      if (this.#underWay.size >= MAX_UNDER_WAY)
        return reject(503, "auth.ldap.busy", {
          detail: "too many concurrent password checks",
          headers: { "Retry-After": "1" },
        });
      const wait = this.#reserve(context);
      if (wait > 0)
        return reject(429, "auth.ldap.throttled", {
          detail: "too many wrong passwords from this address",
          headers: { "Retry-After": String(wait) },
        });
      verdict = this.#ask(context, login, digest).finally(() => this.#underWay.delete(digest));
      this.#underWay.set(digest, verdict);
    }
    const result = await verdict;
    if (result.kind === "right") return this.#accept(context, login, result.user);
    if (result.kind === "wrong") return this.#wrong(context);
    return reject(503, "auth.ldap.unavailable", {
      detail: "the password cannot be checked at the moment",
      token: "proxy_internal_response",
    });
  }

  async #ask(context: RequestContext, login: BasicLogin, digest: string): Promise<Verdict> {
    const { counters, log } = this.#kit;
    try {
      const user = await this.#directory.check(login.username, login.password);
      if (user === null) return { kind: "wrong" };
      counters.add(networkKey(context), -1, WINDOW_MS);
      this.#right.set(digest, user);
      return { kind: "right", user };
    } catch (error) {
      counters.add(networkKey(context), -1, WINDOW_MS);
      const [message = ""] = (error as Error).message.split("\n");
      log("warn", "the directory is unavailable", { error: message });
      return { kind: "unavailable" };
    }
  }

  /** Counts an attempt as a failure before it is made, because concurrent ones would exceed the limit; 0 or seconds to wait. */
  #reserve(context: RequestContext): number {
    const { counters } = this.#kit;
    // Atomic: adding and subtracting again could reject an attempt of another worker.
    const { isAdmitted, elapsedMs } = counters.admit(networkKey(context), {
      windowMs: WINDOW_MS,
      max: MAX_FAILURES,
      cost: 1,
      isSliding: true,
    });
    if (isAdmitted) return 0;
    const left = WINDOW_MS - elapsedMs;
    return Math.max(1, Math.ceil(left / 1000));
  }

  #accept(context: RequestContext, { username }: BasicLogin, { groups }: DirectoryUser): Outcome {
    const { consumer_by: by, hide_credentials: hides } = this.#own;
    // Directories ignore case, and one user must not have several names here.
    const name = username.replace(/ +/g, " ").toLowerCase();
    const { consumers } = context;
    const consumer =
      by === null
        ? null
        : by === "username"
          ? consumers.byUsername(name)
          : consumers.byCustomId(name);
    context.authenticate(consumer, { credentialId: name, groups });
    if (hides) context.upstream.removeHeader("authorization");
    return undefined;
  }

  #wrong(context: RequestContext): Outcome {
    return this.#reject(context, "auth.ldap.wrong", "the user name and password are not valid");
  }

  #reject(context: RequestContext, reason: string, detail: string): Outcome {
    return refuse(context, this.#own, { reason, detail, challenge: CHALLENGE });
  }
}

const networkKey = (context: RequestContext) => networkOf(context.clientAddress(), IPV6_PREFIX);

/** A bind with an empty password succeeds. Directories ignore blanks around names, so a blank name would match none. */
const isPossible = ({ username, password }: BasicLogin) =>
  username !== "" &&
  username === username.trim() &&
  username.length <= MAX_NAME &&
  password !== "" &&
  password.length <= MAX_PASSWORD;

export default definePlugin({
  name: "ldap-auth",
  summary: "Authenticates clients by user name and password against an LDAP directory",
  description: `There are two ways to check a password. With \`\${username}\` in \`bind_dn\` the gateway binds as the client:
\`uid=\${username},ou=people,dc=example,dc=com\`, or \`\${username}@corp.example\` with Active Directory. With a \`base_dn\`, exactly one
entry must match \`filter\` as well. Otherwise the gateway binds as the account in \`bind_dn\`, searches the client's entry with
\`base_dn\` and \`filter\`, and binds as that entry. It escapes names wherever it inserts them, and rejects empty passwords before it
contacts the directory.

With \`group_base_dn\` the gateway reads the client's groups, for acl and other plugins. The target receives the user name, in lower
case, in X-Credential-Identifier.

Use \`ldaps://\` or \`start_tls\`: over plain \`ldap://\` anyone on the network path can read the passwords. Correct passwords are
cached for \`cache_ttl\` seconds as a keyed digest, so that an old password or a locked account keeps working that long. After ten
wrong passwords in a minute from one address, the gateway responds 429 to further ones. While the directory is unavailable, it
responds 503.`,
  group: "authentication",
  order: 8100,
  phases: ["auth"],
  scopes: authScopes,
  config: schema,
  example: {
    url: "ldaps://ldap.example.com",
    bind_dn: "uid=${username},ou=people,dc=example,dc=com",
    group_base_dn: "ou=groups,dc=example,dc=com",
  },
  onError: "closed",
  ignoresPath: true,
  check: problemsOf,
  async create(own, kit) {
    const authenticator = new Authenticator(
      own,
      kit,
      new Directory(own, await import("ldapts"), kit.dialer),
    );
    const { hide_credentials: hides } = own;
    return {
      auth: (context) => authenticator.auth(context),
      // Without authentication it is unknown whether the password belongs to the directory.
      authSkipped(context) {
        if (hides && readBasicLogin(context.header("authorization") ?? "") !== null)
          context.upstream.removeHeader("authorization");
      },
    };
  },
});
