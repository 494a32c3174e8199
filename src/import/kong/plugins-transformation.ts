// Plugins of Kong that transform requests and responses, set request ids or cache responses.
import type { Members } from "../members.ts";
import type { PluginConverter } from "./plugins.ts";

type Pairs = readonly (readonly [name: string, value: string])[];

/** `name:value`. */
function pairsOf(group: Members | null, name: string): Pairs {
  if (group === null) return [];
  return group.texts(name).flatMap((text) => {
    const at = text.indexOf(":");
    const value = at === -1 ? "" : withVariables(text.slice(at + 1).trim());
    const field = at === -1 ? text : text.slice(0, at).trim();
    if (value !== null) return [[field, value] as const];
    group.report.omitted(`${group.label}: ${name} ${field}`, "its expression has no equivalent");
    return [];
  });
}

/** Names whose value has no equivalent. */
const unknownOf = (group: Members | null, name: string): readonly string[] =>
  (group?.texts(name) ?? []).flatMap((text) => {
    const at = text.indexOf(":");
    return at !== -1 && withVariables(text.slice(at + 1).trim()) === null
      ? [text.slice(0, at)]
      : [];
  });

const VARIABLES: Readonly<Record<string, string>> = {
  headers: "request.header.",
  query_params: "request.query.",
};

/** Converts `$(headers.x)` to a variable of the gateway; null without an equivalent, also for a literal `${`. */
function withVariables(text: string): string | null {
  if (text.includes("${")) return null;
  let isKnown = true;
  const replaced = text.replaceAll(/\$\(([^()]*)\)/g, (_, inner: string) => {
    const [, kind = "", name = ""] =
      /^(headers|query_params)(?:\.|\[["'])([\w-]+)(?:["']\])?$/.exec(inner.trim()) ?? [];
    const prefix = VARIABLES[kind];
    isKnown &&= prefix !== undefined;
    return `\${${prefix ?? ""}${name}}`;
  });
  return isKnown && !replaced.includes("$(") ? replaced : null;
}

/** `remove`, `rename`, `replace`, `add` and `append` for headers, query or body. */
function changesOf(config: Members, kind: string, groups: Groups) {
  const set = [...pairsOf(groups.replace, kind), ...pairsOf(groups.add, kind)];
  const append = pairsOf(groups.append, kind);
  if (set.length > 0)
    config.changed(`replace and add of ${kind}`, "values are set whether or not they exist");
  // A value from the client must not pass for one that the gateway sets.
  const unknown = [groups.replace, groups.add, groups.append].flatMap((group) =>
    unknownOf(group, kind),
  );
  const remove = [...new Set([...(groups.remove?.texts(kind) ?? []), ...unknown])];
  const rename = pairsOf(groups.rename, kind);
  const lists = { set, add: append, rename };
  const filled = Object.entries(lists).filter(([, pairs]) => pairs.length > 0);
  return {
    ...Object.fromEntries(filled.map(([name, pairs]) => [name, Object.fromEntries(pairs)])),
    ...(remove.length === 0 ? {} : { remove }),
  };
}

type Groups = Readonly<Record<"remove" | "rename" | "replace" | "add" | "append", Members | null>>;

const groupsOf = (config: Members): Groups => ({
  remove: config.object("remove"),
  rename: config.object("rename"),
  replace: config.object("replace"),
  add: config.object("add"),
  append: config.object("append"),
});

/** Types of JSON values; the gateway derives them from the text. */
function omitTypes(groups: Groups): void {
  for (const group of Object.values(groups))
    group?.omit("json_types", "the type follows from the value");
}

const filledOnly = (parts: Readonly<Record<string, object>>) =>
  Object.fromEntries(Object.entries(parts).filter(([, part]) => Object.keys(part).length > 0));

const responseTransformer: PluginConverter = (config) => {
  const groups = groupsOf(config);
  omitTypes(groups);
  const response = filledOnly({
    headers: changesOf(config, "headers", groups),
    body_json: changesOf(config, "json", groups),
  });
  return { name: "transform", config: { response } };
};

const requestTransformer: PluginConverter = (config) => {
  const groups = groupsOf(config);
  const method = config.text("http_method");
  const uri = groups.replace?.text("uri") ?? null;
  const target = uri === null ? null : withVariables(uri);
  if (uri !== null && target === null) {
    config.drop("replace.uri: its expression has no equivalent");
    return null;
  }
  const request = filledOnly({
    headers: changesOf(config, "headers", groups),
    query: changesOf(config, "querystring", groups),
    body_json: changesOf(config, "body", groups),
  });
  return {
    name: "transform",
    config: {
      request: {
        ...request,
        ...(method === null ? {} : { method }),
        ...(target === null ? {} : { path_rewrite: { regex: "^.*$", to: target } }),
      },
    },
  };
};

const correlationId: PluginConverter = (config) => {
  config.omit("generator", "ids are UUIDs of version 7", "uuid");
  return {
    name: "request-id",
    config: {
      header: config.text("header_name") ?? "Kong-Request-ID",
      trust_incoming: "always",
      echo: config.flag("echo_downstream") ?? false,
    },
  };
};

const proxyCache: PluginConverter = (config) => {
  const statuses = config.numbers("response_code");
  const methods = config.texts("request_method");
  const seconds = config.number("cache_ttl") ?? 300;
  const query = config.texts("vary_query_params");
  config.omit("content_type", "responses of every content type are cached");
  config.omit("strategy", "responses are cached in memory", "memory");
  config.omit("storage_ttl", "responses are cached as long as they are fresh");
  config.omit("memory", "all routes share one cache");
  config.omit("ignore_uri_case", "paths are case-sensitive", false);
  config.omit("response_headers", "Age, Cache-Status and X-Cache-Status are always sent");
  return {
    name: "response-cache",
    config: {
      ttl_default: seconds,
      statuses: statuses.length === 0 ? [200, 301, 404] : statuses,
      methods: methods.length === 0 ? ["GET", "HEAD"] : methods,
      respect_cache_control: config.flag("cache_control") ?? false,
      vary_headers: config.texts("vary_headers"),
      ...(query.length === 0 ? {} : { key: { query_include: query } }),
    },
  };
};

export const transformation: Readonly<Record<string, PluginConverter>> = {
  "response-transformer": responseTransformer,
  "request-transformer": requestTransformer,
  "correlation-id": correlationId,
  "proxy-cache": proxyCache,
};
