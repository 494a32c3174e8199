// DNS through dynamic updates (RFC 2136), for servers such as BIND, Knot and PowerDNS; knows no challenge.
import type { DnsClientParts } from "./provider.ts";
import { Type as t } from "@sinclair/typebox";
import { destination } from "../../model/destination.ts";
import { defineDnsProvider, secret, settings, ttl } from "./definition.ts";
import { exchange, type ServerAddress } from "./dns-exchange.ts";
import {
  classes,
  queryMessage,
  readMessage,
  type RecordParts,
  recordTypes,
  txtBytes,
  updateMessage,
} from "./dns-message.ts";
import { DnsError } from "./failure.ts";
import { longestZone, normalName, suffixesOf } from "./names.ts";
import type { TxtRecord } from "./provider.ts";
import { requireSignature, signMessage, tsigAlgorithms, type TsigKey } from "./tsig.ts";

const NAME = "^[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,251}[A-Za-z0-9_])?\\.?$";

export default defineDnsProvider({
  type: "rfc2136",
  title: "Dynamic updates (BIND, Knot, PowerDNS)",
  help: "Create a TSIG key at the name server and allow it to update TXT records of the zone.",
  config: settings({
    server: destination(
      t.String({
        maxLength: 260,
        pattern: "^(?:\\[[0-9a-fA-F:.]+\\]|[A-Za-z0-9._-]+)(?::\\d{1,5})?$",
        errorMessage: "must be a name or an address, with a port if it is not 53",
        description: "The primary name server, such as ns1.example.com or [2001:db8::1]:5353",
      }),
    ),
    protocol: destination(
      t.Unsafe<"tcp" | "udp">({
        type: "string",
        enum: ["tcp", "udp"],
        default: "tcp",
        description: "Transport protocol",
      }),
    ),
    zone: t.Optional(
      t.String({
        pattern: NAME,
        maxLength: 253,
        errorMessage: "must be a domain name",
        description: "Zone to update; default: found with SOA queries to the server",
      }),
    ),
    tsig_key_name: t.Optional(
      t.String({
        pattern: NAME,
        maxLength: 253,
        errorMessage: "must be the name of a key",
        description: "Name of the TSIG key; default: updates are not signed",
      }),
    ),
    tsig_algorithm: t.Unsafe<TsigKey["algorithm"]>({
      type: "string",
      enum: [...tsigAlgorithms],
      default: "hmac-sha256",
      description: "Algorithm of the key",
    }),
    tsig_secret: t.Optional(secret("The key in base64, as in the configuration of the server")),
    ttl: ttl(60, 0),
  }),
  example: {
    server: "ns1.example.com",
    tsig_key_name: "sluice.",
    tsig_secret: { $secret: "tsig" },
  },
  problem({ server, tsig_key_name: key, tsig_secret: secretText }) {
    const wrong = (field: string, message: string) => ({ field, message });
    const { port } = serverOf(String(server), "tcp");
    if (port < 1 || port > 65_535) return wrong("server", "must have a port from 1 to 65535");
    if (key === undefined && secretText !== undefined)
      return wrong("tsig_key_name", "is required with tsig_secret");
    if (key !== undefined && secretText === undefined)
      return wrong("tsig_secret", "is required with tsig_key_name");
    if (typeof secretText === "string" && !isBase64(secretText))
      return wrong("tsig_secret", "must be base64, as in the configuration of the server");
    return null;
  },
  create(config, parts) {
    const server = serverOf(config.server, config.protocol);
    const ask = (message: Buffer) => askServer(message, { server, key: keyOf(config), parts });
    const fixed = config.zone === undefined ? parts.zones : [config.zone];
    const { zone: own } = config;
    const change = async ({ fqdn, value }: TxtRecord, how: "add" | "remove") => {
      const zone = longestZone(fixed, fqdn) ?? (await findZone(ask, fqdn));
      const isAdded = how === "add";
      const update: RecordParts = {
        name: fqdn,
        type: recordTypes.TXT,
        // RFC 2136 section 2.5.4: the class NONE deletes a single record.
        class: isAdded ? classes.IN : classes.NONE,
        ttl: isAdded ? config.ttl : 0,
        data: txtBytes(value),
      };
      const { code } = await ask(updateMessage(randomId(), zone, [update]));
      if (code !== 0)
        throw new DnsError(
          `the name server ${server.host} rejects the update of ${zone}: ${codeWords(code)}`,
        );
    };
    return {
      present: (record) => change(record, "add"),
      cleanUp: (record) => change(record, "remove"),
      ...(own === undefined ? {} : { zones: () => Promise.resolve([normalName(own)]) }),
    };
  },
});

