// What Nginx Proxy Manager denies stays denied after the import: cases without nginx (tests/e2e/import-npm compares with one).
import { describe, expect, test } from "bun:test";
import { mayDenyAccess } from "../../../src/import/npm/nginx-lines.ts";
import { type Anything, convertWith, npmDatabase } from "./samples.ts";

test.each([
  [""],
  ["client_max_body_size 0;"],
  ["# deny all;\nproxy_read_timeout 1h; # don't; deny all"],
  ["proxy_set_header Upgrade $http_upgrade;\n\tproxy_set_header Connection 'upgrade';"],
  ['add_header X-Frame-Options "a; deny all; # {b}";'],
  ["gzip on"],
])("%j denies no access", (text) => expect(mayDenyAccess(text)).toBe(false));

test.each([
  ["deny all;"],
  ["client_max_body_size 0; deny all;"],
  ["client_max_body_size 0;deny all"],
  ["include /data/nginx/custom/authelia.conf;"],
  ["access_by_lua_block { ngx.exit(403) }"],
  ["proxy_set_header Remote-User '';"],
  ["location /x { proxy_pass http://a; }"],
  ['add_header X-A "a # b"; deny all;'],
  ["# don't\ndeny all;\n# it's"],
  ['"deny" all;'],
  ['add_header X "a'],
  ["add_header X a\\; deny all;"],
  ["add_header X a#b; deny all;"],
  ["Deny all;"],
  ["auth_request /outpost;"],
  ["set_real_ip_from 10.0.0.0/8;"],
  ["return 403;"],
])("%j may deny access", (text) => expect(mayDenyAccess(text)).toBe(true));

async function made(...statements: readonly string[]) {
  const { document, report } = await convertWith("npm", npmDatabase(...statements));
  const routes = document.routes as readonly Anything[];
  const of = (host: string) => routes.filter(({ hosts }) => hosts?.includes(host));
  const isClosed = ({ maintenance }: Anything) => maintenance !== undefined;
  return { report, of, closed: (host: string) => of(host).map(isClosed), document };
}

const location = (advanced: string, path = "/x") =>
  `UPDATE proxy_host SET locations = '${JSON.stringify([
    {
      path,
      advanced_config: advanced,
      forward_scheme: "http",
      forward_host: "127.0.0.1",
      forward_port: 9002,
    },
  ])}' WHERE id = 1`;

describe("an unknown setting", () => {
  test("in a host closes it with its locations", async () => {
    const column = "ALTER TABLE proxy_host ADD COLUMN sso_provider";
    const on = "UPDATE proxy_host SET sso_provider = 'authelia' WHERE id = 1";
    expect((await made(column)).closed("photos.test")).toEqual([false, false]);
    const { closed } = await made(column, on);
    expect([closed("photos.test"), closed("family.test")]).toEqual([[true, true], [false]]);
    const off = "UPDATE proxy_host SET sso_provider = 0";
    expect((await made(column, off)).closed("photos.test")).toEqual([false, false]);
  });

  test("in a location closes the location", async () => {
    const known = await made(location(""));
    expect(known.closed("photos.test")).toEqual([false, false]);
    const unknown = `UPDATE proxy_host SET locations = replace(locations, '"forward_port"', '"sso":true,"forward_port"') WHERE id = 1`;
    expect((await made(location(""), unknown)).closed("photos.test")).toEqual([false, true]);
  });

  test.each<[string, string, string]>([
    [
      "its row",
      "ALTER TABLE access_list ADD COLUMN zz varchar(9)",
      "UPDATE access_list SET zz = 'x'",
    ],
    [
      "a user",
      "ALTER TABLE access_list_auth ADD COLUMN totp varchar(9)",
      "UPDATE access_list_auth SET totp = 'x'",
    ],
    [
      "a table",
      "CREATE TABLE access_list_clientca (id integer)",
      "INSERT INTO access_list_clientca VALUES (1)",
    ],
  ])("in an access list closes the hosts that use it: %s", async (_, alter, change) => {
    const { closed } = await made(alter, change);
    expect([closed("family.test"), closed("photos.test")]).toEqual([[true], [false, false]]);
  });
});

describe("a host that the gateway cannot import", () => {
  const wildcard = `INSERT INTO proxy_host SELECT 90, created_on, modified_on, 1, 0, '["*.test"]', forward_host, forward_port, 0, 0, 0, 0, 0, '', '{}', 0, 0, 'http', 1, null, 0, 0 FROM proxy_host WHERE id = 1`;
  const broken = (table: string, id: number, name: string) =>
    `UPDATE ${table} SET domain_names = '["${name}","a..b"]' WHERE id = ${id}`;

  test.each([
    ["with a list", broken("proxy_host", 2, "family.test"), true],
    ["with lines that may deny access", broken("proxy_host", 3, "guarded.test"), true],
    ["that is gone", broken("dead_host", 1, "gone.test"), true],
    ["that is open", broken("proxy_host", 1, "photos.test"), false],
    ["that is off", broken("proxy_host", 6, "off.test"), false],
  ])("%s does not leave its requests to an open host", async (_, statement, isClosed) => {
    const { closed } = await made(wildcard, statement);
    expect(closed("*.test")).toEqual([isClosed]);
  });
});

test("a location with an invalid path closes its host", async () => {
  const { closed } = await made(location("deny all;", "/a { } location /b"));
  expect(closed("photos.test")[0]).toBe(true);
});

test("a protected path matches every path that begins with it", async () => {
  const { of, closed } = await made(location("deny all;", "/caf\u00e9/(x)"));
  expect(closed("photos.test")).toEqual([false, true]);
  expect(of("photos.test")[1].paths).toEqual([{ type: "regex", value: "^/caf%C3%A9/\\(x\\)" }]);
});
