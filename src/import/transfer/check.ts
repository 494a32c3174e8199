// Checks a configuration file without a gateway and lists its problems. Changes nothing.
import { randomBytes } from "node:crypto";
import { SecretBox } from "../../crypto/secret-box.ts";
import { ApiError } from "../../model/error.ts";
import { collectionNames } from "../../model/gateway-config.ts";
import { compile } from "../../snapshot/compile.ts";
import type { PluginCatalogue } from "../../snapshot/plugin-config.ts";
import type { Problem } from "../../snapshot/problem.ts";
import { emptyConfiguration } from "../../store/first-configuration.ts";
import { Draft } from "../../control/draft.ts";
import { fieldChecks } from "../../control/field-checks.ts";
import { describeProblem, isSingleton } from "../../control/reference.ts";
import { applyDocument } from "./plan.ts";
import { atPosition, pathIn, type SourceDocument } from "./source.ts";

export interface CheckedDocument {
  /** In the order of the file. */
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
  const problems: ApiError[] = [];
  /** Ids of objects that are left out. */
  const wrong = new Set<string>();
  const onError = (error: ApiError, id: string | null) => {
    problems.push(error);
    if (id !== null) wrong.add(id);
  };
  try {
    const box = new SecretBox(randomBytes(32));
    applyDocument(source.value, draft, { mode: "replace", box, standsFor: "masked", onError });
    const result = compile(draft.config, null, {
      tls: { cert: "", key: "" },
      checks: fieldChecks,
      managementAddresses: [],
      plugins,
      openSealed: () => "-",
      revision: 0,
    });
    const issues = "issues" in result ? result.issues : [];
    for (const issue of issues)
      if (!isAbout(wrong, issue, draft))
        problems.push(new ApiError(issue.status, describeProblem(issue, draft)));
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    problems.push(error);
  }
  const counts = collectionNames
    .map((name) => [name, draft.config[name].size] as const)
    .filter(([, size]) => size > 0);
  return { problems: await inOrder(problems, source), counts: Object.fromEntries(counts) };
}

/** Whether the value at the path is the id of an object that is wrong itself, and so not there. */
function isAbout(wrong: ReadonlySet<string>, issue: Problem, { config }: Draft): boolean {
  const { collection, id, path } = issue;
  let value: unknown = isSingleton(collection) ? config[collection] : config[collection].get(id);
  for (const [step] of path.matchAll(/[^.[\]]+/g))
    value = (value as Readonly<Record<string, unknown>> | undefined)?.[step];
  return typeof value === "string" && wrong.has(value);
}

async function inOrder(problems: readonly ApiError[], source: SourceDocument): Promise<string[]> {
  const located = await Promise.all(
    problems.map(async (problem) => {
      const path = pathIn(problem);
      const position = path === null ? null : await source.positionOf(path);
      return { position, message: atPosition(problem, position).message };
    }),
  );
  const none = { line: 0, column: 0 };
  return located
    .toSorted(({ position: a }, { position: b }) => {
      const [first, second] = [a ?? none, b ?? none];
      return first.line - second.line || first.column - second.column;
    })
    .map(({ message }) => message);
}
