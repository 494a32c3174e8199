// Compiles the stored configuration at the start; starts no worker.
import type { GatewayConfig } from "../model/gateway-config.ts";
import { compile } from "../snapshot/compile.ts";
import type { Compiled } from "../snapshot/compile-context.ts";
import type { ChangesOptions } from "./change-contract.ts";
import { Draft } from "./draft.ts";
import { describeProblem } from "./reference.ts";

/** Input of the compiler beside the configuration and its revision. */
export type ChangeContext = ReturnType<ChangesOptions["context"]>;

/**
 * Compiles the stored configuration before workers start; throws with all errors. Skips the safety check of patterns, which
 * needs milliseconds per regular expression and ran when they were written.
 */
export function compileStored(
  stored: { readonly config: GatewayConfig; readonly revision: number },
  context: ChangeContext,
): Compiled {
  const checks = { ...context.checks, route: () => [] };
  const result = compile(stored.config, null, { ...context, checks, revision: stored.revision });
  if (!("issues" in result)) return result;
  const draft = new Draft(stored.config, () => "");
  const lines = result.issues.map((issue) => `  ${describeProblem(issue, draft)}`);
  throw new Error(`the stored configuration cannot be served:\n${lines.join("\n")}`);
}
