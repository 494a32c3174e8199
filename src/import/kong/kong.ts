// Reads a declarative configuration of Kong Gateway (DB-less mode, decK) and runs all converters; knows no kind of object.
import { ApiError, invalid } from "../../model/error.ts";
import type { ConversionContext } from "../convert.ts";
import { Members } from "../members.ts";
import type { Output } from "../output.ts";
import { bytesIn, kongFiles, seemsToHave } from "../set-up/set-up.ts";
import { type SourceTree, textIn } from "../set-up/tree.ts";
import { inFile, locateErrors, readText } from "../source-text.ts";
import { type Document, isDocument } from "../../control/body.ts";
import { addCertificates } from "./certificates.ts";
import type { KongContext } from "./context.ts";
import { addConsumers } from "./consumers.ts";
import { formatOf, withDefaults } from "./defaults.ts";
import { addPlugins } from "./plugins.ts";
import { addRoutes } from "./routes.ts";
import { addServices } from "./services.ts";
import { readUpstreams } from "./upstreams.ts";

const GROUP_LISTS = ["consumer_groups", "consumer_group_plugins", "consumer_group_consumers"];

/** Throws a 400 with the line for an invalid configuration. */
export async function convertKong(
  bytes: Uint8Array,
  output: Output,
  { parseJson }: Pick<ConversionContext, "parseJson">,
): Promise<void> {
  await locateErrors(await readText(bytes, parseJson), (value) => convertValue(value, output));
}

/** The files of a folder as one configuration, as decK reads it. Throws a 400 that names the invalid file. */
export async function convertKongFiles(
  tree: SourceTree,
  output: Output,
  { parseJson }: Pick<ConversionContext, "parseJson">,
): Promise<void> {
  const documents: Document[] = [];
  for (const path of kongFiles(tree)) {
    const source = await inFile(path, () => readText(bytesIn(tree, path), parseJson)).catch(
      (error: unknown) => {
        const text = textIn(tree, path);
        if (!(error instanceof ApiError) || text === null || seemsToHave(text, LISTS)) throw error;
        return null;
      },
    );
    const value = source?.value;
    if (isDocument(value) && isOfKong(value)) documents.push(value);
    else output.report.omitted(path, "it is no configuration of Kong");
  }
  const [first, ...others] = documents;
  if (first === undefined)
    throw new ApiError(400, "there is no configuration of Kong in the files");
  await convertValue(others.reduce(joined, first), output);
}

/** Other files in YAML have other members, or maps instead of lists. */
const isOfKong = (value: Document): boolean =>
  "_format_version" in value || LISTS.some((name) => Array.isArray(value[name]));

const LISTS = ["services", "routes", "plugins", "consumers", "upstreams", "certificates"];

function joined(one: Document, other: Document): Document {
  const all = Object.entries(other).map(([name, value]): [string, unknown] => {
    const known = one[name];
    if (known === undefined) return [name, value];
    if (Array.isArray(known) && Array.isArray(value))
      return [name, [...(known as unknown[]), ...(value as unknown[])]];
    if (Bun.deepEquals(known, value)) return [name, value];
    if (name === "_info" && isDocument(known) && isDocument(value))
      return [name, joined(known, value)];
    throw invalid(name, "two files set it to different values: import them separately");
  });
  return { ...one, ...Object.fromEntries(all) };
}

async function convertValue(value: unknown, output: Output): Promise<void> {
  if (!isDocument(value)) throw invalid("", "must be an object");
  const { format, isGuessed } = formatOf(value);
  const root = new Members(withDefaults(value), { path: "", label: "", inner: "" }, output.report);
  root.raw("_format_version");
  if (isGuessed) root.changed("_format_version", `is missing: the file is read as ${format}`);
  const context: KongContext = {
    output,
    root,
    format,
    isHashed: root.flag("_transform") === false,
    ids: new Map(),
    caCertificates: readCaCertificates(root),
    plugins: [],
    grouped: [],
    groups: new Map(),
    jwtAlgorithms: new Set(),
  };
  omitExtras(root);
  addCertificates(context);
  const upstreams = readUpstreams(context);
  addRoutes(context, addServices(context, upstreams));
  await addConsumers(context);
  addPlugins(context);
}

function omitExtras(root: Members): void {
  root.raw("_comment");
  const info = root.object("_info");
  // They are in the objects already.
  info?.object("defaults")?.ignoreRest();
  for (const name of info?.names ?? [])
    if (name !== "defaults") info?.omit(name, "it only configures decK");
  for (const name of ["_workspace", "_konnect"]) root.omit(name, "the gateway has no workspaces");
  for (const name of ["workspaces", "rbac_users", "rbac_roles", "admins"])
    root.omit(name, "create the users of the gateway, which has no workspaces");
  for (const name of ["partials", "parameters", "licenses", "_ignore"])
    root.omit(name, "it has no counterpart in the gateway");
  root.omit("_plugin_configs", "write the settings into each plugin");
  root.omit("vaults", "secrets are stored in the gateway, see docs/secrets.md");
  for (const name of ["keys", "key_sets"]) root.omit(name, "set the keys in the plugin jwt");
  for (const name of GROUP_LISTS)
    root.omit(name, "consumer groups cannot have plugins; acl groups are imported");
  for (const name of ["oauth2_credentials", "oauth2_tokens", "mtls_auth_credentials"])
    root.omit(name, "the gateway has no such credentials");
}

function readCaCertificates(root: Members): Map<string, string> {
  const found = new Map<string, string>();
  for (const certificate of root.objects("ca_certificates")) {
    const id = certificate.text("id") ?? "";
    certificate.setLabel(`CA certificate "${id}"`);
    const pem = certificate.text("cert");
    if (pem === null) throw invalid(`${certificate.path}.cert`, "is required");
    found.set(id, pem);
    for (const name of ["cert_digest", "created_at", "updated_at"]) certificate.raw(name);
    certificate.omit("tags", "it becomes a field of the services that trust it");
    certificate.report.imported(certificate.label, "is written into the services that trust it");
  }
  return found;
}
