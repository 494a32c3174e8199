// Redirects of targets through a real nginx with `proxy_redirect`, and through the gateway that has imported its configuration. Needs nginx.
import { expect } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Gateway, runCommand, startGateway } from "../support/gateway.ts";
import { needs } from "../support/needs.ts";
import { type Nginx, startNginx } from "../support/nginx.ts";
import { ask } from "./import/judge.ts";

const { afterAll, beforeAll, test } = needs("nginx");

const HOST = "a.test";

const servers = `
server {
  listen LISTEN;
  server_name ${HOST};
  proxy_set_header Host $host;
  location / { proxy_pass http://TARGET; }
  location /off/ { proxy_redirect off; proxy_pass http://TARGET; }
  location /strip/ { proxy_pass http://TARGET/; }
  location /two/ { proxy_pass http://TARGET/one/; }
  location /same/ { proxy_redirect http://TARGET/ /; proxy_pass http://TARGET; }
}`;

const directory = mkdtempSync(join(tmpdir(), "sluice-redirects-"));
let origin: Bun.Server<undefined>;
let nginx: Nginx;
let gateway: Gateway;

beforeAll(async () => {
  origin = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch({ headers }) {
      const own = `127.0.0.1:${origin.port}`;
      const location = (headers.get("x-location") ?? "").replaceAll("TARGET", own);
      return new Response(null, { status: 302, headers: { location } });
    },
  });
  const text = servers.replaceAll("TARGET", `127.0.0.1:${origin.port}`);
  nginx = await startNginx({
    files: { "index.html": "" },
    servers: (port) => text.replaceAll("LISTEN", `127.0.0.1:${port}`),
  });
  gateway = await startGateway({ workers: 1 });
  const file = join(directory, "nginx.conf");
  writeFileSync(file, `http { ${text.replaceAll("LISTEN", "80")} }`);
  const result = await runCommand(["import", "--from", "nginx", file], {
    env: { SLUICE_URL: gateway.admin },
  });
  expect([result.code, result.stderr]).toEqual([0, ""]);
});
afterAll(async () => {
  await gateway?.stop();
  await nginx?.stop();
  await origin?.stop(true);
  rmSync(directory, { recursive: true, force: true });
});

const urls = [
  "http://TARGET/login?next=%2Fa#b",
  "http://TARGET/one/two",
  "http://TARGET/one/",
  "https://TARGET/one/two",
  "http://TARGET0/one/two",
  "http://other.test/one/",
  "/one/two",
];
const paths = ["/", "/off/x", "/strip/x", "/two/x", "/same/x"];

test.each(paths.flatMap((path) => urls.map((url) => [path, url] as const)))(
  "%s: %s",
  async (path, url) => {
    const locationFrom = async (port: number) => {
      const asked = { path, host: HOST, fields: `x-location: ${url}\r\n` };
      const { location } = await ask(asked, port);
      // nginx writes the port that it listens on.
      return (
        location?.replace(`${HOST}:${nginx.port}`, HOST).replace(/^http:\/\/a\.test/, "") ?? null
      );
    };
    const fromNginx = await locationFrom(nginx.port);
    expect(fromNginx).not.toBeNull();
    expect(await locationFrom(gateway.httpPort)).toBe(fromNginx);
  },
);
