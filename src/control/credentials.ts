// Credentials of consumers: generates or validates secrets, hashes or seals them, shows them once and rotates them; knows no HTTP.
import type { Clock } from "../clock.ts";
import type { SecretBox } from "../crypto/secret-box.ts";
import {
  type Credential,
  type CredentialInput,
  credentialInput,
  rotationInput,
} from "../model/credential.ts";
import { decode } from "../model/decode.ts";
import { ApiError, invalid } from "../model/error.ts";
import { isDocument } from "./body.ts";
import type { Changes } from "./change.ts";
import { HASH, prepareDocument as prepare } from "./credential-document.ts";
import {
  algorithmOf,
  checkPublicKey,
  checkSecret,
  createIdentifier,
  createSecret,
  hashBasic,
  hasSharedSecret,
  type Material,
  noMaterial,
  toMaterial,
} from "./credential-secrets.ts";
import type { CredentialUse } from "./credential-use.ts";
import type { Draft } from "./draft.ts";
import { findByKey, withIds } from "./key.ts";
import type { QueryEntry } from "./list-filter.ts";
import { labelOf } from "./reference.ts";
import { requireConditions, tagOf } from "./representation.ts";
import {
  type FieldsOf,
  type Read,
  type Removed,
  Resource,
  type ResourceKind,
  type WriteOptions,
  type Written,
} from "./resource.ts";

/** A credential in responses: never its secret. */
export type CredentialView = Omit<Credential, keyof Material | "previous"> & {
  readonly prefix: string | null;
  /** RFC 3339: until when the secret from before the last rotation stays valid; null: it is invalid. */
  readonly previous_until: string | null;
  /** RFC 3339; null: never. */
  readonly last_used_at: string | null;
};

export interface CredentialsOptions {
  readonly changes: Changes;
  readonly use: CredentialUse;
  readonly box: SecretBox;
  readonly clock: Clock;
}

export class Credentials {
  readonly #options: CredentialsOptions;
  readonly #resource: Resource<"credentials", CredentialView>;

  constructor(options: CredentialsOptions) {
    this.#options = options;
    this.#resource = new Resource(options.changes, this.#kind());
  }

  list(query: readonly QueryEntry[]): Read<readonly CredentialView[]> {
    return this.#resource.list(query);
  }

