// Plugins of Kong for authentication and authorization.
import type { Members } from "../members.ts";
import { groupName, type KongContext } from "./context.ts";
import type { PluginConverter } from "./plugins.ts";

/** Common settings. Kong forwards credentials unless hide_credentials is set. */
function shared(config: Members, context: KongContext) {
  const word = config.text("anonymous");
  const anonymous = word === null ? null : (context.ids.get(`consumers ${word}`) ?? null);
  if (word !== null && anonymous === null)
    config.changed("anonymous", `no anonymous consumer is set: ${word} is not in the file`);
  const realm = config.text("realm");
  return {
    hide_credentials: config.flag("hide_credentials") ?? false,
    run_on_preflight: config.flag("run_on_preflight") ?? true,
    ...(anonymous === null ? {} : { anonymous_consumer: anonymous }),
    ...(realm === null ? {} : { realm }),
  };
}

const keyAuth: PluginConverter = (config, context) => {
  const given = config.texts("key_names");
  const names = given.length === 0 ? ["apikey"] : given;
  const inHeader = config.flag("key_in_header") ?? true;
  const inQuery = config.flag("key_in_query") ?? true;
  config.omit("identity_realms", "the gateway stores all credentials itself");
  return {
    name: "key-auth",
    config: {
      header_names: inHeader ? names : [],
      query_names: inQuery ? names : [],
      key_in_body: config.flag("key_in_body") ?? false,
      ...shared(config, context),
    },
  };
};

const basicAuth: PluginConverter = (config, context) => ({
  name: "basic-auth",
  config: shared(config, context),
});

const jwt: PluginConverter = (config, context) => {
  const headers = config.texts("header_names");
  const claims = config.texts("claims_to_verify");
  const longest = config.bounded("maximum_expiration", { min: 0, max: 31_536_000 });
  if (config.flag("secret_is_base64") === true) {
    config.changed("secret_is_base64", "secrets must be text: create new ones for the consumers");
    config.drop("its keys are base64-encoded bytes");
    return null;
  }
  if (!claims.includes("exp")) config.changed("claims_to_verify", "expired tokens are rejected");
  const queries = config.texts("uri_param_names");
  const algorithms = [...context.jwtAlgorithms];
  return {
    name: "jwt",
    config: {
      header_names: headers.length === 0 ? ["Authorization"] : headers,
      query_names: queries.length === 0 && !config.has("uri_param_names") ? ["jwt"] : queries,
      cookie_names: config.texts("cookie_names"),
      key_claim: config.text("key_claim_name") ?? "iss",
      claims_required: Object.fromEntries(claims.map((claim) => [claim, null])),
      ...(longest === null ? {} : { maximum_expiration: longest }),
      ...(algorithms.length === 0 ? {} : { algorithms }),
      ...shared(config, context),
    },
  };
};

const hmacAuth: PluginConverter = (config, context) => {
  const skew = config.bounded("clock_skew", { min: 1, max: 86_400 });
  for (const name of ["enforce_headers", "algorithms"])
    config.omit(name, "signatures follow RFC 9421 and cover the method and the URL");
  config.changed(
    "signatures",
    "clients must sign requests according to RFC 9421, see docs/plugins",
  );
  return {
    name: "hmac-auth",
    config: {
      clock_skew: skew ?? 300,
      validate_body: config.flag("validate_request_body") ?? false,
      ...shared(config, context),
    },
  };
};

/** Older files use `whitelist` and `blacklist`. */
const lists = (config: Members) => ({
  allow: [...config.texts("allow"), ...config.texts("whitelist")],
  deny: [...config.texts("deny"), ...config.texts("blacklist")],
});

const acl: PluginConverter = (config, context) => {
  const { allow, deny } = lists(config);
  const words = (list: readonly string[]) => list.map((group) => groupName(context, group));
  for (const name of ["always_use_authenticated_groups", "include_consumer_groups"])
    if (config.flag(name) === true) {
      config.drop(`${name}: the plugin acl always checks the groups of both consumer and token`);
      return null;
    }
  return {
    name: "acl",
    config: {
      allow: words(allow),
      deny: words(deny),
      hide_groups_header: config.flag("hide_groups_header") ?? false,
    },
  };
};

const ipRestriction: PluginConverter = (config) => {
  const message = config.text("message");
  return {
    name: "ip-restriction",
    config: {
      ...lists(config),
      status: config.bounded("status", { min: 400, max: 599 }) ?? 403,
      ...(message === null ? {} : { message }),
    },
  };
};

const botDetection: PluginConverter = (config) => {
  const { allow, deny } = lists(config);
  config.changed("built-in list", "the preset scanners of this gateway is used");
  return { name: "bot-detection", config: { allow, deny, presets: ["scanners"] } };
};

export const authentication: Readonly<Record<string, PluginConverter>> = {
  "key-auth": keyAuth,
  "basic-auth": basicAuth,
  jwt,
  "hmac-auth": hmacAuth,
  acl,
  "ip-restriction": ipRestriction,
  "bot-detection": botDetection,
};
