// Settings of single sign-on: read without the client secret, written with or without it; knows no HTTP.
import { isSafeUrl } from "../../net/loopback.ts";
import { SealError, type SecretBox } from "../../crypto/secret-box.ts";
import { decode } from "../../model/decode.ts";
import { invalid } from "../../model/error.ts";
import { mergePatch } from "../../model/merge-patch.ts";
import { type Sso, type SsoInput, ssoInput } from "../../model/sso.ts";
import { type Document, isDocument } from "../../control/body.ts";
import type { Changes } from "../../control/change.ts";
import { requireConditions, tagOf } from "../../control/representation.ts";
import type { Read, WriteOptions, Written } from "../../control/resource.ts";

/** Settings in responses: of the client secret only whether it is set. */
export type SsoView = Omit<Sso, "client_secret"> & { readonly client_secret_set: boolean };

export class SsoSettings {
  readonly #changes: Changes;
  readonly #box: SecretBox;

  constructor(changes: Changes, box: SecretBox) {
    this.#changes = changes;
    this.#box = box;
  }

  get(): Read<SsoView> {
    const { sso } = this.#changes.config;
    return { view: viewSso(sso), tag: tagOf(sso) };
  }

  /** Absent fields return to their defaults, but an absent client_secret is unchanged. */
  replace(body: unknown, options: WriteOptions): Promise<Written<SsoView>> {
    return this.#write(options, () => plain(body));
  }

  /** RFC 7396: members of `patch` replace those of the settings, null restores a default. */
  patch(patch: unknown, options: WriteOptions): Promise<Written<SsoView>> {
    return this.#write(options, (old) => {
      // For the secret, null is a value, and a reference replaces the old one completely.
      const { client_secret: secret, ...rest } = plain(patch);
      const merged = mergePatch(plain(viewSso(old)), rest) as Document;
      return secret === undefined ? merged : { ...merged, client_secret: secret };
    });
  }

  async #write(
    options: WriteOptions,
    documentOf: (old: Sso) => Document,
  ): Promise<Written<SsoView>> {
    const { value, revision, warnings } = await this.#changes.run({
      ...options,
      mutate: (draft) => {
        const old = draft.config.sso;
        requireConditions(options.conditions, old);
        const { client_secret: secret, ...fields } = decode(ssoInput, documentOf(old));
        requireUsable(fields);
        const client_secret =
          secret === undefined ? old.client_secret : this.#sealedSecret(secret, old);
        const same = { ...fields, client_secret, updated_at: old.updated_at };
        draft.summary = "update single sign-on";
        if (Bun.deepEquals(same, old)) return old;
        const sso = { ...same, updated_at: draft.stamp() };
        draft.putSingleton("sso", sso);
        return sso;
      },
    });
    return { view: viewSso(value), tag: tagOf(value), revision, warnings };
  }

  /** The stored secret. An unchanged one is not encrypted again, because each ciphertext differs. */
  #sealedSecret(
    secret: NonNullable<SsoInput["client_secret"]> | null,
    old: Sso,
  ): Sso["client_secret"] {
    if (secret === null || typeof secret !== "string") return secret;
    if (secret === "") throw invalid("client_secret", "must not be empty; null removes it");
    const before = old.client_secret;
    if (before !== null && "sealed" in before && this.#opened(before.sealed) === secret)
      return before;
    return { sealed: this.#box.seal(secret) };
  }

  #opened(sealed: string): string | null {
    try {
      return this.#box.open(sealed);
    } catch (error) {
      if (error instanceof SealError) return null;
      throw error;
    }
  }
}

function viewSso({ client_secret, ...sso }: Sso): SsoView {
  return { ...sso, client_secret_set: client_secret !== null };
}

/** The body without read-only fields, so that clients can send a response back. */
function plain(body: unknown): Document {
  if (!isDocument(body)) throw invalid("", "body must be a JSON object");
  const { updated_at: _, client_secret_set: _set, ...rest } = body;
  return rest;
}

function requireUsable(sso: Omit<SsoInput, "client_secret">): void {
  const { enabled, issuer, client_id: clientId, allowed_domains: domains } = sso;
  if (issuer !== "" && !isSafeUrl(issuer))
    throw invalid("issuer", "must be an https:// URL; http:// only for localhost");
  if (enabled && issuer === "") throw invalid("issuer", "is required while enabled is true");
  if (enabled && clientId === "") throw invalid("client_id", "is required while enabled is true");
  for (const [index, domain] of domains.entries())
    if (!/^[^\s@/:]+$/.test(domain))
      throw invalid(`allowed_domains[${index}]`, "must be a domain such as example.com");
}
