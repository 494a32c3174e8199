// Certificates: uploaded ones are checked and put in order, self-signed ones are made, others are ordered later; keys are sealed and never shown. No HTTP words.
import type { Clock } from "../clock.ts";
import {
  type CertificateChain,
  ChainError,
  namesIn,
  readChain,
} from "../crypto/certificate-chain.ts";
import type { SecretBox } from "../crypto/secret-box.ts";
import { createSelfSigned } from "../crypto/x509.ts";
import {
  type Certificate,
  certificateFacts,
  certificateInput,
  type CertificateStatus,
  isIssued,
} from "../model/certificate.ts";
import { decode } from "../model/decode.ts";
import { ApiError, invalid } from "../model/error.ts";
import { mergePatch } from "../model/merge-patch.ts";
import { issuingFields, materialWhileOrdered } from "./acme/certificate-fields.ts";
import { noProgress, type Progress, statusOf } from "./acme/progress.ts";
import { type Document, isDocument } from "./body.ts";
import type { Changes } from "./change.ts";
import { findByKey } from "./key.ts";
import type { QueryEntry } from "./list-filter.ts";
import {
  type Read,
  type Removed,
  Resource,
  type ResourceKind,
  type WriteOptions,
  type Written,
} from "./resource.ts";

/** What clients see of a certificate: never its key. */
export type CertificateView = Omit<Certificate, "sealed_key"> &
  Omit<Progress, "isRunning"> & { readonly status: CertificateStatus };

const SELF_SIGNED_DAYS = 397;

const readOnly = Object.keys(certificateFacts);

export interface CertificatesOptions {
  readonly changes: Changes;
  readonly box: SecretBox;
  readonly clock: Clock;
  /** How far the ordering of one has come. Default: nothing is ordered. */
  readonly progressOf?: (certificate: Certificate) => Progress;
}

export class Certificates {
  readonly #changes: Changes;
  readonly #box: SecretBox;
  readonly #clock: Clock;
  readonly #progressOf: (certificate: Certificate) => Progress;
  readonly #resource: Resource<"certificates", CertificateView>;

  constructor({ changes, box, clock, progressOf = () => noProgress }: CertificatesOptions) {
    this.#changes = changes;
    this.#box = box;
    this.#clock = clock;
    this.#progressOf = progressOf;
    this.#resource = new Resource(changes, this.#kind());
  }

  list(query: readonly QueryEntry[]): Read<readonly CertificateView[]> {
    return this.#resource.list(query);
  }

  get(key: string): Read<CertificateView> {
    return this.#resource.get(key);
  }

  /** The chain as PEM, without the key. */
  chainOf(key: string): string {
    const { certificate, name } = this.#resource.get(key).view;
    if (certificate === null)
      throw new ApiError(409, `certificate "${name}" has not been issued yet`);
    return certificate;
  }

  /** Throws a 404 when there is none. */
  find(key: string): Certificate {
    const { id } = this.#resource.get(key).view;
    const found = this.#changes.config.certificates.get(id);
    if (found === undefined) throw new ApiError(404, `certificate "${key}" does not exist`);
    return found;
  }

  async create(body: unknown, options: WriteOptions): Promise<Written<CertificateView>> {
    return await this.#resource.create(await this.#withMaterial(body, null), options);
  }

  async replace(
    key: string,
    body: unknown,
    options: WriteOptions,
  ): Promise<Written<CertificateView>> {
    const old = this.#find(key);
    return await this.#resource.replace(key, await this.#withMaterial(body, old), options);
  }

  async patch(
    key: string,
    patch: unknown,
    options: WriteOptions,
  ): Promise<Written<CertificateView>> {
    const old = this.#find(key);
    const whole = old === null ? patch : mergePatch(sendable(old), patch);
    const { certificate, private_key: secret } = Object(await this.#withMaterial(whole, old));
    const made = secret === undefined ? {} : { certificate, private_key: secret };
    return await this.#resource.patch(key, { ...Object(patch), ...made }, options);
  }

  remove(key: string, options: WriteOptions & { readonly cascade: boolean }): Promise<Removed> {
    return this.#resource.remove(key, options);
  }

  #find(key: string): Certificate | null {
    return findByKey(this.#changes.config.certificates, key);
  }

  /** A self-signed certificate is made before the change begins, because that takes a while. */
  async #withMaterial(body: unknown, old: Certificate | null): Promise<unknown> {
    if (!isDocument(body)) return body;
    if (body["source"] === "acme" || body["certificate"] === null) {
      // What was read can be sent back, also when it was renewed in between.
      const { certificate: _, ...rest } = body;
      return rest;
    }
    if (body["source"] !== "self_signed") return body;
    const isOwn = (field: "certificate" | "private_key") =>
      !(field in body) || (field === "certificate" && body[field] === old?.certificate);
    for (const field of ["certificate", "private_key"] as const)
      if (!isOwn(field))
        throw invalid(field, 'is made by the gateway when source is "self_signed"');
    const { certificate: _, ...rest } = body;
    const names = domainsOf(body);
    const keeps =
      old?.source === "self_signed" && Bun.deepEquals(old.domains, names) && this.#lasts(old);
    if (keeps) return { ...rest, certificate: old.certificate };
    if (names.length === 0) throw invalid("domains", "is required");
    const now = this.#clock.now();
    const pair = await createSelfSigned({ names, addresses: [], now, validDays: SELF_SIGNED_DAYS });
    return { ...rest, certificate: pair.cert, private_key: pair.key };
  }

