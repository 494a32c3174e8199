// ClientHello messages, whole, in records and changed: they round-trip with any split.
import fc from "fast-check";
import { readClientHello } from "../../../src/net/client-hello.ts";
import { edited, edits, type Edit, mustSettle } from "../bytes.ts";
import { defineTarget, must, mustEqual } from "../target.ts";

interface Extension {
  readonly type: number;
  readonly data: Uint8Array;
}

interface Input {
  readonly session: Uint8Array;
  readonly ciphers: number;
  readonly serverNames: readonly string[];
  readonly protocols: readonly string[] | null;
  /** What the client offers in the extension for versions; null: it has none. */
  readonly versions: readonly number[] | null;
  readonly others: readonly Extension[];
  /** Type of an extension that is sent again at the end. */
  readonly twice: number | null;
  /** Lengths of the records. */
  readonly records: readonly number[];
  readonly changes: readonly Edit[];
}

const label = fc.constantFrom("a", "app", "x-1", "_dmarc", "xn--bcher-kva");
const hostName = fc.array(label, { minLength: 1, maxLength: 3 }).map((parts) => parts.join("."));

const TLS_1_3 = 0x0304;

export const target = defineTarget<Input>({
  name: "client-hello",
  share: 60,
  inputs: fc.record({
    session: fc.uint8Array({ maxLength: 32 }),
    ciphers: fc.integer({ min: 0, max: 12 }),
    serverNames: fc.array(hostName, { maxLength: 2 }),
    protocols: fc.option(
      fc.array(fc.constantFrom("h2", "http/1.1", "h3"), { minLength: 1, maxLength: 3 }),
    ),
    versions: fc.option(
      fc.array(fc.constantFrom(0x0301, 0x0303, TLS_1_3, 0x7a7a), { minLength: 1, maxLength: 4 }),
    ),
    others: fc.array(
      fc.record({ type: fc.integer({ min: 1, max: 15 }), data: fc.uint8Array({ maxLength: 12 }) }),
      { maxLength: 3 },
    ),
    twice: fc.option(fc.constantFrom(0, 16, 43), { freq: 4 }),
    records: fc.array(fc.integer({ min: 1, max: 60 }), { maxLength: 4 }),
    changes: edits(3),
  }),
  check(input) {
    const hello = inRecords(messageOf(input), input.records);
    const bytes = edited(hello, input.changes);
    const read = mustSettle(bytes, readClientHello, (said) => said === "incomplete");
    if (typeof read !== "string" && read.serverName !== null)
      must(/^[a-z0-9_][a-z0-9_.-]{0,252}$/.test(read.serverName), "a name that is no host name");
    if (input.changes.length === 0) mustEqual(read, wantedOf(input), "what was written");
  },
});

/** Each extension and each name occurs once: servers read duplicates differently. */
function wantedOf({ serverNames, protocols, versions, twice }: Input) {
  // RFC 6066 section 3: no two names of one kind. RFC 8446 section 4.2: no two extensions of one type.
  if (serverNames.length > 1) return "invalid";
  if (twice === 0 && serverNames.length > 0) return "invalid";
  if (twice === 16 && protocols !== null) return "invalid";
  if (twice === 43 && versions !== null) return "invalid";
  return {
    serverName: serverNames[0] ?? null,
    protocols: protocols ?? [],
    offersTls13: versions?.includes(TLS_1_3) ?? false,
  };
}

const u16 = (value: number) => Buffer.from([value >> 8, value & 255]);
const vector = (size: 1 | 2, bytes: Uint8Array) =>
  Buffer.concat([size === 1 ? Buffer.from([bytes.length]) : u16(bytes.length), bytes]);

function messageOf(input: Input): Buffer {
  const { session, ciphers, serverNames, protocols, versions, others, twice } = input;
  const names = serverNames.map((name) =>
    Buffer.concat([Buffer.of(0), vector(2, Buffer.from(name))]),
  );
  const list = (protocols ?? []).map((name) => vector(1, Buffer.from(name)));
  const all: Extension[] = [
    ...(names.length === 0 ? [] : [{ type: 0, data: vector(2, Buffer.concat(names)) }]),
    ...others,
    ...(protocols === null ? [] : [{ type: 16, data: vector(2, Buffer.concat(list)) }]),
    ...(versions === null
      ? []
      : [{ type: 43, data: vector(1, Buffer.concat(versions.map((version) => u16(version)))) }]),
  ];
  const again = all.filter(({ type }) => type === twice);
  const extensions = [...all, ...again].map(({ type, data }) =>
    Buffer.concat([u16(type), vector(2, data)]),
  );
  const body = Buffer.concat([
    ...[Buffer.of(3, 3), Buffer.alloc(32, 7), vector(1, session)],
    ...[vector(2, Buffer.alloc(ciphers * 2, 19)), vector(1, Buffer.of(0))],
    vector(2, Buffer.concat(extensions)),
  ]);
  return Buffer.concat([Buffer.of(1, 0), u16(body.length), body]);
}

function inRecords(message: Buffer, lengths: readonly number[]): Buffer {
  const records: Buffer[] = [];
  let rest = message;
  for (const length of [...lengths, message.length]) {
    if (rest.length === 0) break;
    const part = rest.subarray(0, length);
    rest = rest.subarray(length);
    records.push(Buffer.concat([Buffer.of(22, 3, 1), u16(part.length), part]));
  }
  return Buffer.concat(records);
}