interface Conversation {
  readonly server: ServerAddress;
  readonly key: TsigKey | null;
  readonly parts: DnsClientParts;
}

async function askServer(message: Buffer, { server, key, parts }: Conversation) {
  const signed = key === null ? null : signMessage(message, key, Date.now());
  const bytes = await exchange(signed?.bytes ?? message, server, parts);
  const reply = readMessage(bytes);
  if (!reply.isReply || reply.id !== message.readUInt16BE(0))
    throw new DnsError(`the response of the name server ${server.host} does not match the request`);
  // A refusal need not be signed, and its code says more than a missing signature.
  const isTold = reply.additional.some(({ type }) => type === recordTypes.TSIG);
  if (key !== null && signed !== null && (reply.code === 0 || isTold))
    requireSignature({ bytes, message: reply }, { key, mac: signed.mac });
  return reply;
}

type Ask = (message: Buffer) => ReturnType<typeof askServer>;

/** The longest parent name with a SOA record at the server. */
async function findZone(ask: Ask, fqdn: string): Promise<string> {
  for (const name of suffixesOf(fqdn, 1)) {
    const { answers } = await ask(queryMessage(randomId(), name, recordTypes.SOA));
    if (answers.some((each) => each.type === recordTypes.SOA && each.name === name)) return name;
  }
  throw new DnsError(`the name server has no zone for ${fqdn}`);
}

const randomId = () => crypto.getRandomValues(new Uint16Array(1))[0] ?? 0;

function serverOf(text: string, protocol: ServerAddress["protocol"]): ServerAddress {
  const [, bracketed, plain, port] = /^(?:\[(.+)\]|([^:]+))(?::(\d+))?$/.exec(text) ?? [];
  return {
    host: bracketed ?? plain ?? text,
    port: port === undefined ? 53 : Number(port),
    protocol,
  };
}

const isBase64 = (value: string) => /^[A-Za-z0-9+/]+={0,2}$/.test(value.trim());

interface KeySettings {
  readonly tsig_key_name?: string;
  readonly tsig_algorithm: TsigKey["algorithm"];
  readonly tsig_secret?: string;
}

function keyOf({ tsig_key_name: name, tsig_algorithm: algorithm, tsig_secret }: KeySettings) {
  if (name === undefined && tsig_secret === undefined) return null;
  if (name === undefined) throw new DnsError("tsig_key_name is missing beside tsig_secret");
  if (tsig_secret === undefined) throw new DnsError("tsig_secret is missing beside tsig_key_name");
  if (!isBase64(tsig_secret)) throw new DnsError("tsig_secret is not base64");
  return { name: normalName(name), algorithm, secret: Buffer.from(tsig_secret.trim(), "base64") };
}

/** RFC 1035 section 4.1.1, RFC 2136 section 2.2. */
const codes: Readonly<Record<number, string>> = {
  1: "the update is malformed (FORMERR)",
  2: "the server has an internal error (SERVFAIL)",
  4: "the server does not support updates (NOTIMP)",
  5: "this key or this address is not allowed (REFUSED)",
  9: "the server is not the primary of the zone, or rejects the signature (NOTAUTH)",
  10: "the name is not in the zone (NOTZONE)",
};

const codeWords = (code: number): string => codes[code] ?? `code ${code}`;