  #lasts({ not_after: end }: Certificate): boolean {
    return end !== null && Date.parse(end) > this.#clock.now();
  }

  #kind(): ResourceKind<"certificates", CertificateView> {
    return {
      collection: "certificates",
      word: "certificate",
      readOnly,
      parents: {},
      decode: (document, draft, old) => {
        const { certificate, private_key: key, ...input } = decode(certificateInput, document);
        const fields = { ...input, ...issuingFields(input, draft.config) };
        if (fields.source === "acme") {
          if (key !== undefined)
            throw invalid("private_key", 'is made by the gateway when source is "acme"');
          return { fields: { ...fields, ...materialWhileOrdered(old) } };
        }
        const pem = certificate ?? old?.certificate ?? null;
        if (pem === null) throw invalid("certificate", "is required");
        const sealed = old?.sealed_key ?? null;
        if (key === undefined && sealed === null) throw invalid("private_key", "is required");
        const chain = this.#read(pem, key ?? this.#box.open(sealed ?? ""));
        return {
          fields: {
            ...fields,
            domains: chosenNames(fields.domains, chain, old),
            certificate: chain.certificate,
            sealed_key: this.#seal(chain.key, old),
            not_before: chain.notBefore,
            not_after: chain.notAfter,
            issuer: chain.issuer,
            fingerprint: chain.fingerprint,
          },
        };
      },
      sendable,
      viewer: () => (certificate) => this.#view(certificate),
      content: () => (certificate) => certificate,
    };
  }

  #read(pem: string, key: string): CertificateChain {
    let chain: CertificateChain;
    try {
      chain = readChain(pem, key);
    } catch (error) {
      if (error instanceof ChainError) throw invalid(error.field, error.message);
      throw error;
    }
    if (Date.parse(chain.notAfter) <= this.#clock.now())
      throw invalid("certificate", `expired on ${chain.notAfter}`);
    return chain;
  }

  /** Sealing gives something new each time, and writing what is there already must change nothing. */
  #seal(key: string, old: Certificate | null): string {
    const sealed = old?.sealed_key ?? null;
    return sealed !== null && this.#box.open(sealed) === key ? sealed : this.#box.seal(key);
  }

  /** What clients see of it, also of one that is not in service yet. */
  view(certificate: Certificate): CertificateView {
    return this.#view(certificate);
  }

  #view(certificate: Certificate): CertificateView {
    const { sealed_key: _, ...shown } = certificate;
    const { isRunning, ...progress } = this.#progressOf(certificate);
    const status = statusOf(certificate, { isRunning, ...progress }, this.#clock.now());
    return { ...shown, status, ...progress };
  }
}

/** What of a stored certificate clients can send. */
function sendable(certificate: Certificate): Document {
  const { sealed_key: _, ...rest } = certificate;
  const fields = Object.entries(rest).filter(([field]) => !readOnly.includes(field));
  return Object.fromEntries(fields.filter(([, value]) => value !== null));
}

function domainsOf(body: Document): string[] {
  const { domains } = body;
  if (!Array.isArray(domains)) return [];
  return domains.filter((name) => typeof name === "string").map((name) => name.toLowerCase());
}

/**
 * The names that it is used for: those asked for, all of them names of the certificate; else all of its names. When it
 * takes the place of one that was used for all of its names, so is the new one.
 */
function chosenNames(
  asked: readonly string[],
  chain: CertificateChain,
  old: Certificate | null,
): string[] {
  const wanted = asked.map((name) => name.toLowerCase());
  const isReplaced = old !== null && old.fingerprint !== chain.fingerprint;
  const meantAll =
    isReplaced &&
    Bun.deepEquals(old.domains, wanted) &&
    isIssued(old) &&
    Bun.deepEquals(namesIn(old.certificate), wanted);
  if (wanted.length === 0 || meantAll) {
    if (chain.names.length === 0) throw invalid("certificate", "holds no host name");
    return [...chain.names];
  }
  for (const [index, name] of wanted.entries())
    if (!covers(chain.names, name))
      throw invalid(`domains[${index}]`, "is not a name of the certificate");
  return wanted;
}

/** RFC 6125 section 6.4.3: a wildcard stands for exactly one label. */
function covers(names: readonly string[], name: string): boolean {
  return names.includes(name) || names.includes(name.replace(/^[^.*]+(?=\.)/, "*"));
}
