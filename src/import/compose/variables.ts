// Substitutes variables in texts of Docker Compose by their values and defaults; reads no environment of this process.

/** `text` null: a variable without a value, which `missing` names. */
export interface Substituted {
  readonly text: string | null;
  readonly missing: string | null;
}

/** Values of variables, by name. */
export type Variables = ReadonlyMap<string, string>;

const none: Variables = new Map();

/** `$$` is `$`; of `${NAME:-default}`, `${NAME-default}`, `${NAME:?error}` and `${NAME:+other}`, the value or what stands for it. */
export function substituted(source: string, variables: Variables = none): Substituted {
  let missing: string | null = null;
  const text = source.replaceAll(/\$(?:\$|[A-Za-z_]\w*|\{[^{}]*\})/g, (whole) => {
    if (whole === "$$") return "$";
    const [, name = whole, colon, operator, other = ""] =
      /^\$\{?([A-Za-z_]\w*)(?:(:?)([-?+])([^{}]*))?/.exec(whole) ?? [];
    const value = variables.get(name);
    const isSet = value !== undefined && !(colon === ":" && value === "");
    if (operator === "+") return isSet ? other : "";
    if (isSet) return value;
    if (operator === "-") return other;
    missing ??= name;
    return "";
  });
  return missing === null ? { text, missing } : { text: null, missing };
}

/** The variables of a file `.env`. */
export function readVariables(text: string): Map<string, string> {
  const found = new Map<string, string>();
  for (const line of text.split(/\r?\n/)) {
    const [, name, given = ""] =
      /^\s*(?:export\s+)?([A-Za-z_][\w.-]*)\s*[=:]\s*(.*)$/.exec(line) ?? [];
    if (name === undefined) continue;
    const [, quote = "", quoted = ""] = /^(["'])(.*?)\1\s*(?:#.*)?$/.exec(given) ?? [];
    const value = quote === "" ? given.replace(/(?:^|\s)#.*$/, "").trim() : quoted;
    const { text: whole } = quote === "'" ? { text: value } : substituted(value, found);
    // A value with an unknown part is unknown.
    if (whole !== null) found.set(name, whole);
  }
  return found;
}
