// Masks query values under names of secrets; knows no request.

/** Replaces a value. */
const MASK = "***";

/**
 * Returns a function that masks values in a path with its query. A parameter is secret when one of the words of its name is
 * among `names`, or up to three of them in a row are: `key` matches `key`, `api_key`, `apiKey` and `user[key]`, but not `keyboard`.
 */
export function createRedaction(names: readonly string[]): (target: string) => string {
  const secret = new Set(names.map(plain));
  const isSecret = (name: string) => {
    const words = decoded(name)
      .replace(/([a-z0-9])([A-Z])/g, "$1 $2")
      .toLowerCase()
      .split(/[^a-z0-9]+/)
      .filter((word) => word !== "");
    // Words in a row as well: `session_id` in `names` matches `sessionId` in a query.
    return words.some((_, from) =>
      [1, 2, 3].some((count) => secret.has(words.slice(from, from + count).join(""))),
    );
  };
  // Path parameters too: `/a;jsessionid=1`.
  return (target) =>
    target
      .split(/([?&;])/)
      .map((part, index) => (index === 0 ? part : redactPair(part, isSecret)))
      .join("");
}

function redactPair(pair: string, isSecret: (name: string) => boolean): string {
  const equals = pair.indexOf("=");
  if (equals < 0) return pair;
  const name = pair.slice(0, equals);
  const value = pair.slice(equals + 1);
  return isSecret(name) || holdsSecret(value, isSecret) ? `${name}=${MASK}` : pair;
}

/** A URL in a value may have a query of its own: `to=https%3A%2F%2Fx%2F%3Ftoken%3D1`. */
function holdsSecret(value: string, isSecret: (name: string) => boolean): boolean {
  let text = value;
  // Deeper escaping is not decoded by receivers either.
  for (let round = 0; round < 4; round++) {
    const inner = decoded(text);
    for (const [, name = ""] of inner.matchAll(/(?:^|[?&;#{,"'\s])([^?&;#={,"'\s]{1,64})"?[=:]/g))
      if (isSecret(name)) return true;
    if (inner === text) return false;
    text = inner;
  }
  return false;
}

const plain = (name: string) => name.toLowerCase().replace(/[^a-z0-9]+/g, "");

/** Decodes what it can of a text with invalid escapes. */
function decoded(text: string): string {
  return text.replaceAll("+", " ").replace(/(?:%[0-9a-f]{2})+/gi, (escaped) => {
    try {
      return decodeURIComponent(escaped);
    } catch {
      return escaped;
    }
  });
}
