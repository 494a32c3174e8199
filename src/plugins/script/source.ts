// Compiles and validates a user's script: removes types and checks exports; knows no sandbox.

const handlerNames = ["onRequest", "onResponse", "onLog"] as const;
export type HandlerName = (typeof handlerNames)[number];

/** JavaScript, or the problem, worded to follow the name of a field. */
export type Compiled =
  | { readonly code: string; readonly problem: null }
  | { readonly code: null; readonly problem: string };

/** Removes types and checks exports without running anything. Takes a millisecond. */
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
