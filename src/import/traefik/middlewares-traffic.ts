// Converts middlewares of Traefik for redirects, compression, bodies and retries to plugins and fields; knows no router.
import { portable } from "../expression.ts";
import type { MiddlewareConverter } from "./middlewares.ts";
import { circuitBreaker } from "./circuit-breaker.ts";
import { goReplacement } from "./rewrite.ts";

const redirectScheme: MiddlewareConverter = (settings) => {
  const scheme = (settings.text("scheme") ?? "https").toLowerCase();
  const port = settings.text("port") ?? "";
  const isPermanent = settings.flag("permanent") ?? false;
  if (port !== "" && port !== "443" && scheme === "https")
    settings.changed("port", "the redirect leads to the port of the listener for HTTPS");
  if (scheme === "https") {
    if (!isPermanent)
      settings.changed("permanent", "the redirect is permanent and keeps the method (308)");
    return { fields: { https_redirect: isPermanent ? 301 : 308 } };
  }
  const status = isPermanent ? 301 : 302;
  return { plugins: [{ name: "redirect", config: { scheme: "http", status } }] };
};

/** `^https?://a.test/(.*)`: its host and its path; null: neither is known. */
function partsOf(source: string) {
  const [, host, path = ""] =
    /^\^?https?\??:\/\/((?:[\w-]|\\?\.|\(\?:www\\\.\)\?|\(www\\\.\)\?)+?)(?::\d+|\(\?::\d\+\)\?)?(\/.*|\(.*\))?$/.exec(
      source,
    ) ?? [];
  if (host === undefined || host.includes("(www")) return null;
  const name = host.replaceAll("\\.", ".");
  const bare = name.replace(/^\(\?:www\.\)\?/, "");
  const hosts = bare === name ? [name] : [bare, `www.${bare}`];
  return { hosts, path };
}

/** The plugin has expressions on paths: one on the whole URL is converted if it names its host. */
const redirectRegex: MiddlewareConverter = (settings) => {
  const source = settings.text("regex") ?? "";
  const replacement = settings.text("replacement") ?? "";
  const status = settings.flag("permanent") === true ? 301 : 302;
  const parts = partsOf(source);
  const inner = parts === null ? undefined : portable(parts.path)?.source;
  if (parts === null || inner === undefined || replacement.includes("${http")) {
    settings.drop("expressions on the whole URL have no equivalent: use the plugin redirect");
    return {};
  }
  const regex = inner.startsWith("/") ? `^${inner}` : inner === "" ? "^" : `^${inner}`;
  const to = goReplacement(replacement);
  if (/\$\D/.test(to) || !/^(?:https?:\/\/|\/)/.test(to)) {
    settings.drop("its replacement has no equivalent: use the plugin redirect");
    return {};
  }
  const config = { regex, to, status, keep_query: true };
  return { plugins: [{ name: "redirect", config, when: { host: parts.hosts } }] };
};

const ENCODINGS = ["br", "zstd", "gzip"];

const compress: MiddlewareConverter = (settings) => {
  const minimum = settings.bounded("minResponseBodyBytes", { min: 0, max: 1_073_741_824 });
  const types = settings.texts("includedContentTypes").map((type) => type.toLowerCase());
  settings.omit("excludedContentTypes", "the list types of the plugin compress decides");
  settings.omit("defaultEncoding", "the client decides");
  const given = settings.texts("encodings").filter((one) => ENCODINGS.includes(one));
  return {
    plugins: [
      {
        name: "compress",
        config: {
          ...(minimum === null ? {} : { min_bytes: minimum }),
          ...(types.length === 0 ? {} : { types }),
          ...(given.length === 0 ? {} : { encodings: given }),
        },
      },
    ],
  };
};

const buffering: MiddlewareConverter = (settings) => {
  const max = settings.number("maxRequestBodyBytes") ?? 0;
  settings.omit("memRequestBodyBytes", "request bodies are streamed");
  for (const name of ["maxResponseBodyBytes", "memResponseBodyBytes"])
    settings.omit(name, "set response_buffer_bytes of the service");
  settings.omit("retryExpression", "set the retries of the service");
  if (max <= 0) return {};
  const limits = { max_headers_bytes: 1_048_576, max_uri_bytes: 1_048_576 };
  return {
    plugins: [{ name: "request-size-limit", config: { max_body_bytes: max, ...limits } }],
  };
};

const retry: MiddlewareConverter = (settings) => {
  const attempts = settings.number("attempts") ?? 1;
  settings.omit("initialInterval", "set backoff_ms of the retries");
  const count = Math.min(10, Math.max(0, attempts - 1));
  if (count !== attempts - 1) settings.changed("attempts", `${attempts} became ${count + 1}`);
  return { fields: { retries: { count, on: ["connect", "reset"] } } };
};

const omitted =
  (why: string): MiddlewareConverter =>
  (settings) => {
    settings.drop(why);
    return {};
  };

export const traffic: Readonly<Record<string, MiddlewareConverter>> = {
  redirectScheme,
  redirectRegex,
  compress,
  buffering,
  retry,
  circuitBreaker,
  errors: omitted(
    "its pages come from a service, those of the plugin error-pages are in its settings: copy them there",
  ),
  contentType: (settings) => {
    settings.ignoreRest();
    return {};
  },
  grpcWeb: (settings) => {
    settings.omit("allowOrigins", "add the plugin cors for other origins", ["*"]);
    return { plugins: [{ name: "grpc-web", config: {} }] };
  },
};
