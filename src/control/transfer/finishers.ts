// What an imported object has to pass beyond its schema, by collection, and what is made of it then; changes nothing itself.
import { Value } from "@sinclair/typebox/value";
import { ChainError, readChain } from "../../crypto/certificate-chain.ts";
import type { SecretBox } from "../../crypto/secret-box.ts";
import { decode } from "../../model/decode.ts";
import { ApiError, invalid } from "../../model/error.ts";
import type { CollectionName } from "../../model/gateway-config.ts";
import {
  type Configurable,
  mapConfig,
  type PluginCatalogue,
} from "../../snapshot/plugin-config.ts";
import { dnsProviders } from "../acme/dns/index.ts";
import { sinks } from "../alerts/sinks.ts";
import { withKnownParts } from "../applications/import.ts";
import { newAccountKey } from "../acme/accounts.ts";
import { type Document, isDocument } from "../body.ts";
import { sealAgain } from "./secret-material.ts";

/** Each returns the fields as they are stored; `old` are those that the gateway has; throws a 400. */
export type RecordFinishers = {
  readonly [K in CollectionName]?: (fields: Document, old: Document | undefined) => Document;
};

export const createFinishers = (box: SecretBox, plugins: PluginCatalogue): RecordFinishers => ({
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

/** What has a type, on which the schema of its configuration depends. */
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

/** A key that does not belong to its certificate would only be found by the handshakes that fail. */
function checkCertificate(fields: Document, old: Document | undefined, box: SecretBox): Document {
  const { certificate, sealed_key: key } = fields;
  if (fields["source"] === "acme" && (certificate ?? null) === null) return withIssued(fields, old);
  if ((certificate ?? null) === null) throw invalid("certificate", "is required");
  if ((key ?? null) === null) throw invalid("sealed_key", "is required");
  if (typeof certificate !== "string" || typeof key !== "string") return fields;
  if (certificate === "" || key === "") return fields;
  if (certificate === old?.["certificate"] && key === old["sealed_key"]) return fields;
  // The gateway has issued another one since the document was written, whose key it holds.
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

/** Nobody who writes an account down by hand has a key for it. */
function withKey(fields: Document, old: Document | undefined, box: SecretBox): Document {
  if (fields["sealed_key"] !== "") return fields;
  return { ...fields, sealed_key: old?.["sealed_key"] ?? box.seal(newAccountKey()) };
}

/** A document that says what is to be ordered need not hold what was issued: that stays as long as it is for the same names. */
function withIssued(fields: Document, old: Document | undefined): Document {
  if (old?.["source"] !== "acme" || !Bun.deepEquals(old["domains"], fields["domains"]))
    return fields;
  return { ...fields, ...materialOf(old) };
}

function materialOf(old: Document): Document {
  const { certificate, sealed_key, not_before, not_after, issuer, fingerprint } = old;
  return { certificate, sealed_key, not_before, not_after, issuer, fingerprint };
}

/** Throws a 400 for a configuration that does not fit its schema, whatever stands for secrets in it. */
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

/** Which fields are secret, only their schema knows: one that was written as a text must not be stored as one. */
function sealConfig(
  fields: Document,
  old: Document | undefined,
  { box, definition }: { readonly box: SecretBox; readonly definition: Configurable | undefined },
): Document {
  const { config } = fields;
  // A rule says so.
  if (definition === undefined || !isDocument(config)) return fields;
  const before = new Map<string, unknown>();
  if (isDocument(old?.["config"]))
    mapConfig(definition, old["config"], ({ path, value }) => void before.set(path, value));
  const whole = Value.Default(definition.config, Value.Clone(config)) as Document;
  return {
    ...fields,
    config: mapConfig(definition, whole, ({ kind, path, value }) => {
      if (kind !== "secret" || typeof value !== "string" || value === "") return value;
      const kept = before.get(path);
      return { sealed: sealAgain(value, isDocument(kept) ? kept["sealed"] : undefined, box) };
    }),
  };
}
