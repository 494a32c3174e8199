// An exported configuration as a person would write it: names for ids, no defaults, no times; an import restores the same.
import type { TSchema } from "@sinclair/typebox";
import { dnsProviders } from "../../acme/dns/index.ts";
import { type Document, isDocument } from "../../control/body.ts";
import { isRenewed, issuedFields } from "../../model/certificate.ts";
import { isSecretField } from "../../model/export-document.ts";
import { UUID_PATTERN } from "../../model/fields.ts";
import {
  type CollectionName,
  collectionNames,
  definitionOf,
  type GatewayConfig,
  singletonNames,
} from "../../model/gateway-config.ts";
import { recordSchemas } from "../../model/records.ts";
import { pathTextOf } from "../../model/route-match.ts";
import { withoutDefaults } from "../../model/without-defaults.ts";
import { sinks } from "../../observe/alerts/sinks.ts";
import type { Steps } from "../../pace.ts";
import type { Configurable, PluginCatalogue } from "../../snapshot/plugin-config.ts";
import { holdsSecrets } from "./secret-material.ts";
import { collectionOf, keyOf, nameOf } from "./identities.ts";
import { idSteps, impliedSteps, isImplied } from "./implicit-objects.ts";

interface MinimalContext {
  readonly config: GatewayConfig;
  readonly plugins: PluginCatalogue;
}

/** `document` is an export of `config`. Empty lists stay: they say that there is none. */
export function* minimalSteps(document: Document, context: MinimalContext): Steps<Document> {
  const { config } = context;
  const implied = yield* impliedSteps(document, config);
  const lists = new Map<CollectionName, readonly Document[]>();
  const others: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(document)) {
    if (isCollection(name)) {
      const list: Document[] = [];
      for (const object of value as readonly Document[]) {
        yield;
        if (implied.has(String(object["id"]))) continue;
        list.push(withNames(shortObject(name, object, { ...context, implied }), config));
      }
      lists.set(name, list);
    } else others[name] = isSingleton(name) ? shortSingleton(name, value as Document) : value;
  }
  const mentioned = yield* idSteps([others, ...lists.values()]);
  const entries: [string, readonly Document[]][] = [];
  for (const [name, list] of lists) {
    const needed = yield* needsIds(name, list, { config, mentioned });
    entries.push([name, needed ? list : list.map(({ id: _, ...fields }) => fields)]);
  }
  return { ...others, ...Object.fromEntries(entries) };
}

const isCollection = (name: string): name is CollectionName =>
  (collectionNames as readonly string[]).includes(name);

const isSingleton = (name: string): name is (typeof singletonNames)[number] =>
  (singletonNames as readonly string[]).includes(name);

function shortSingleton(name: (typeof singletonNames)[number], value: Document): Document {
  const { updated_at: _, ...fields } = value;
  return shortened(recordSchemas[name], fields);
}

interface ObjectContext extends MinimalContext {
  readonly implied: ReadonlySet<string>;
}

function shortObject(
  collection: CollectionName,
  object: Document,
  { plugins, config, implied }: ObjectContext,
): Document {
  const { id, created_at: _, updated_at: __, ...given } = object;
  const whole = withoutMaterial(collection, given);
  const short = shortened(recordSchemas[collection], whole);
  const kept: Record<string, unknown> = {};
  // An import finds the object by these as they stand in the file.
  const { identifiedBy } = definitionOf(collection);
  for (const [field, value] of Object.entries(whole))
    if (field in short) kept[field] = short[field];
    else if (identifiedBy.includes(field) && value !== null) kept[field] = value;
  if (collection === "routes" && Array.isArray(kept["paths"]))
    kept["paths"] = kept["paths"].map(pathTextOf);
  const application = collection === "applications" ? config.applications.get(String(id)) : null;
  if (application && isImplied(application, implied)) {
    delete kept["parts"];
    delete kept["https_state"];
  }
  const configurable = configurableOf(collection, object, plugins);
  if (configurable !== undefined && kept["config"] !== undefined)
    kept["config"] = shortened(configurable.config, kept["config"] as Document);
  return { id, ...kept };
}

