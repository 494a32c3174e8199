// Stands for a plugin that instances use and that cannot be loaded, so that the rest of the gateway starts; opens nothing.
import { createHash } from "node:crypto";
import { Type as t } from "@sinclair/typebox";
import { scopeNames } from "../model/plugin.ts";
import type { AnyPlugin } from "../pdk/definition.ts";
import type { PluginCode } from "../pdk/definition.ts";
import type { PluginPlan } from "../snapshot/snapshot.ts";

/** Before all others, whatever their priority: they may respond as if the request were allowed. */
const FIRST = 2_000_000;

/** Whatever the plugin did: it may have authenticated clients, which is before everything, or depend on the consumer. */
const PHASES = ["connect", "pre_auth", "access"] as const;

/** In workers, as the code of any plugin of a directory. Rejections do not depend on `on_error`. */
const textFor = (name: string, allowsMultiple: boolean) => `
const refusal = {
  kind: "rejection",
  status: 503,
  reason: "${name}.absent",
  detail: "a plugin of this route is not loaded",
  headers: {},
  token: "proxy_configuration_error",
};
const refuse = () => refusal;
export default {
  name: "${name}",
  order: ${FIRST},
  onError: "closed",
  allowsMultiple: ${allowsMultiple},
  phases: ${JSON.stringify(PHASES)},
  create: () => ({ connect: () => ({ reason: refusal.reason }), preAuth: refuse, access: refuse }),
};
`;

function absentCode(name: string, number: number, allowsMultiple: boolean): PluginCode {
  const bytes = new TextEncoder().encode(textFor(name, allowsMultiple));
  const text = new SharedArrayBuffer(bytes.length);
  new Uint8Array(text).set(bytes);
  const hash = createHash("sha256").update(bytes).digest("hex");
  return { hash, text, number, disabled: null, isAbsent: true };
}

/** The plan of an instance that cannot be created, although its plugin is loaded: it rejects. `definition`: of the plugin. */
export function absentPlan(plan: PluginPlan, definition: AnyPlugin | undefined): PluginPlan {
  const number = plan.code?.number ?? 0;
  const code = absentCode(plan.name, number, definition?.allowsMultiple ?? false);
  return { ...plan, code, ...unconditional };
}

/** What is absent rejects first, and everywhere: it may have removed fields of clients also where the condition does not match. */
const unconditional = { priority: null, when: null } as const;

/** Accepts every stored configuration; only admins may write instances. */
export function absentPlugin(name: string, number: number): AnyPlugin {
  return {
    name,
    summary: "",
    description: "",
    group: "access",
    order: FIRST,
    phases: PHASES,
    scopes: scopeNames,
    config: t.Object({}),
    example: {},
    onError: "closed",
    allowsMultiple: true,
    needsAdmin: true,
    ignoresPath: true,
    code: absentCode(name, number, true),
    create() {
      throw new Error("the plugin is not loaded");
    },
  };
}
