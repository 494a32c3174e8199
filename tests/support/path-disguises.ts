// Disguises of the path /admin, and all readings of a path that servers have; knows no gateway.

/** How servers read a path, each on its own and all together. */
const steps: Record<string, (path: string) => string> = {
  decodesUnreserved: (path) =>
    path.replace(/%([0-9a-f]{2})/gi, (triplet, hex) => {
      const character = String.fromCharCode(Number.parseInt(hex, 16));
      return /[\w.~-]/.test(character) ? character : triplet;
    }),
  decodesAll: (path) =>
    path.replace(/%([0-7][0-9a-f])/gi, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16))),
  dropsParameters: (path) => path.replace(/;[^/]*/g, ""),
  readsBackslash: (path) => path.replace(/\\/g, "/"),
  mergesSlashes: (path) => path.replace(/\/{2,}/g, "/"),
  resolvesDots: (path) => {
    const out: string[] = [];
    for (const segment of path.split("/").slice(1)) {
      if (segment === "..") out.pop();
      else if (segment !== ".") out.push(segment);
    }
    return `/${out.join("/")}`;
  },
};
const {
  decodesUnreserved,
  decodesAll,
  dropsParameters,
  readsBackslash,
  mergesSlashes,
  resolvesDots,
} = steps as Record<string, (path: string) => string>;
const servers: readonly (readonly ((path: string) => string)[])[] = [
  [],
  [resolvesDots!],
  [mergesSlashes!],
  [mergesSlashes!, resolvesDots!],
  [decodesUnreserved!, resolvesDots!],
  [decodesAll!, resolvesDots!],
  [decodesAll!, mergesSlashes!, resolvesDots!],
  [resolvesDots!, decodesAll!],
  [dropsParameters!, resolvesDots!],
  [dropsParameters!, decodesAll!, resolvesDots!],
  [decodesAll!, dropsParameters!, resolvesDots!],
  [readsBackslash!, resolvesDots!],
  [decodesAll!, readsBackslash!, mergesSlashes!, resolvesDots!],
  [decodesAll!, readsBackslash!, dropsParameters!, mergesSlashes!, resolvesDots!],
];

