// The labels of Sluice: `sluice.host`, `sluice.2.path`; knows no container.
import type { Document } from "../../control/body.ts";
import type { PluginCatalogue } from "../../snapshot/plugin-config.ts";
import { isSecretField, valueFor } from "./label-values.ts";
import { storedNameOf } from "../../model/host-name.ts";

/** What the labels say about one site of a container. */
export interface LabelledSite {
  /** Empty: the first one; else the number in its labels. */
  readonly number: string;
  readonly hosts: readonly string[];
  readonly path: string | null;
  readonly stripPath: boolean;
  readonly port: number | null;
  readonly scheme: "http" | "https";
  readonly https: "auto" | "acme" | "off" | null;
  readonly healthPath: string | null;
  readonly plugins: readonly { readonly name: string; readonly config: Document }[];
}

export interface ReadLabels {
  /** `sluice.enable`; null: there is none. */
  readonly isEnabled: boolean | null;
  readonly network: string | null;
  readonly name: string | null;
  readonly sites: readonly LabelledSite[];
  readonly problems: readonly string[];
}

/** They write files or run programs. */
const NEVER = ["access-log", "script"];
const FIELDS = ["host", "path", "strip_path", "port", "scheme", "https", "health.path"];
const OWN = ["enable", "network", "name"];

export interface LabelRules {
  readonly plugins: PluginCatalogue;
  /** Names of the plugins that labels may use. */
  readonly allowedPlugins: readonly string[];
}

/** Keys are compared regardless of case, as Docker's own are. */
export function readLabels(
  labels: Readonly<Record<string, string>>,
  rules: LabelRules,
): ReadLabels {
  const problems: string[] = [];
  const own: Record<string, string> = {};
  const numbered = new Map<string, Map<string, string>>();
  for (const [key, value] of Object.entries(labels)) {
    const [, rest] = /^sluice\.(.+)$/i.exec(key) ?? [];
    if (rest === undefined) continue;
    const field = rest.toLowerCase();
    if (OWN.includes(field)) own[field] = value.trim();
    else {
      const [, number = "", name = ""] = /^(?:(\d+)\.)?(.+)$/.exec(field) ?? [];
      const known = FIELDS.includes(name) || /^plugin\.[a-z0-9-]+\..+$/.test(name);
      if (!known)
        problems.push(
          `label ${key} is not known: use sluice.{${[...OWN, ...FIELDS].join(",")}} or sluice.plugin.NAME.FIELD`,
        );
      else {
        const site = numbered.get(number) ?? new Map<string, string>();
        numbered.set(number, site.set(name, value.trim()));
      }
    }
  }
  const isEnabled =
    own["enable"] === undefined ? null : flagOf("sluice.enable", own["enable"], problems);
  const sites = [...numbered]
    .toSorted(([a], [b]) => Number(a) - Number(b))
    .map(([number, fields]) => readSite({ number, fields }, rules, problems));
  return {
    isEnabled,
    network: own["network"] ?? null,
    name: own["name"] ?? null,
    sites: sites.filter((site) => site !== null),
    problems,
  };
}

function readSite(
  { number, fields }: { readonly number: string; readonly fields: ReadonlyMap<string, string> },
  rules: LabelRules,
  problems: string[],
): LabelledSite | null {
  const labelOf = (name: string) => `sluice.${number === "" ? "" : `${number}.`}${name}`;
  const hosts = (fields.get("host") ?? "")
    .split(",")
    .map((host) => storedNameOf(host.trim()).toLowerCase())
    .filter((host) => host !== "");
  const path = fields.get("path") ?? null;
  const found: string[] = [];
  if (hosts.length === 0)
    found.push(`label ${labelOf("host")} is missing: it names the host of the site`);
  if (hosts.includes("*"))
    found.push(`label ${labelOf("host")} must name hosts: * would take those of others`);
  if (path !== null && !path.startsWith("/"))
    found.push(`label ${labelOf("path")} must begin with /`);
  const port = portOf(labelOf("port"), fields.get("port"), found);
  const scheme = wordOf(
    { label: labelOf("scheme"), words: ["http", "https"], first: "http" },
    fields.get("scheme"),
    found,
  );
  const https = httpsOf(labelOf("https"), fields.get("https"), found);
  const stripPath = flagOf(labelOf("strip_path"), fields.get("strip_path") ?? "false", found);
  const plugins = pluginsOf(fields, rules, { labelOf, problems: found });
  problems.push(...found);
  if (found.length > 0) return null;
  const healthPath = fields.get("health.path") ?? null;
  return { number, hosts, path, stripPath, port, scheme, https, healthPath, plugins };
}

