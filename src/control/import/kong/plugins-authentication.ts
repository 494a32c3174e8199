// Plugins of Kong that say who a client is or whether it may come in.
import type { Members } from "../members.ts";
import { groupName, type KongContext } from "./context.ts";
import type { PluginConverter } from "./plugins.ts";

/** Settings that all of them share. Kong passes on what the client has shown unless it is told not to. */
function shared(config: Members, context: KongContext) {
  const word = config.text("anonymous");
  const anonymous = word === null ? null : (context.ids.get(`consumers ${word}`) ?? null);
  if (word !== null && anonymous === null)
    config.changed("anonymous", `nobody stands in: the consumer ${word} is not in the file`);
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
  config.leaveOut("identity_realms", "all credentials are in this gateway");
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
    config.changed("secret_is_base64", "secrets are text: give the consumers new ones");
    config.drop("its keys are bytes in base64");
    return null;
  }
  if (!claims.includes("exp"))
    config.changed("claims_to_verify", "tokens that have expired are refused");
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
    config.leaveOut(name, "signatures are those of RFC 9421, of the method and the address");
  config.changed("signatures", "clients have to sign as RFC 9421 says, see docs/plugins");
  return {
    name: "hmac-auth",
    config: {
      clock_skew: skew ?? 300,
      validate_body: config.flag("validate_request_body") ?? false,
      ...shared(config, context),
    },
  };
};

/** Older files say it in other words. */
const lists = (config: Members) => ({
  allow: [...config.texts("allow"), ...config.texts("whitelist")],
  deny: [...config.texts("deny"), ...config.texts("blacklist")],
});

const acl: PluginConverter = (config, context) => {
  const { allow, deny } = lists(config);
  const words = (list: readonly string[]) => list.map((group) => groupName(context, group));
  for (const name of ["always_use_authenticated_groups", "include_consumer_groups"])
    if (config.flag(name) === true) {
      config.drop(`${name}: groups of the consumer and those of its token count`);
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
  config.changed("its own list", "the list of scanners that comes with this gateway is used");
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
