// Reads a declarative configuration of Kong Gateway (DB-less mode, decK) and converts all of it; knows nothing of its parts.
import { invalid } from "../../../model/error.ts";
import type { ConversionContext } from "../convert.ts";
import { Members } from "../members.ts";
import type { Output } from "../output.ts";
import { reading, readText } from "../source-text.ts";
import { addCertificates } from "./certificates.ts";
import type { KongContext } from "./context.ts";
import { addConsumers } from "./consumers.ts";
import { addPlugins } from "./plugins.ts";
import { addRoutes } from "./routes.ts";
import { addServices } from "./services.ts";
import { readUpstreams } from "./upstreams.ts";

const GROUP_LISTS = ["consumer_groups", "consumer_group_plugins", "consumer_group_consumers"];

const FORMATS = ["1.1", "2.1", "3.0"];

/** Throws a 400 for what is no such configuration, naming the line. */
export async function convertKong(
  bytes: Uint8Array,
  output: Output,
  { parseJson }: Pick<ConversionContext, "parseJson">,
): Promise<void> {
  await reading(readText(bytes, parseJson), async (value) => {
    const root = new Members(value, { path: "", label: "", inner: "" }, output.report);
    const format = String(root.raw("_format_version") ?? "");
    if (!FORMATS.includes(format === "3" ? "3.0" : format))
      throw invalid("_format_version", `must be one of ${FORMATS.join(", ")}`);
    const context: KongContext = {
      output,
      root,
      format,
      isHashed: root.flag("_transform") === false,
      ids: new Map(),
      authorities: readAuthorities(root),
      plugins: [],
      grouped: [],
      groups: new Map(),
      jwtAlgorithms: new Set(),
    };
    leaveOutExtras(root);
    addCertificates(context);
    const upstreams = readUpstreams(context);
    addRoutes(context, addServices(context, upstreams));
    await addConsumers(context);
    addPlugins(context);
  });
}

function leaveOutExtras(root: Members): void {
  root.raw("_comment");
  root.leaveOut("_info", "tells decK which objects it looks after");
  for (const name of ["_workspace", "_konnect"]) root.leaveOut(name, "there are no workspaces");
  root.leaveOut("_plugin_configs", "write the settings into each plugin");
  root.leaveOut("vaults", "secrets are kept in this gateway, see docs/secrets.md");
  for (const name of ["keys", "key_sets"])
    root.leaveOut(name, "keys for tokens are set in the plugin jwt");
  for (const name of GROUP_LISTS)
    root.leaveOut(
      name,
      "there are no plugins for groups of consumers; acl groups are carried over",
    );
  for (const name of ["oauth2_credentials", "oauth2_tokens", "mtls_auth_credentials"])
    root.leaveOut(name, "there are no such credentials");
}

function readAuthorities(root: Members): Map<string, string> {
  const found = new Map<string, string>();
  for (const authority of root.objects("ca_certificates")) {
    const id = authority.text("id") ?? "";
    authority.call(`CA certificate "${id}"`);
    const pem = authority.text("cert");
    if (pem === null) throw invalid(`${authority.path}.cert`, "is required");
    found.set(id, pem);
    for (const name of ["cert_digest", "created_at", "updated_at"]) authority.raw(name);
    authority.leaveOut("tags", "it becomes a field of the services that trust it");
    authority.report.carried(authority.label, "is written into the services that trust it");
  }
  return found;
}
