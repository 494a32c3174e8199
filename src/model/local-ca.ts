// The CA of the gateway: what it may sign, and its public root; knows no key and no certificate of it.
import { type Static, Type as t } from "@sinclair/typebox";
import { decode } from "./decode.ts";
import { cidr, flag, group, integer, listOf } from "./fields.ts";
import { since } from "./resource.ts";

/** Names for which no public CA issues certificates (RFC 6761, RFC 6762, RFC 8375). */
export const PRIVATE_NAMES = [
  "localhost",
  "local",
  "lan",
  "internal",
  "home.arpa",
  "test",
] as const;

/** Networks that are not of the Internet: RFC 1918, RFC 4193, link-local and loopback. */
export const PRIVATE_NETWORKS = [
  "10.0.0.0/8",
  "172.16.0.0/12",
  "192.168.0.0/16",
  "169.254.0.0/16",
  "127.0.0.0/8",
  "::1/128",
  "fc00::/7",
  "fe80::/10",
] as const;

/** RFC 5280 section 4.2.1.10: constraints have no wildcards. */
const suffix = t.String({
  maxLength: 253,
  pattern:
    "^(?:[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9])?\\.)*[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9])?$",
  errorMessage: "must be a name such as lan or home.example.com, without *.",
});

const schema = group(
  {
    permitted_names: listOf(
      suffix,
      "Names that the local CA signs, each with all names below it; names of one label are signed beside them unless name_constraints is on",
      {
        initial: PRIVATE_NAMES,
        maxItems: 100,
        form: {
          title: "Names",
          help: "The local CA signs these names and all names below them, and no others",
          example: "home.example.com",
        },
      },
    ),
    permitted_networks: listOf(cidr, "Networks whose addresses the local CA signs", {
      initial: PRIVATE_NETWORKS,
      maxItems: 100,
      form: {
        title: "Networks",
        help: "The local CA signs addresses in these networks, and no others",
        example: "192.168.0.0/16",
      },
    }),
    name_constraints: flag(
      false,
      "Whether a new root states these names and networks itself (RFC 5280 section 4.2.1.10), so that clients accept nothing else from it; it then signs names of one label only where permitted_names has them. A root that exists keeps what it states",
      {
        help: "A new root states these names and networks itself, and clients accept nothing else from it. Names of one label, such as nas, then have to be in the list",
      },
    ),
    validity_days: integer(90, {
      minimum: 7,
      maximum: 397,
      description:
        "Days for which a certificate of the local CA is valid; the gateway renews it when a third is left",
      form: { title: "Days of validity" },
    }),
  },
  "The local CA, which signs certificates for private names",
  { group: "local_ca" },
);

export const localCaSettings = since(7, { ...schema, default: decode(schema, {}) });

export type LocalCaSettings = Readonly<Static<typeof localCaSettings>>;

/** What a root states about the names that it signs; null: nothing. */
export type RootConstraints = {
  readonly names: readonly string[];
  readonly networks: readonly string[];
} | null;

/** Whether a name is one of `names` or below one of them. A wildcard counts as the name behind it. */
export function isWithin(name: string, names: readonly string[]): boolean {
  const plain = name.replace(/^\*\./, "").toLowerCase();
  return names.some((each) => {
    const parent = each.toLowerCase();
    return plain === parent || plain.endsWith(`.${parent}`);
  });
}

/** Whether a name has the form of an IP address. */
export const isAddress = (name: string): boolean =>
  name.includes(":") || /^\d+(?:\.\d+){3}$/.test(name);

/** Whether it is a host name without a dot. */
export const isSingleLabel = (name: string): boolean => !name.includes(".") && !isAddress(name);

const time = (description: string) => t.String({ format: "date-time", description });

/** The root as the management API shows it: nothing of its key. */
const localCaRoot = t.Object(
  {
    certificate: t.String({ description: "PEM" }),
    subject: t.String({ description: "Distinguished name" }),
    fingerprint: t.String({ description: "SHA-256 of the certificate, hexadecimal" }),
    not_before: time("RFC 3339: valid from"),
    not_after: time("RFC 3339: valid until"),
    constraints: t.Union(
      [t.Object({ names: t.Array(t.String()), networks: t.Array(t.String()) }), t.Null()],
      { description: "Names and networks that the root states; null: none" },
    ),
  },
  { additionalProperties: false },
);

export const localCaView = t.Object(
  {
    root: t.Union([localCaRoot, t.Null()], {
      description: "null: the gateway creates it with the first certificate of the local CA",
    }),
  },
  { additionalProperties: false, title: "LocalCa" },
);

export type LocalCaView = Readonly<Static<typeof localCaView>>;
