// Checks and normalizes imported objects beyond their schema, per collection; changes nothing itself.
import { Value } from "@sinclair/typebox/value";
import { ChainError, readChain } from "../../crypto/certificate-chain.ts";
import type { SecretBox } from "../../crypto/secret-box.ts";
import { isRenewed } from "../../model/certificate.ts";
import { decode } from "../../model/decode.ts";
import { ApiError, invalid } from "../../model/error.ts";
import type { CollectionName } from "../../model/gateway-config.ts";
import {
  type Configurable,
  mapConfig,
  type PluginCatalogue,
} from "../../snapshot/plugin-config.ts";
import { dnsProviders } from "../../acme/dns/index.ts";
import { sinks } from "../../observe/alerts/sinks.ts";
import { withKnownParts } from "./applications.ts";
import { newAccountKey } from "../../acme/accounts.ts";
import { type Document, isDocument } from "../../control/body.ts";
import { sealAgain } from "./secret-material.ts";

/** Each returns the fields as they are stored; `old` are the current ones; throws a 400. */
export type ImportNormalizers = {
  readonly [K in CollectionName]?: (fields: Document, old: Document | undefined) => Document;
};

export const createImportNormalizers = (
  box: SecretBox,
  plugins: PluginCatalogue,
): ImportNormalizers => ({
  applications: withKnownParts,
  certificates: (fields, old) => checkCertificate(fields, old, box),
  acme_accounts: (fields, old) => withKey(fields, old, box),
  plugins: (fields, old) => {
    const definition = plugins.get(String(fields["name"]));
    const before = old?.["name"] === fields["name"] ? old : undefined;
    return sealConfig(fields, before, { box, definition });
  },
  dns_providers: (fields, old) => typed(fields, old, { box, definitions: dnsProviders }),
  alerts: (fields, old) => typed(fields, old, { box, definitions: sinks }),
});

/** An object whose type decides the schema of its configuration. */
function typed(
  fields: Document,
  old: Document | undefined,
  parts: {
    readonly box: SecretBox;
    readonly definitions: Readonly<Record<string, Configurable>>;
  },
): Document {
  const type = String(fields["type"]);
  const definition = Object.hasOwn(parts.definitions, type) ? parts.definitions[type] : undefined;
  const before = old?.["type"] === type ? old : undefined;
  const sealed = sealConfig(fields, before, { box: parts.box, definition });
  if (definition !== undefined) requireFit(sealed["config"], definition);
  return sealed;
}

/** Without this check a key of another certificate would only show in failed handshakes. */
function checkCertificate(fields: Document, old: Document | undefined, box: SecretBox): Document {
  const { certificate, sealed_key: key } = fields;
  if (isRenewed({ source: String(fields["source"]) }) && (certificate ?? null) === null)
    return withIssued(fields, old);
  if ((certificate ?? null) === null) throw invalid("certificate", "is required");
  if ((key ?? null) === null) throw invalid("sealed_key", "is required");
  if (typeof certificate !== "string" || typeof key !== "string") return fields;
  if (certificate === "" || key === "") return fields;
  if (certificate === old?.["certificate"] && key === old["sealed_key"])
    return { ...fields, ...materialOf(old) };
  // The gateway has issued another certificate since the export, and has its key.
  const isIssuedHere = fields["source"] !== "upload" && fields["source"] === old?.["source"];
  if (isIssuedHere && key === old?.["sealed_key"]) return { ...fields, ...materialOf(old) };
  try {
    const chain = readChain(certificate, box.open(key));
    const { notBefore: not_before, notAfter: not_after, issuer, fingerprint } = chain;
    const facts = { not_before, not_after, issuer, fingerprint };
    return { ...fields, certificate: chain.certificate, ...facts };
  } catch (error) {
    if (!(error instanceof ChainError)) throw error;
    throw invalid(error.field === "private_key" ? "sealed_key" : error.field, error.message);
  }
}

/** An account that was written by hand has no key: the gateway generates one. */
function withKey(fields: Document, old: Document | undefined, box: SecretBox): Document {
  if (fields["sealed_key"] !== "") return fields;
  return { ...fields, sealed_key: old?.["sealed_key"] ?? box.seal(newAccountKey()) };
}

/** A file may describe a certificate without its material: the issued one stays as long as its names are the same. */
function withIssued(fields: Document, old: Document | undefined): Document {
  if (old === undefined || old["source"] !== fields["source"]) return fields;
  if (!Bun.deepEquals(old["domains"], fields["domains"])) return fields;
  return { ...fields, ...materialOf(old) };
}

function materialOf(old: Document): Document {
  const { certificate, sealed_key, not_before, not_after, issuer, fingerprint } = old;
  return { certificate, sealed_key, not_before, not_after, issuer, fingerprint };
}

/** Throws a 400 for a configuration that does not match its schema, regardless of its secrets. */
function requireFit(config: unknown, definition: Configurable): void {
  const texts = mapConfig(definition, config, ({ kind, value }) =>
    kind === "secret" && isDocument(value) ? "-" : value,
  );
  try {
    decode(definition.config, texts);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    throw new ApiError(error.status, `config.${error.message}`);
  }
}

/** Only the schema knows which fields are secret: encrypts those that were written as plain text. */
function sealConfig(
  fields: Document,
  old: Document | undefined,
  { box, definition }: { readonly box: SecretBox; readonly definition: Configurable | undefined },
): Document {
  const { config } = fields;
  // A rule reports this.
  if (definition === undefined || !isDocument(config)) return fields;
  const before = new Map<string, unknown>();
  if (isDocument(old?.["config"]))
    mapConfig(definition, old["config"], ({ path, value }) => void before.set(path, value));
  const whole = Value.Default(definition.config, Value.Clone(config)) as Document;
  return {
    ...fields,
    config: mapConfig(definition, whole, ({ kind, path, value }) => {
      if (kind !== "secret" || typeof value !== "string" || value === "") return value;
      const stored = before.get(path);
      return { sealed: sealAgain(value, isDocument(stored) ? stored["sealed"] : undefined, box) };
    }),
  };
}
