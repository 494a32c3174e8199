// Plans of consumers and credentials for workers; created one by one while they are written, and not stored.
import type { Consumer } from "../model/consumer.ts";
import type { Credential } from "../model/credential.ts";
import type { GatewayConfig } from "../model/gateway-config.ts";
import type { CompileContext, Compiled } from "./compile-context.ts";
import type { ConfigDifference } from "./candidate.ts";
import { diffLarge } from "./diff.ts";
import type {
  ConsumerPlan,
  ConsumerSource,
  CredentialPlan,
  LargeChange,
  Snapshot,
} from "./snapshot.ts";

/** The consumers of a configuration; the same object when neither they nor their credentials changed. */
export function consumerSource(
  { config, difference }: { readonly config: GatewayConfig; readonly difference: ConfigDifference },
  previous: Compiled | null,
  { openSealed }: Pick<CompileContext, "openSealed">,
): ConsumerSource {
  const { consumers, credentials } = config;
  const before = previous?.snapshot;
  if (before?.consumers.consumers === consumers && before.consumers.credentials === credentials)
    return before.consumers;
  return {
    consumers,
    credentials,
    openSealed,
    change:
      before === undefined
        ? null
        : {
            base: before.revision,
            consumers: difference.consumers,
            credentials: difference.credentials,
          },
  };
}

/** Plans to write, and the ids of deleted or disabled objects. */
export interface PlanChange<T> {
  /** Upper bound of the upserts. */
  readonly size: number;
  readonly upserts: Iterable<T>;
  readonly removals: readonly string[];
}

export interface ConsumerChange {
  readonly consumers: PlanChange<ConsumerPlan>;
  readonly credentials: PlanChange<CredentialPlan>;
}

/** The change from the consumers of `previous` to those of `next`; its cost follows the size of the change. */
export function consumerChange(previous: Snapshot | null, next: Snapshot): ConsumerChange {
  const before = previous?.consumers;
  const { consumers, credentials, openSealed, change } = next.consumers;
  const difference =
    previous !== null && change?.base === previous.revision && before !== next.consumers
      ? change
      : {
          consumers: diffLarge(before?.consumers, consumers),
          credentials: diffLarge(before?.credentials, credentials),
        };
  return {
    consumers: planChange(difference.consumers, consumerPlan),
    credentials: planChange(difference.credentials, (credential) =>
      credentialPlan(credential, openSealed),
    ),
  };
}

function planChange<T extends { readonly id: string; readonly enabled: boolean }, P>(
  { isWhole, upserts, removals }: LargeChange<T>,
  planOf: (object: T) => P,
): PlanChange<P> {
  const off = isWhole ? [] : [...upserts].filter(({ enabled }) => !enabled).map(({ id }) => id);
  return {
    size: upserts.length,
    upserts: {
      *[Symbol.iterator]() {
        for (const object of upserts) if (object.enabled) yield planOf(object);
      },
    },
    removals: off.length === 0 ? removals : [...removals, ...off],
  };
}

const consumerPlan = ({ id, username, custom_id, groups }: Consumer): ConsumerPlan => ({
  id,
  username,
  customId: custom_id,
  groups,
});

function credentialPlan(
  credential: Credential,
  openSealed: ConsumerSource["openSealed"],
): CredentialPlan {
  const materialOf = (material: Pick<Credential, "secret_hash" | "sealed_secret">) => ({
    hash: material.secret_hash,
    secret: material.sealed_secret === null ? null : openSealed(material.sealed_secret),
  });
  const { previous: before, expires_at: expiresAt } = credential;
  return {
    id: credential.id,
    consumerId: credential.consumer_id,
    type: credential.type,
    name: credential.name,
    identifier: credential.identifier,
    algorithm: credential.algorithm,
    publicKey: credential.public_key,
    expiresAt: expiresAt === null ? null : Date.parse(expiresAt),
    ...materialOf(credential),
    previous: before === null ? null : { ...materialOf(before), until: Date.parse(before.until) },
  };
}