/** All the paths that some server could take the target for. */
export function readings(target: string): string[] {
  const path = target.replace(/[?#].*$/, "");
  return servers.map((server) => server.reduce((seen, step) => step(seen), path));
}

export const isUnder = (path: string, prefix: string) =>
  path === prefix || path.startsWith(`${prefix}/`);

export const disguises: [target: string, why: string][] = [
  ["/admin", "plain"],
  ["/admin/", "a slash behind"],
  ["/admin/x", "below"],
  ["/admin?x", "a query"],
  ["/admin/?x=/../public", "a path in the query"],
  ["/%61dmin", "an escaped letter"],
  ["/%61%64%6d%69%6e", "all letters escaped"],
  ["/%61%64%6D%69%6E", "in another case"],
  ["/adm%69n/x", "one letter"],
  ["/public/../admin", "dot segments"],
  ["/public/./../admin", "dot segments"],
  ["/public/%2e%2e/admin", "escaped dots"],
  ["/public/%2E%2E/admin", "escaped dots"],
  ["/public/.%2e/admin", "half escaped"],
  ["/public/%2e./admin", "half escaped"],
  ["/public/..%2fadmin", "an escaped slash"],
  ["/public/..%2Fadmin", "an escaped slash"],
  ["/public/%2e%2e%2fadmin", "all escaped"],
  ["/public%2f..%2fadmin", "escaped slashes on both sides"],
  ["/public%2f%2e%2e%2fadmin", "all escaped"],
  ["/public/..;/admin", "a parameter (Tomcat)"],
  ["/public/..;x=y/admin", "a parameter"],
  ["/public/%2e%2e;/admin", "a parameter behind escaped dots"],
  ["/public/..%3b/admin", "an escaped semicolon"],
  ["/public;/../admin", "a parameter before"],
  ["/public/;/../admin", "an empty segment with a parameter"],
  ["/public/.;/../admin", "a dot with a parameter"],
  ["/public\\..\\admin", "backslashes"],
  ["/public/..\\admin", "a backslash"],
  ["/public%5c..%5cadmin", "escaped backslashes"],
  ["/public/..%5cadmin", "an escaped backslash"],
  ["/public/%2e%2e%5cadmin", "an escaped backslash"],
  ["/public..\\admin", "dots at the end of a segment"],
  ["/public/..%252fadmin", "escaped twice"],
  ["/public/%252e%252e/admin", "escaped twice"],
  ["/public/..%c0%afadmin", "an overlong slash"],
  ["/public/..%ef%bc%8fadmin", "a full-width slash"],
  ["/public/%u002e%u002e/admin", "IIS escapes"],
  ["/public/..%00/admin", "NUL"],
  ["/admin%00", "NUL"],
  ["/admin%00.png", "NUL before an extension"],
  ["/admin%20", "a space behind"],
  ["/admin%09", "a tab behind"],
  ["/admin%0a", "a line end behind"],
  ["/admin.", "a dot behind"],
  ["/admin..", "dots behind"],
  ["/admin/.", "a dot segment behind"],
  ["/admin/..", "its parent"],
  ["/admin/../admin", "there and back"],
  ["/admin/..;/admin", "there and back with a parameter"],
  ["//admin", "two slashes"],
  ["///admin", "three slashes"],
  ["/.//admin", "a dot and two slashes"],
  ["/;/admin", "an empty segment with a parameter"],
  ["/;x=y/admin", "a parameter first"],
  ["/admin;", "an empty parameter"],
  ["/admin;x=y", "a parameter"],
  ["/admin;/x", "a parameter before a slash"],
  ["/admin;x/../public", "a parameter and dots"],
  ["/admin%3bx", "an escaped semicolon"],
  ["/admin%2f", "an escaped slash behind"],
  ["/admin%2fx", "an escaped slash"],
  ["/%2fadmin", "an escaped slash first"],
  ["/%2e/admin", "an escaped dot"],
  ["/%5cadmin", "an escaped backslash first"],
  ["/\\admin", "a backslash first"],
  ["\\admin", "nothing but a backslash"],
  ["/admin\\x", "a backslash below"],
  ["/admin%5cx", "an escaped backslash below"],
  ["/./admin", "a dot"],
  ["/x/../admin", "dots"],
  ["/../admin", "dots at the root"],
  ["/../../../admin", "many dots at the root"],
  ["/public/x/../../admin", "two levels"],
  ["/public/x/..//../admin", "an empty segment between"],
  ["/public//../admin", "an empty segment before"],
  ["/public/...//../admin", "three dots"],
  ["/api/../admin", "out of a stripped prefix"],
  ["/api/..%2fadmin", "out of a stripped prefix"],
  ["/api/..;/admin", "out of a stripped prefix"],
  ["/api../admin", "a prefix with dots behind (Traefik CVE-2025-32431)"],
  ["/api..%2fadmin", "a prefix with dots behind"],
  ["/api%2fadmin", "an escaped slash behind the prefix"],
  ["/api%2f..%2fadmin", "out of the prefix, escaped"],
  ["/api%5c..%5cadmin", "out of the prefix, backslashes"],
  ["/api//admin", "two slashes behind the prefix"],
  ["/api/%2fadmin", "an escaped slash behind"],
  ["/api/;/admin", "a parameter behind"],
  ["/api;x/admin", "a parameter on the prefix"],
  ["/%61pi/x", "an escaped prefix"],
  ["//api/x", "two slashes before the prefix"],
  ["/api", "the prefix itself"],
  ["/api/", "the prefix with a slash"],
  ["/apix", "not the prefix"],
  ["/public/.%00./admin", "NUL between dots"],
  ["/public/.\t./admin", "a tab between dots"],
  ["/public/%09../admin", "an escaped tab"],
  ["http://h/public/../admin", "absolute form"],
  ["http://h/public/..%2fadmin", "absolute form"],
  ["http://h\\admin", "absolute form with a backslash"],
];

/** Repeated slashes as one. */
export const mergedSlashes = (path: string): string => mergesSlashes!(path);