  /** The credentials of the consumer with the id or username `key`; throws a 404 when there is none. */
  listIn(key: string, query: readonly QueryEntry[]): Read<readonly CredentialView[]> {
    return this.list([...query, ["consumer_id", this.#consumerId(key)]]);
  }

  get(key: string): Read<CredentialView> {
    return this.#resource.get(key);
  }

  async create(body: unknown, options: WriteOptions): Promise<Written<CredentialView>> {
    const { document, secret } = await prepare(body, null);
    return showing(await this.#resource.create(document, options), secret, options);
  }

  async createIn(
    key: string,
    body: unknown,
    options: WriteOptions,
  ): Promise<Written<CredentialView>> {
    const id = this.#consumerId(key);
    if (!isDocument(body)) return await this.create(body, options);
    const named = body["consumer_id"];
    if (named !== undefined && named !== key && named !== id)
      throw invalid("consumer_id", "must be the consumer in the path, or absent");
    return await this.create({ ...body, consumer_id: id }, options);
  }

  async replace(
    key: string,
    body: unknown,
    options: WriteOptions,
  ): Promise<Written<CredentialView>> {
    const { document, secret } = await prepare(body, this.#find(key));
    return showing(await this.#resource.replace(key, document, options), secret, options);
  }

  async patch(
    key: string,
    patch: unknown,
    options: WriteOptions,
  ): Promise<Written<CredentialView>> {
    const old = this.#find(key);
    // Check first: no secret is generated for a missing credential.
    const document = old === null ? patch : (await prepare(patch, old)).document;
    return await this.#resource.patch(key, document, options);
  }

  remove(key: string, options: WriteOptions & { readonly cascade: boolean }): Promise<Removed> {
    return this.#resource.remove(key, options);
  }

  /** Generates a new secret, which only this response shows. The old one stays valid for `overlap_seconds`. */
  async rotate(
    key: string,
    body: unknown,
    options: WriteOptions,
  ): Promise<Written<CredentialView>> {
    const { overlap_seconds: overlap } = decode(rotationInput, body ?? {});
    const { type } = this.#existing(key);
    const secret = createSecret(type);
    const hash = type === "basic" ? await hashBasic(secret, null) : null;
    const { value, ...written } = await this.#options.changes.run({
      ...options,
      mutate: (draft) => {
        const old = this.#existing(key, draft);
        requireConditions(options.conditions, old);
        if (old.type !== type) throw changedMeanwhile();
        if (!hasSharedSecret(old.algorithm))
          throw invalid("algorithm", `${old.algorithm} has a key pair: write a new public_key`);
        const at = draft.stamp();
        const { secret_hash, sealed_secret } = old;
        const until = new Date(Date.parse(at) + overlap * 1000).toISOString();
        const { box } = this.#options;
        const next = {
          ...old,
          ...(hash === null
            ? toMaterial(secret, { type, old: null, box })
            : { ...noMaterial, secret_hash: hash }),
          previous: overlap === 0 ? null : { secret_hash, sealed_secret, until },
          updated_at: at,
        };
        draft.put("credentials", next);
        draft.setPath(next.id, "");
        draft.summary = `rotate ${labelOf(draft.config, { collection: "credentials", id: next.id })}`;
        return { view: this.#view(next), tag: tagOf(next) };
      },
    });
    return showing({ ...value, ...written }, secret, options);
  }

  #consumerId(key: string): string {
    const consumer = findByKey(this.#options.changes.config.consumers, key);
    if (consumer === null) throw new ApiError(404, `consumer "${key}" does not exist`);
    return consumer.id;
  }

  #find(key: string): Credential | null {
    return findById(this.#options.changes.config.credentials, key);
  }

  #existing(key: string, draft?: Draft): Credential {
    const { credentials } = draft?.config ?? this.#options.changes.config;
    const found = findById(credentials, key);
    if (found === null) throw new ApiError(404, `credential "${key}" does not exist`);
    return found;
  }

  #kind(): ResourceKind<"credentials", CredentialView> {
    return {
      collection: "credentials",
      find: findById,
      decode: (document, draft, old) => ({ fields: this.#fieldsOf(document, draft, old) }),
      sendable: ({
        secret_hash: _,
        sealed_secret: _sealed,
        previous: _old,
        prefix: _prefix,
        ...rest
      }) => rest,
      viewer: () => (credential) => this.#view(credential),
    };
  }

  #fieldsOf(document: unknown, draft: Draft, old: Credential | null): FieldsOf<"credentials"> {
    const { [HASH]: hash, ...rest } = document as Record<string, unknown>;
    const { secret, ...sent } = decode(credentialInput, rest);
    const input = withIds("credentials", sent, draft.config);
    const { consumer_id } = input;
    if (old !== null && old.type !== input.type) throw invalid("type", "cannot be changed");
    if (old !== null && old.consumer_id !== consumer_id)
      throw invalid("consumer_id", "cannot be changed");
    const { type, expires_at: expiry } = input;
    const algorithm = algorithmOf(type, input.algorithm);
    const made = typeof hash === "string" ? { ...noMaterial, secret_hash: hash } : null;
    const material = this.#materialOf({ type, algorithm, secret, made }, old);
    const isKept =
      old?.secret_hash === material.secret_hash && old.sealed_secret === material.sealed_secret;
    return {
      ...input,
      ...material,
      consumer_id,
      algorithm,
      identifier: input.identifier ?? defaultIdentifier(type, old, usernameOf(draft, consumer_id)),
      public_key: publicKeyOf(input, algorithm),
      // A normalized time, because times are compared as texts.
      expires_at: expiry === null ? null : new Date(expiry).toISOString(),
      previous: isKept ? this.#livePrevious(old) : null,
    };
  }

  #materialOf(
    asked: Pick<Credential, "type" | "algorithm"> & {
      readonly secret: string | undefined;
      readonly made: Material | null;
    },
    old: Credential | null,
  ): Material {
    const { type, algorithm, secret, made } = asked;
    if (!hasSharedSecret(algorithm)) {
      if (secret !== undefined)
        throw invalid("secret", `must be absent for ${algorithm}, which has a key pair`);
      return noMaterial;
    }
    const before: Material | null =
      old === null
        ? null
        : { secret_hash: old.secret_hash, sealed_secret: old.sealed_secret, prefix: old.prefix };
    // The document was prepared for another type: that credential was deleted meanwhile, and this one has its id.
    if ((made !== null && type !== "basic") || (type === "basic" && secret !== undefined))
      throw changedMeanwhile();
    if (made !== null) return made;
    if (secret === undefined) return before ?? noMaterial;
    checkSecret(type, secret);
    return toMaterial(secret, { type, old: before, box: this.#options.box });
  }

  /** The secret from before the last rotation, unless it has expired. */
  #livePrevious(old: Credential | null): Credential["previous"] {
    const previous = old?.previous ?? null;
    if (previous === null) return null;
    return Date.parse(previous.until) > this.#options.clock.now() ? previous : null;
  }

  #view(credential: Credential): CredentialView {
    const { secret_hash: _, sealed_secret: _sealed, previous: _previous, ...rest } = credential;
    return {
      ...rest,
      previous_until: this.#livePrevious(credential)?.until ?? null,
      last_used_at: this.#options.use.lastUsedAt(credential.id),
    };
  }
}

const changedMeanwhile = () => new ApiError(409, "was changed meanwhile; read it again and retry");

/** Their names are not unique. */
const findById = (credentials: ReadonlyMap<string, Credential>, key: string): Credential | null =>
  credentials.get(key.toLowerCase()) ?? null;

const usernameOf = (draft: Draft, consumerId: string): string =>
  draft.config.consumers.get(consumerId)?.username ?? "";

function defaultIdentifier(
  type: Credential["type"],
  old: Credential | null,
  username: string,
): string | null {
  if (type === "key") return null;
  if (type !== "basic") return old?.identifier ?? createIdentifier();
  // RFC 7617 section 2: everything from the first colon on is the password.
  if (username.includes(":"))
    throw invalid("identifier", "is required, because the username of the consumer holds a colon");
  return username;
}

function publicKeyOf(
  { type, public_key: pem }: CredentialInput,
  algorithm: Credential["algorithm"],
): string | null {
  if (pem === null || type === "key" || type === "basic") return pem;
  if (algorithm === null || hasSharedSecret(algorithm))
    throw invalid("public_key", `must be null for ${algorithm}, which has a secret`);
  return checkPublicKey(pem, algorithm);
}

/** A dry run discards the generated secret. */
function showing(
  written: Written<CredentialView>,
  secret: string | null,
  { dryRun }: WriteOptions,
): Written<CredentialView> {
  if (secret === null || dryRun) return written;
  return { ...written, view: { ...written.view, secret } as CredentialView };
}
