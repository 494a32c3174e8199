// Checks a configuration file without a gateway and lists its problems. Changes nothing.
import { randomBytes } from "node:crypto";
import { SecretBox } from "../../crypto/secret-box.ts";
import { ApiError } from "../../model/error.ts";
import { collectionNames } from "../../model/gateway-config.ts";
import { compile } from "../../snapshot/compile.ts";
import type { PluginCatalogue } from "../../snapshot/plugin-config.ts";
import { emptyConfiguration } from "../../store/first-configuration.ts";
import { Draft } from "../../control/draft.ts";
import { fieldChecks } from "../../control/field-checks.ts";
import { describeProblem } from "../../control/reference.ts";
import { applyDocument } from "./plan.ts";
import { type SourceDocument, withLine } from "./source.ts";

export interface CheckedDocument {
  readonly problems: readonly string[];
  /** Number of objects per collection, without empty ones. */
  readonly counts: Readonly<Record<string, number>>;
}

/** Masked secrets pass, because a plain configuration file has no values for them. */
export async function checkDocument(
  source: SourceDocument,
  plugins: PluginCatalogue,
): Promise<CheckedDocument> {
  const at = new Date(0).toISOString();
  const draft = new Draft(emptyConfiguration(at), () => at);
  const box = new SecretBox(randomBytes(32));
  try {
    applyDocument(source.value, draft, { mode: "replace", box, standsFor: "masked" });
    const result = compile(draft.config, null, {
      tls: { cert: "", key: "" },
      checks: fieldChecks,
      managementAddresses: [],
      plugins,
      openSealed: () => "-",
      revision: 0,
    });
    const issues = "issues" in result ? result.issues : [];
    const problems = issues.map(
      (issue) => new ApiError(issue.status, describeProblem(issue, draft)),
    );
    const counts = collectionNames
      .map((name) => [name, draft.config[name].size] as const)
      .filter(([, size]) => size > 0);
    const located = await Promise.all(problems.map((problem) => withLine(problem, source)));
    return {
      problems: located.map(({ message }) => message),
      counts: Object.fromEntries(counts),
    };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return { problems: [(await withLine(error, source)).message], counts: {} };
  }
}