function pluginsOf(
  fields: ReadonlyMap<string, string>,
  rules: LabelRules,
  {
    labelOf,
    problems,
  }: { readonly labelOf: (name: string) => string; readonly problems: string[] },
): LabelledSite["plugins"] {
  const configs = new Map<string, Record<string, unknown>>();
  for (const [key, text] of fields) {
    const [, name, rest = ""] = /^plugin\.([a-z0-9-]+)\.(.+)$/.exec(key) ?? [];
    if (name === undefined) continue;
    const field = rest.split(".");
    const refusal = refusalOf(name, field, rules);
    const config = configs.get(name) ?? {};
    configs.set(name, config);
    // For a plugin whose settings all have defaults.
    if (refusal === null && rest === "enable" && text.toLowerCase() === "true") continue;
    const { config: schema } = rules.plugins.get(name) ?? {};
    const value =
      refusal === null && schema !== undefined ? valueFor(schema, field, text) : undefined;
    if (value !== undefined) setAt(config, field, value);
    else
      problems.push(
        `label ${labelOf(key)}: ${refusal ?? `the plugin ${name} has no such field, or another type of value`}`,
      );
  }
  return [...configs].map(([name, config]) => ({ name, config }));
}

/** Why labels may not set a field of a plugin; null: they may. */
function refusalOf(
  name: string,
  field: readonly string[],
  { plugins, allowedPlugins }: LabelRules,
): string | null {
  const definition = plugins.get(name);
  if (definition === undefined) return `there is no plugin ${name}`;
  if (NEVER.includes(name) || definition.needsAdmin === true)
    return `labels cannot use the plugin ${name}, which writes files or runs code`;
  if (!allowedPlugins.includes(name))
    return `the settings do not allow labels to use the plugin ${name}`;
  return isSecretField(definition.config, field)
    ? "labels cannot hold secrets, because everybody on the machine can read them"
    : null;
}

function setAt(
  object: Record<string, unknown>,
  [name = "", ...rest]: readonly string[],
  value: unknown,
): void {
  if (rest.length === 0) {
    object[name] = value;
    return;
  }
  const inner = (object[name] ?? {}) as Record<string, unknown>;
  object[name] = inner;
  setAt(inner, rest, value);
}

function portOf(label: string, text: string | undefined, problems: string[]): number | null {
  if (text === undefined) return null;
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  if (port >= 1 && port <= 65_535) return port;
  problems.push(`label ${label} must be a port, 1 to 65535`);
  return null;
}

function flagOf(label: string, text: string, problems: string[]): boolean {
  const word = text.toLowerCase();
  if (!["true", "1", "yes", "false", "0", "no"].includes(word))
    problems.push(`label ${label} must be true or false`);
  return ["true", "1", "yes"].includes(word);
}

function httpsOf(
  label: string,
  text: string | undefined,
  problems: string[],
): LabelledSite["https"] {
  if (text === undefined) return null;
  const word = text.toLowerCase();
  if (word === "true") return "auto";
  if (word === "false") return "off";
  return wordOf<"auto" | "acme" | "off">(
    { label, words: ["auto", "acme", "off"], first: "auto" },
    word,
    problems,
  );
}

function wordOf<T extends string>(
  {
    label,
    words,
    first,
  }: { readonly label: string; readonly words: readonly T[]; readonly first: T },
  text: string | undefined,
  problems: string[],
): T {
  const found = words.find((word) => word === (text ?? first).toLowerCase());
  if (found === undefined) problems.push(`label ${label} must be one of ${words.join(", ")}`);
  return found ?? first;
}
