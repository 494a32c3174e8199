// Substitutes variables in texts of Docker Compose by their defaults; reads no environment.

/** `text` null: a variable without a default, which `missing` names. */
export interface Substituted {
  readonly text: string | null;
  readonly missing: string | null;
}

/** `$$` is `$`; `${NAME:-default}` and `${NAME-default}` are their defaults. */
export function substituted(source: string): Substituted {
  let missing: string | null = null;
  const text = source.replaceAll(/\$(?:\$|[A-Za-z_]\w*|\{[^{}]*\})/g, (whole) => {
    if (whole === "$$") return "$";
    const [, name = whole, initial] = /^\$\{?([A-Za-z_]\w*)(?::?-([^{}]*))?/.exec(whole) ?? [];
    if (initial === undefined) missing ??= name;
    return initial ?? "";
  });
  return missing === null ? { text, missing } : { text: null, missing };
}