/** Without defaults. Items of lists with secrets stay whole: an import finds the stored secret by what is beside it. */
function shortened(schema: TSchema, value: Document): Document {
  const short = Object.entries(withoutDefaults(schema, value) as Document);
  return Object.fromEntries(
    short.map(([name, member]) => [name, listsSecrets(value[name]) ? value[name] : member]),
  );
}

const listsSecrets = (value: unknown): boolean =>
  Array.isArray(value)
    ? holdsSecrets(value)
    : isDocument(value) && Object.values(value).some(listsSecrets);

function configurableOf(
  collection: CollectionName,
  { name, type }: Document,
  plugins: PluginCatalogue,
): Configurable | undefined {
  if (collection === "plugins") return plugins.get(String(name));
  const types: Readonly<Record<string, Configurable>> | null =
    collection === "dns_providers" ? dnsProviders : collection === "alerts" ? sinks : null;
  return types !== null && Object.hasOwn(types, String(type)) ? types[String(type)] : undefined;
}

/** What the gateway issues, generates or reads from the certificate itself. */
function withoutMaterial(collection: CollectionName, fields: Document): Document {
  if (collection === "acme_accounts") return omit(fields, ["sealed_key"]);
  if (collection !== "certificates") return fields;
  const hasMaterial = !isRenewed({ source: String(fields["source"]) });
  const own = ["certificate", "sealed_key"];
  return omit(
    fields,
    hasMaterial ? issuedFields.filter((name) => !own.includes(name)) : issuedFields,
  );
}

const omit = (fields: Document, names: readonly string[]): Document =>
  Object.fromEntries(Object.entries(fields).filter(([name]) => !names.includes(name)));

/** A copy with names for ids, in the fields where an import reads names. */
function withNames(object: Document, config: GatewayConfig): Document {
  const named = (value: unknown, field: string): unknown => {
    if (Array.isArray(value)) return value.map((item) => named(item, field));
    if (isDocument(value))
      return Object.fromEntries(
        Object.entries(value).map(([name, inner]) => [name, named(inner, name)]),
      );
    if (typeof value !== "string" || !UUID_PATTERN.test(value)) return value;
    const collection = collectionOf(field);
    const referred = collection === null ? undefined : config[collection].get(value);
    return collection === null || referred === undefined
      ? value
      : (referenceNameOf(collection, referred) ?? value);
  };
  const { id, ...fields } = object;
  return { id, ...(named(fields, "") as Document) };
}

/** Null: only its id refers to it. */
function referenceNameOf(collection: CollectionName, object: object): string | null {
  if (definitionOf(collection).nameField === null) return null;
  const name = nameOf(collection, object);
  return name === null || UUID_PATTERN.test(name) ? null : name;
}

/**
 * Whether an import finds some object only by its id. Then all in the list have theirs, because objects of the same age are in
 * the order of their ids.
 */
function* needsIds(
  collection: CollectionName,
  list: readonly Document[],
  { config, mentioned }: { config: GatewayConfig; mentioned: ReadonlySet<string> },
): Steps<boolean> {
  const keys = new Map<string | null, number>();
  for (const object of config[collection].values()) {
    const key = keyOf(collection, object);
    keys.set(key, (keys.get(key) ?? 0) + 1);
    yield;
  }
  const { identifiedBy } = definitionOf(collection);
  for (const object of list) {
    yield;
    if (mentioned.has(String(object["id"]))) return true;
    if (identifiedBy.some((field) => isSecretField(field) && (object[field] ?? null) !== null))
      return true;
    const stored = config[collection].get(String(object["id"]));
    const key = stored === undefined ? null : keyOf(collection, stored);
    if (key === null || (keys.get(key) ?? 0) > 1) return true;
  }
  return false;
}
