// Compiles and validates a user's script: removes types and checks exports; knows no sandbox.

const handlerNames = ["onRequest", "onResponse", "onLog"] as const;
export type HandlerName = (typeof handlerNames)[number];

/** JavaScript, or the problem, worded to follow the name of a field. */
export type Compiled =
  | { readonly code: string; readonly problem: null }
  | { readonly code: null; readonly problem: string };

/**
 * At each `<` the transpiler tries to read types up to the end, so that a source of 64 KB, full of them, takes a minute: 30 ns for
 * each `<` and character. Here: a quarter of a second, and two seconds.
 */
const MOST_STEPS = { soon: 8_000_000, ever: 64_000_000 } as const;

/** Whether a source can be read at once, or takes long; or the problem, worded to follow the name of a field. */
export function readingTime(source: string): "soon" | "long" | { readonly problem: string } {
  const signs = source.split("<").length - 1;
  const steps = signs * source.length;
  if (steps <= MOST_STEPS.soon) return "soon";
  if (steps <= MOST_STEPS.ever) return "long";
  const most = Math.floor(MOST_STEPS.ever / source.length);
  return { problem: `has ${signs} signs <, and a source of its length may have ${most}` };
}

/** Removes types and checks exports without running anything. Takes a millisecond, if `readingTime` does not say otherwise. */
export function compileScript(source: string): Compiled {
  try {
    const code = new Bun.Transpiler({ loader: "ts", target: "browser" }).transformSync(source);
    const { exports, imports } = new Bun.Transpiler({ loader: "js" }).scan(code);
    const [imported] = imports;
    if (imported !== undefined) return problem(`must not import anything ("${imported.path}")`);
    const names: readonly string[] = handlerNames;
    const foreign = exports.find((name) => !names.includes(name));
    if (foreign !== undefined)
      return problem(`exports "${foreign}"; it may only export ${handlerNames.join(", ")}`);
    if (exports.length === 0)
      return problem(`must export one or more of ${handlerNames.join(", ")}`);
    return { code, problem: null };
  } catch (error) {
    return problem(`cannot be read: ${syntaxProblem(error)}`);
  }
}

const problem = (text: string): Compiled => ({ code: null, problem: text });

/** `line 3, column 7: Unexpected ;` of the first error. */
function syntaxProblem(error: unknown): string {
  const [first] = error instanceof AggregateError ? (error.errors as unknown[]) : [error];
  const { message, position } = first as {
    readonly message: string;
    readonly position?: { readonly line: number; readonly column: number } | null;
  };
  const place = position ? `line ${position.line}, column ${position.column}: ` : "";
  return place + message;
}
