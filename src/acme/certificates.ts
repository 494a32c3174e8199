// Certificates: validates and sorts uploaded chains, signs self-signed ones, leaves others to ACME; keys are sealed and never shown. Knows no HTTP.
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
import { storedNameOf } from "../model/host-name.ts";
import { ApiError, invalid } from "../model/error.ts";
import { mergePatch } from "../model/merge-patch.ts";
import { issuingFields, materialWhileOrdered, normalName } from "./certificate-fields.ts";
import type { LocalCa } from "./local-ca.ts";
import { noProgress, type Progress, statusOf } from "./progress.ts";
import { type Document, isDocument } from "../control/body.ts";
import type { Changes } from "../control/change.ts";
import { findByKey } from "../control/key.ts";
import type { QueryEntry } from "../control/list-filter.ts";
import {
  type Read,
  type Removed,
  Resource,
  type ResourceKind,
  type WriteOptions,
  type Written,
} from "../control/resource.ts";

/** A certificate in responses: never its key. */
export type CertificateView = Omit<Certificate, "sealed_key"> &
  Omit<Progress, "isRunning"> & { readonly status: CertificateStatus };

const SELF_SIGNED_DAYS = 397;

const readOnly = Object.keys(certificateFacts);

export interface CertificatesOptions {
  readonly changes: Changes;
  readonly box: SecretBox;
  readonly clock: Clock;
  readonly localCa: LocalCa;
  /** The ACME progress of a certificate. Default: none. */
  readonly progressOf?: (certificate: Certificate) => Progress;
}

export class Certificates {
  readonly #changes: Changes;
  readonly #box: SecretBox;
  readonly #clock: Clock;
  readonly #localCa: LocalCa;
  readonly #progressOf: (certificate: Certificate) => Progress;
  readonly #resource: Resource<"certificates", CertificateView>;

  constructor(options: CertificatesOptions) {
    const { changes, box, clock, localCa, progressOf = () => noProgress } = options;
    this.#changes = changes;
    this.#box = box;
    this.#clock = clock;
    this.#localCa = localCa;
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

  /** Throws a 404 when it does not exist. */
  find(key: string): Certificate {
    const { id } = this.#resource.get(key).view;
    const found = this.#changes.config.certificates.get(id);
    if (found === undefined) throw new ApiError(404, `certificate "${key}" does not exist`);
    return found;
  }

  async create(body: unknown, options: WriteOptions): Promise<Written<CertificateView>> {
    return await this.#resource.create(await this.#withMaterial(body, null, options), options);
  }

  async replace(
    key: string,
    body: unknown,
    options: WriteOptions,
  ): Promise<Written<CertificateView>> {
    const old = this.#find(key);
    const whole = await this.#withMaterial(body, old, options);
    return await this.#resource.replace(key, whole, options);
  }

  async patch(
    key: string,
    patch: unknown,
    options: WriteOptions,
  ): Promise<Written<CertificateView>> {
    const old = this.#find(key);
    const whole = old === null ? patch : mergePatch(sendable(old), patch);
    const { certificate, private_key: secret } = Object(
      await this.#withMaterial(whole, old, options),
    );
    const made = secret === undefined ? {} : { certificate, private_key: secret };
    return await this.#resource.patch(key, { ...Object(patch), ...made }, options);
  }

  remove(key: string, options: WriteOptions & { readonly cascade: boolean }): Promise<Removed> {
    return this.#resource.remove(key, options);
  }

  #find(key: string): Certificate | null {
    return findByKey(this.#changes.config.certificates, key);
  }

  /** Signs a certificate before the change begins, because that is slow. */
  async #withMaterial(
    body: unknown,
    old: Certificate | null,
    { dryRun }: WriteOptions,
  ): Promise<unknown> {
    if (!isDocument(body)) return body;
    if (body["source"] === "acme" || body["certificate"] === null) {
      // Clients can send back what they read, also after a renewal.
      const { certificate: _, ...rest } = body;
      return rest;
    }
    const { source } = body;
    if (source !== "self_signed" && source !== "local_ca") return body;
    const isOwn = (field: "certificate" | "private_key") =>
      !(field in body) || (field === "certificate" && body[field] === old?.certificate);
    for (const field of ["certificate", "private_key"] as const)
      if (!isOwn(field))
        throw invalid(field, `is generated by the gateway when source is "${source}"`);
    const { certificate: _, ...rest } = body;
    const names = domainsOf(body);
    const isSame = old?.source === source && Bun.deepEquals(old.domains, names);
    if (isSame && this.#lasts(old)) return { ...rest, certificate: old.certificate };
    if (names.length === 0) throw invalid("domains", "is required");
    const now = this.#clock.now();
    const pair =
      source === "local_ca"
        ? await this.#localCa.sign(names, { dryRun })
        : await createSelfSigned({ names, addresses: [], now, validDays: SELF_SIGNED_DAYS });
    return { ...rest, certificate: pair.cert, private_key: pair.key };
  }

  #lasts(certificate: Certificate): boolean {
    const { source, not_after: end } = certificate;
    if (end === null || Date.parse(end) <= this.#clock.now()) return false;
    return source !== "local_ca" || this.#localCa.hasSigned(certificate);
  }

  #kind(): ResourceKind<"certificates", CertificateView> {
    return {
      collection: "certificates",
      decode: (document, draft, old) => {
        const { certificate, private_key: key, ...input } = decode(certificateInput, document);
        const fields = issuingFields(input, draft.config);
        if (fields.source === "acme") {
          if (key !== undefined)
            throw invalid("private_key", 'is generated by the gateway when source is "acme"');
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
            domains:
              fields.source === "local_ca"
                ? normalized(fields.domains)
                : chosenNames(fields.domains, chain, old),
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

  /** Sealing returns a new text each time, but writing the stored value again must change nothing. */
  #seal(key: string, old: Certificate | null): string {
    const sealed = old?.sealed_key ?? null;
    return sealed !== null && this.#box.open(sealed) === key ? sealed : this.#box.seal(key);
  }

  /** Its representation, also before it is in service. */
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

/** The writable fields of a stored certificate. */
function sendable(certificate: Certificate): Document {
  const { sealed_key: _, ...rest } = certificate;
  const fields = Object.entries(rest).filter(([field]) => !readOnly.includes(field));
  return Object.fromEntries(fields.filter(([, value]) => value !== null));
}

function domainsOf(body: Document): string[] {
  const { domains } = body;
  if (!Array.isArray(domains)) return [];
  return normalized(domains.filter((name) => typeof name === "string"));
}

const normalized = (names: readonly string[]): string[] => [
  ...new Set(names.map((name) => normalName(storedNameOf(name)))),
];

/**
 * The names that it serves: the requested ones, all of them names of the certificate; else all of its names. When it replaces
 * one that served all of its names, so does the new one.
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
    if (chain.names.length === 0) throw invalid("certificate", "contains no host name");
    return [...chain.names];
  }
  for (const [index, name] of wanted.entries())
    if (!covers(chain.names, name))
      throw invalid(`domains[${index}]`, "is not a name of the certificate");
  return wanted;
}

/** RFC 6125 section 6.4.3: a wildcard matches exactly one label. */
function covers(names: readonly string[], name: string): boolean {
  return names.includes(name) || names.includes(name.replace(/^[^.*]+(?=\.)/, "*"));
}
