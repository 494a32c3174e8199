// ip-restriction: allows or denies clients by network, over HTTP and on stream routes.
import { Type as t } from "@sinclair/typebox";
import { reject } from "../pdk/response.ts";
import { definePlugin } from "../pdk/definition.ts";
import { cidr, config, flag, integer, listOf, nullable } from "../pdk/fields.ts";
import { compileCidrs } from "../pdk/net.ts";

const networks = (description: string) =>
  listOf(cidr({ description: "Address or network, IPv4 or IPv6" }), {
    description,
    maxItems: 100_000,
  });

const schema = config({
  allow: networks("Allowed addresses and networks; empty: all"),
  deny: networks("Denied addresses and networks, which override `allow`"),
  status: integer(403, { minimum: 400, maximum: 599, description: "Status of rejections" }),
  message: nullable(
    t.String({
      minLength: 1,
      maxLength: 256,
      pattern: "^[^\\u0000-\\u001f\\u007f]*$",
      errorMessage: "must be one line of text",
      description: "Reason shown to rejected clients; null: the gateway's text",
    }),
  ),
  stream_reset: flag(false, "Streams: close TCP connections with a reset instead of FIN"),
});

export default definePlugin({
  name: "ip-restriction",
  summary: "Allows or denies clients by IP address and network",
  description: `\`deny\` wins over \`allow\`. The address is the client's, after \`settings.trusted_proxies\`: without them, the gateway ignores
X-Forwarded-For.

On stream routes and on services for TCP and UDP the gateway closes a denied connection before it reaches a target, and ignores
\`status\` and \`message\`; it drops datagrams. \`stream_reset\` has no effect where the gateway terminates TLS. Open connections
survive a change of the lists.`,
  group: "access",
  order: 9100,
  phases: ["connect", "pre_auth"],
  scopes: ["global", "service", "route", "stream_route"],
  config: schema,
  example: { allow: ["10.0.0.0/8", "127.0.0.0/8", "::1"] },
  onError: "closed",
  ignoresPath: true,
  create(own) {
    const isDenied = compileCidrs(own.deny);
    const isListed = compileCidrs(own.allow);
    const hasList = own.allow.length > 0;
    const detail = own.message ?? "this address is not allowed";
    const denied = reject(own.status, "ip.denied", { detail });
    const unlisted = reject(own.status, "ip.not_allowed", { detail });
    const judge = (address: string) => {
      if (isDenied(address)) return denied;
      return hasList && !isListed(address) ? unlisted : undefined;
    };
    return {
      preAuth: (context) => judge(context.clientAddress()),
      connect: (context) => {
        const refusal = judge(context.clientAddress());
        return refusal && { reason: refusal.reason, reset: own.stream_reset };
      },
    };
  },
});
