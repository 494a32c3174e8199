// Encodes consumers and credentials for memory that workers share, and their keys; knows no memory.
import { type CredentialType, credentialTypes } from "../model/credential.ts";
import type { RecordKey } from "../shared-memory/record-reader.ts";
import type { ConsumerPlan, CredentialPlan } from "./snapshot.ts";

/** Kinds of keys; one per type of credentials follows `lookup`. */
const kinds = { consumer: 1, username: 2, customId: 3, credential: 4, lookup: 5 } as const;
const lookups = Object.fromEntries(
  credentialTypes.map((type, index) => [type, kinds.lookup + index]),
) as Record<CredentialType, number>;

/** Keys of records. */
export const keyOf = {
  consumer: (id: string): RecordKey => [kinds.consumer, id],
  username: (username: string): RecordKey => [kinds.username, username],
  customId: (customId: string): RecordKey => [kinds.customId, customId],
  credential: (id: string): RecordKey => [kinds.credential, id],
  /** `shown`: what a client presents: of a key its SHA-256, of others the identifier. */
  lookup: (type: CredentialType, shown: string): RecordKey => [lookups[type], shown],
} as const;

export const keysOfConsumer = ({ id, username, customId }: ConsumerPlan): RecordKey[] => [
  keyOf.consumer(id),
  keyOf.username(username),
  ...(customId === null ? [] : [keyOf.customId(customId)]),
];

export const keysOfCredential = (plan: CredentialPlan): RecordKey[] => [
  keyOf.credential(plan.id),
  ...shownFor(plan).map((shown) => keyOf.lookup(plan.type, shown)),
];

/** Lookup values of a credential: of a key its hash and the one before its rotation, of others the identifier. */
export function shownFor({
  type,
  identifier,
  hash,
  previous,
}: Pick<CredentialPlan, "type" | "identifier" | "hash" | "previous">): string[] {
  if (type !== "key") return [identifier ?? ""];
  return [hash, previous?.hash ?? null].filter((each) => each !== null);
}

/** Whether a credential has this lookup value. */
export const isShownFor = (
  plan: Pick<CredentialPlan, "type" | "identifier" | "hash" | "previous">,
  shown: string,
): boolean =>
  plan.type === "key"
    ? plan.hash === shown || plan.previous?.hash === shown
    : (plan.identifier ?? "") === shown;

/**
 * Most records are short: parts of known length, then parts that end with a newline. Slicing them is several times cheaper than
 * parsing JSON, and with very many clients nearly each request reads a record for the first time. Other records are JSON, which
 * begins with a bracket.
 */
const SHORT = "~";
const JSON_MARK = "[";
const ID_LENGTH = 36;
const END_OF_ID = SHORT.length + ID_LENGTH;
const END_OF_OWNER = END_OF_ID + ID_LENGTH;

/** The id in a record. */
export const idOf = (text: string): unknown =>
  text.startsWith(JSON_MARK)
    ? (JSON.parse(text) as unknown[])[0]
    : text.slice(SHORT.length, END_OF_ID);

type ConsumerFields = readonly [string, string, string | null, readonly string[]];

/** Whether a part does not contain its own terminator. */
const fits = (text: string, end: string): boolean => text !== "" && !text.includes(end);

export function encodeConsumer({ id, username, customId, groups }: ConsumerPlan): string {
  const isShort =
    id.length === ID_LENGTH &&
    fits(username, "\n") &&
    (customId === null || fits(customId, "\n")) &&
    groups.every((group) => fits(group, ","));
  if (isShort) return `${SHORT}${id}${username}\n${customId ?? ""}\n${groups.join(",")}`;
  return JSON.stringify([id, username, customId, groups] satisfies ConsumerFields);
}

export function decodeConsumer(text: string): ConsumerPlan {
  if (text.startsWith(JSON_MARK)) {
    const [id, username, customId, groups] = JSON.parse(text) as ConsumerFields;
    return { id, username, customId, groups };
  }
  const first = text.indexOf("\n", END_OF_ID);
  const second = text.indexOf("\n", first + 1);
  const groups = text.slice(second + 1);
  return {
    id: text.slice(SHORT.length, END_OF_ID),
    username: text.slice(END_OF_ID, first),
    customId: second === first + 1 ? null : text.slice(first + 1, second),
    groups: groups === "" ? NO_GROUPS : groups.split(","),
  };
}

const NO_GROUPS: readonly string[] = Object.freeze([]);

/** The most common fields first: trailing nulls are omitted. */
const credentialFields = [
  "id",
  "consumerId",
  "type",
  "hash",
  "identifier",
  "algorithm",
  "secret",
  "expiresAt",
  "name",
  "publicKey",
  "previous",
] as const satisfies readonly (keyof CredentialPlan)[];
/** Number of fields in a short record. */
const SHORT_FIELDS = 4;

/** A key with only its hash is short. */
export function encodeCredential(plan: CredentialPlan): string {
  const { id, consumerId, type, hash } = plan;
  const isShort =
    type === "key" &&
    id.length === ID_LENGTH &&
    consumerId.length === ID_LENGTH &&
    hash !== null &&
    credentialFields.slice(SHORT_FIELDS).every((field) => plan[field] === null);
  if (isShort) return SHORT + id + consumerId + hash;
  const values = credentialFields.map((field) => plan[field]);
  return JSON.stringify(values.slice(0, values.findLastIndex((value) => value !== null) + 1));
}

export function decodeCredential(text: string): CredentialPlan {
  const values: unknown[] = text.startsWith(JSON_MARK)
    ? (JSON.parse(text) as unknown[])
    : [
        text.slice(SHORT.length, END_OF_ID),
        text.slice(END_OF_ID, END_OF_OWNER),
        "key",
        text.slice(END_OF_OWNER),
      ];
  return {
    id: values[0],
    consumerId: values[1],
    type: values[2],
    hash: values[3] ?? null,
    identifier: values[4] ?? null,
    algorithm: values[5] ?? null,
    secret: values[6] ?? null,
    expiresAt: values[7] ?? null,
    name: values[8] ?? null,
    publicKey: values[9] ?? null,
    previous: values[10] ?? null,
  } as CredentialPlan;
}
