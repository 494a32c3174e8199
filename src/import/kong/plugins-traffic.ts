// Plugins of Kong for limits, CORS and responses without a service.
import type { Members } from "../members.ts";
import type { PluginConverter } from "./plugins.ts";

const windows = {
  second: 1,
  minute: 60,
  hour: 3600,
  day: 86_400,
  month: 2_592_000,
  year: 31_536_000,
} as const;

function keyOf(config: Members): string {
  const word = config.text("limit_by") ?? "consumer";
  const header = config.text("header_name");
  config.omit("path", "give the plugin a condition on the path");
  switch (word) {
    case "consumer":
    case "credential":
    case "ip":
    case "service":
      return word;
    case "header":
      return `header:${header ?? ""}`;
    case "path":
      return "route";
    default:
      config.changed("limit_by", `${word} became ip`);
      return "ip";
  }
}

const rateLimiting: PluginConverter = (config) => {
  const key = keyOf(config);
  const limits = Object.entries(windows).flatMap(([name, window]) => {
    const requests = config.number(name);
    if (requests === null) return [];
    return [{ name, requests, window, algorithm: "fixed", key }];
  });
  const message = config.text("error_message");
  config.omit("policy", "counters are shared by the workers of this gateway", "local");
  for (const name of ["redis", "sync_rate", "redis_host", "redis_port", "redis_password"])
    config.omit(name, "counters are stored in memory only", name === "sync_rate" ? -1 : 6379);
  for (const name of ["redis_username", "redis_database", "redis_timeout", "redis_server_name"])
    config.omit(name, "counters are stored in memory only", name.endsWith("out") ? 2000 : 0);
  for (const name of ["redis_ssl", "redis_ssl_verify"])
    config.omit(name, "counters are stored in memory only", false);
  config.omit("fault_tolerant", "counters are in memory and do not fail", true);
  return {
    name: "rate-limit",
    config: {
      limits,
      status: config.number("error_code") ?? 429,
      headers: config.flag("hide_client_headers") === true ? "off" : "both",
      ...(message === null ? {} : { message }),
    },
  };
};

const IDENTIFIERS: Readonly<Record<string, string>> = {
  ip: "ip",
  consumer: "consumer",
  credential: "credential",
  service: "service",
  path: "route",
};

/** Lists of limits and of the lengths of their windows in seconds. */
const advancedRateLimiting: PluginConverter = (config) => {
  const limits = numbersOf(config, "limit");
  const sizes = numbersOf(config, "window_size");
  const word = config.text("identifier") ?? "consumer";
  const header = config.text("header_name");
  config.omit("path", "give the plugin a condition on the path");
  const known = Object.hasOwn(IDENTIFIERS, word) ? IDENTIFIERS[word] : undefined;
  const key = word === "header" && header !== null ? `header:${header}` : (known ?? "ip");
  if (known === undefined && key === "ip") config.changed("identifier", `${word} became ip`);
  const algorithm = (config.text("window_type") ?? "sliding") === "fixed" ? "fixed" : "sliding";
  const message = config.text("error_message");
  config.omit("strategy", "counters are shared by the workers of this gateway", "local");
  for (const name of ["redis", "sync_rate", "namespace", "dictionary_name", "lock_dictionary_name"])
    config.omit(name, "counters are stored in memory, or on the server of --counters", -1);
  for (const name of ["retry_after_jitter_max", "throttling", "compound_identifier"])
    config.omit(name, "the plugin rate-limit has no setting for it", 0);
  for (const name of ["consumer_groups", "enforce_consumer_groups"])
    config.omit(name, "consumer groups are not imported", false);
  config.omit("disable_penalty", "a rejected request counts in no limit", true);
  const found = limits.flatMap((requests, at) => {
    const window = sizes[at] ?? sizes.at(-1);
    if (window === undefined || requests <= 0) return [];
    return [
      { name: `window-${window}${at === 0 ? "" : `-${at + 1}`}`, requests, window, algorithm, key },
    ];
  });
  if (found.length === 0) {
    config.drop("it has no limits");
    return null;
  }
  return {
    name: "rate-limit",
    config: {
      limits: found,
      status: config.number("error_code") ?? 429,
      headers: config.flag("hide_client_headers") === true ? "off" : "both",
      ...(message === null ? {} : { message }),
    },
  };
};

