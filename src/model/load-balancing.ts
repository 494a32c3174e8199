// How a service chooses a target, and keeps a client at one; knows no target.
import { Type as t } from "@sinclair/typebox";
import { flag, group, integer, oneOf } from "./fields.ts";

/** Protocols with requests; the others are of stream routes. */
export const HTTP = ["http", "https", "h2", "h2c", "grpc", "grpcs"];

const hashSource = ["ip", "header", "cookie", "query", "path", "consumer"] as const;

const hashOptions = {
  ip: "Client IP address",
  header: "Header",
  cookie: "Cookie",
  query: "Query parameter",
  path: "Path",
  consumer: "Consumer",
};

export const hashOn = group(
  {
    source: oneOf(hashSource, {
      default: "ip",
      description: "What consistent_hash hashes",
      form: { title: "Hash key", help: "", options: hashOptions },
    }),
    name: t.String({
      default: "",
      maxLength: 256,
      description: "Name of the header, cookie or query parameter",
      form: {
        title: "Name of the hash key",
        help: "Of the header, cookie or query parameter",
        example: "x-user",
        when: { source: ["header", "cookie", "query"] },
      },
    }),
    fallback: oneOf(hashSource, {
      default: "ip",
      description: "Source to use when the first one is absent",
      form: {
        title: "Fallback hash key",
        help: "If the first one is absent",
        options: hashOptions,
      },
    }),
  },
  "Key of the consistent_hash algorithm",
  { group: "balancing", when: { algorithm: ["consistent_hash"] } },
);

export const sticky = group(
  {
    enabled: flag(false, "Whether a client stays on its first target", {
      title: "Sticky sessions",
      help: "With a cookie, for applications that keep sessions in memory",
    }),
    cookie: t.String({
      default: "sluice_sticky",
      pattern: "^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$",
      errorMessage: "must be a cookie name",
      description: "Cookie name",
      form: { title: "Cookie name", help: "", when: { enabled: [true] } },
    }),
    ttl: integer(0, {
      minimum: 0,
      maximum: 31_536_000,
      description: "Cookie lifetime in seconds; 0: a session cookie",
      form: {
        title: "Cookie lifetime",
        help: "",
        zero: "session cookie",
        unit: "s",
        when: { enabled: [true] },
      },
    }),
  },
  "Sticky sessions with a cookie",
  { group: "balancing", when: { protocol: HTTP } },
);
