// How consumers and credentials are written into memory that workers share, and under which keys; knows no memory.
import type { CredentialType } from "../model/credential.ts";
import type { ConsumerPlan, CredentialPlan } from "./snapshot.ts";

/** Keys of records. */
export const keyOf = {
  consumer: (id: string) => `consumer ${id}`,
  username: (username: string) => `username ${username}`,
  customId: (customId: string) => `custom_id ${customId}`,
  credential: (id: string) => `credential ${id}`,
  /** `shown`: of a key its SHA-256, of others the identifier. */
  lookup: (type: CredentialType, shown: string) => `${type} ${shown}`,
} as const;

export const keysOfConsumer = ({ id, username, customId }: ConsumerPlan): string[] => [
  keyOf.consumer(id),
  keyOf.username(username),
  ...(customId === null ? [] : [keyOf.customId(customId)]),
];

export const keysOfCredential = (plan: CredentialPlan): string[] => [
  keyOf.credential(plan.id),
  ...shownFor(plan).map((shown) => keyOf.lookup(plan.type, shown)),
];

/** By what a credential is found. A key is found by its hash, and by the one that it was rotated from. */
export function shownFor({
  type,
  identifier,
  hash,
  previous,
}: Pick<CredentialPlan, "type" | "identifier" | "hash" | "previous">): string[] {
  if (type !== "key") return [identifier ?? ""];
  return [hash, previous?.hash ?? null].filter((each) => each !== null);
}

/** The id of what a record holds. */
export const idOf = (text: string): unknown => (JSON.parse(text) as unknown[])[0];

type ConsumerFields = readonly [string, string, string | null, readonly string[]];

export const encodeConsumer = ({ id, username, customId, groups }: ConsumerPlan): string =>
  JSON.stringify([id, username, customId, groups] satisfies ConsumerFields);

export function decodeConsumer(text: string): ConsumerPlan {
  const [id, username, customId, groups] = JSON.parse(text) as ConsumerFields;
  return { id, username, customId, groups };
}

/** What most credentials have comes first: the rest is left out. */
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

export function encodeCredential(plan: CredentialPlan): string {
  const values = credentialFields.map((field) => plan[field]);
  return JSON.stringify(values.slice(0, values.findLastIndex((value) => value !== null) + 1));
}

export function decodeCredential(text: string): CredentialPlan {
  const values = JSON.parse(text) as unknown[];
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
