// Random servers of nginx with protected and open locations; the same seed makes the same servers.

export interface RandomServer {
  readonly host: string;
  readonly text: string;
}

const PATHS = [
  "/",
  "/a",
  "/a/",
  "/a/b",
  "/a/b/",
  "/ab",
  "/c/",
  "/c",
  "/a.php",
  "/a/x.php",
  "/.git",
];
const EXPRESSIONS = [
  "\\.php$",
  "^/a",
  "^/a/",
  "b",
  "/\\.git",
  "^/(a|c)/b",
  "^/a/(?!b)",
  "c$",
  "^/.b",
];
const MODIFIERS = ["", "", "", "^~ ", "= "];
const ACCESS = [
  ...["", "", "", "deny all;", "allow 127.0.0.2; deny all;", "deny 127.0.0.2;"],
  ...["auth_basic x; auth_basic_user_file root/users;", "auth_basic off;", "internal;"],
  "satisfy any; allow 127.0.0.2; deny all; auth_basic x; auth_basic_user_file root/users;",
  ...["limit_except GET { deny all; }", "allow all;"],
];
const CONTENT = [
  ...["proxy_pass http://ONE;", "proxy_pass http://TWO;", "proxy_pass http://ONE;", "return 404;"],
  ...[
    "return 301 https://elsewhere.test/;",
    "PREFIX",
    "rewrite ^/a/(.*)$ /z/$1 break; proxy_pass http://ONE;",
  ],
  ...["if ($request_method = POST) { return 403; } proxy_pass http://TWO;", ""],
];

export function randomServers(seed: number, count: number): readonly RandomServer[] {
  let state = seed;
  const below = (most: number) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return Math.floor(state / 65_536) % most;
  };
  const one = (list: readonly string[]) => list[below(list.length)] ?? "";
  const location = (isInner: boolean, outer: string): string => {
    const isExpression = below(4) === 0;
    const value = isExpression ? one(EXPRESSIONS) : outer + one(PATHS).slice(outer === "" ? 0 : 1);
    const modifier = isExpression ? one(["~ ", "~* "]) : one(MODIFIERS);
    const canReplace = !isExpression;
    const content = one(CONTENT).replace(
      "PREFIX",
      canReplace ? `proxy_pass http://TWO${one(["/", "/v/", "/v"])};` : "proxy_pass http://TWO;",
    );
    const hasInner = !isInner && !isExpression && modifier === "" && below(4) === 0;
    const inner = hasInner ? location(true, value.endsWith("/") ? value : `${value}/`) : "";
    return `location ${modifier}"${value}" { ${one(ACCESS)} ${content} ${inner} }`;
  };
  return Array.from({ length: count }, (_, at) => {
    const host = `r${at}.test`;
    const seen = new Set<string>();
    const locations = Array.from({ length: 1 + below(5) }, () => location(false, "")).filter(
      (text) => {
        // nginx rejects two locations with the same path.
        const [, modifier = "", value = ""] =
          /^location (?:(=|\^~|~\*|~) )?"([^"]*)"/.exec(text) ?? [];
        const key = `${modifier === "=" || modifier.startsWith("~") ? modifier : ""} ${value}`;
        return seen.has(key) ? false : seen.add(key) !== undefined;
      },
    );
    const own =
      below(3) === 0 ? one(ACCESS.filter((each) => !/internal|limit_except/.test(each))) : "";
    return {
      host,
      text: `server { listen LISTEN; server_name ${host}; ${own} ${locations.join("\n")} }`,
    };
  });
}

export const RANDOM_PATHS: readonly string[] = [
  ...[
    "/",
    "/a",
    "/a/",
    "/a/b",
    "/a/b/",
    "/a/b/x",
    "/ab",
    "/abc",
    "/c",
    "/c/",
    "/c/b",
    "/a.php",
    "/.git",
  ],
  ...[
    "/a/x.php",
    "/a/x.php/y",
    "/A",
    "//a",
    "/a//b",
    "/%61/b",
    "/a%2Fb",
    "/a;x",
    "/a;x/b",
    "/;x/a/b",
  ],
  ...[
    "/a/;/b",
    "/x/../a/b",
    "/a/../c",
    "/a.php%0A",
    "/a;.php",
    "/a/.git;x",
    "/a/b;/../c",
    "/z/x",
    "/xb",
  ],
];
