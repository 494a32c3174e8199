// A control plane with sample plugins and every kind of text in their configurations.
import { Type as t } from "@sinclair/typebox";
import { compileStored } from "../../../src/control/stored.ts";
import { createControlPlane } from "../../../src/control-plane.ts";
import type { Principal, Role } from "../../../src/control/principal.ts";
import type { WriteOptions } from "../../../src/control/resource.ts";
import { SecretBox } from "../../../src/crypto/secret-box.ts";
import { createLog } from "../../../src/log.ts";
import { catalogueOf } from "../../../src/pdk/catalogue.ts";
import { definePlugin, httpScopes } from "../../../src/pdk/definition.ts";
import * as fields from "../../../src/pdk/fields.ts";
import { TargetBoard } from "../../../src/shared-memory/target-board.ts";
import { configOf, context, noTokens, options, Steps } from "./fixture.ts";

const described = { description: "x" };
const shared = {
  summary: "x",
  description: "x",
  group: "access",
  order: 100,
  phases: ["access"],
  scopes: [...httpScopes, "stream_route"],
  onError: "closed",
  create: () => ({}),
} as const;

const account = t.Object(
  { username: t.String(), password: fields.secret(described), level: fields.flag(true, "x") },
  { additionalProperties: false, default: {} },
);

const sample = definePlugin({
  ...shared,
  name: "sample",
  config: fields.config({
    limit: fields.integer(5, { minimum: 1, maximum: 10, description: "x" }),
    token: t.Optional(fields.secret(described)),
    session: fields.group({ key: fields.nullable(fields.secret(described)) }, "x"),
    extra: fields.nullable(t.Object({ pin: t.Optional(fields.secret(described)) })),
    accounts: fields.listOf(account, described),
    keys: fields.listOf(fields.secret(described), described),
    headers: t.Record(t.String(), fields.secret(described), { default: {} }),
    backend: fields.nullable(fields.serviceReference(described)),
    only: fields.listOf(fields.consumerReference(described), described),
    free: t.Unknown({ default: null }),
  }),
  example: {},
});

const strict = definePlugin({
  ...shared,
  name: "strict",
  scopes: ["route"],
  config: fields.config({ key: fields.secret(described), backend: t.Optional(t.String()) }),
  example: { key: "1" },
});

const guarded = definePlugin({
  ...shared,
  name: "guarded",
  needsAdmin: true,
  allowsMultiple: true,
  config: fields.config({}),
  example: {},
});

const catalogue = catalogueOf([sample, strict, guarded]);

export function pluginWorld(clock = { now: () => Date.parse("2026-01-01T00:00:00Z") }) {
  const steps = new Steps();
  const box = new SecretBox(new Uint8Array(32));
  const logged: string[] = [];
  const own = { ...context, plugins: catalogue, openSealed: (text: string) => box.open(text) };
  const use = new Map<string, string>();
  const control = createControlPlane({
    instanceId: "test",
    store: steps,
    auditStore: steps,
    revisionStore: { list: () => [], get: () => null, since: () => [] } as never,
    sessionStore: { load: () => [], ended: () => [], keepEnded() {} },
    tokenStore: noTokens,
    totpStore: { get: () => null, all: () => [], remove() {} },
    credentialUseStore: {
      load: () => [...use].map(([id, last_used_at]) => ({ id, last_used_at })),
      write(rows) {
        for (const { id, last_used_at } of rows) use.set(id, last_used_at);
      },
      remove(ids) {
        for (const id of ids) use.delete(id);
      },
    },
    plugins: catalogue,
    box,
    rollout: steps,
    targetBoard: TargetBoard.create(1),
    clock,
    log: createLog({ level: "debug", format: "json", sink: (line) => logged.push(line) }),
    current: compileStored({ config: configOf({}), revision: 1 }, own),
    context: () => own,
  });
  return { control, steps, box, logged, use };
}

export type PluginWorld = ReturnType<typeof pluginWorld>;

/** Options of a write by a user with a role. */
export const as = (role: Role): WriteOptions => ({ ...options, by: caller(role) });

const caller = (role: Role): Principal => ({
  role,
  actor: role,
  method: "disabled",
  address: "127.0.0.1",
  sessionId: null,
  userId: null,
  tokenId: null,
  expiresAt: null,
});

/** The message that a promise is rejected with, behind its status. */
export async function refusal(promise: Promise<unknown>): Promise<string> {
  try {
    await promise;
  } catch (error) {
    return `${(error as { status?: number }).status} ${(error as Error).message}`;
  }
  return "no refusal";
}