/** One number, or a list of numbers, which some files have as text. */
function numbersOf(config: Members, name: string): readonly number[] {
  const value = config.raw(name) ?? [];
  return (Array.isArray(value) ? value : [value]).map(Number).filter(Number.isFinite);
}

const UNITS: Readonly<Record<string, number>> = {
  megabytes: 1_048_576,
  kilobytes: 1024,
  bytes: 1,
};

const sizeLimiting: PluginConverter = (config) => {
  const size = config.number("allowed_payload_size") ?? 128;
  const unit = UNITS[config.text("size_unit") ?? "megabytes"] ?? 1_048_576;
  return {
    name: "request-size-limit",
    config: {
      max_body_bytes: Math.max(1, Math.round(size * unit)),
      require_content_length: config.flag("require_content_length") ?? false,
    },
  };
};

const termination: PluginConverter = (config) => {
  const status = config.number("status_code") ?? 503;
  const type = config.text("content_type");
  const body = config.text("body");
  const message = config.text("message");
  config.omit("echo", "responses do not echo the request", false);
  const trigger = config.text("trigger");
  if (trigger !== null) {
    config.drop(
      "it responds only to requests with a header or parameter: set the condition when of the plugin respond",
    );
    return null;
  }
  return {
    name: "respond",
    config: {
      status,
      // Kong runs authentication first.
      after_authentication: true,
      ...(type === null || body === null ? {} : { headers: { "Content-Type": type } }),
      ...(body === null ? { json: { message: message ?? "Service unavailable" } } : { body }),
    },
  };
};

const cors: PluginConverter = (config) => {
  const given = config.texts("origins");
  const origins = given.length === 0 ? ["*"] : given;
  const methods = config.texts("methods");
  const headers = config.texts("headers");
  const maxAge = config.bounded("max_age", { min: 0, max: 86_400 });
  const credentials = config.flag("credentials") ?? false;
  const isOpen = origins.includes("*");
  if (credentials && isOpen)
    config.changed("credentials", 'are not allowed with the origin "*": list the origins');
  config.omit(
    "allow_origin_absent",
    "responses to requests without Origin have no CORS headers",
    true,
  );
  return {
    name: "cors",
    config: {
      origins: isOpen ? ["*"] : origins.map(originOf),
      methods:
        methods.length > 0
          ? methods
          : ["GET", "HEAD", "PUT", "PATCH", "POST", "DELETE", "OPTIONS", "TRACE", "CONNECT"],
      ...(headers.length === 0 ? {} : { allow_headers: headers }),
      expose_headers: config.texts("exposed_headers"),
      credentials: credentials && !isOpen,
      ...(maxAge === null ? {} : { max_age: maxAge }),
      private_network: config.flag("private_network") ?? false,
      preflight_continue: config.flag("preflight_continue") ?? false,
    },
  };
};

/** Kong treats anything but a plain origin as an expression. */
const originOf = (text: string) =>
  /^[a-z][a-z0-9+.-]*:\/\/[A-Za-z0-9.:[\]-]+$/.test(text) ? text : `~^(?:${text})$`;

const redirect: PluginConverter = (config) => {
  const location = config.text("location") ?? "";
  const keepsPath = config.flag("keep_incoming_path") ?? false;
  return {
    name: "redirect",
    config: {
      // Kong has no variables here: escape the `$`.
      to: location.replaceAll("$", "%24"),
      status: config.number("status_code") ?? 301,
      keep_path: keepsPath,
      keep_query: keepsPath,
    },
  };
};

/** Messages are translated without their descriptions. */
const grpcWeb: PluginConverter = (config) => {
  config.omit("proto", "messages pass as they are, also as JSON");
  config.omit("pass_stripped_path", "the path of a call is never stripped");
  config.omit("allow_origin_header", "add the plugin cors for other origins", "*");
  return { name: "grpc-web", config: {} };
};

export const traffic: Readonly<Record<string, PluginConverter>> = {
  "rate-limiting": rateLimiting,
  "rate-limiting-advanced": advancedRateLimiting,
  "request-size-limiting": sizeLimiting,
  "request-termination": termination,
  cors,
  redirect,
  "grpc-web": grpcWeb,
};
