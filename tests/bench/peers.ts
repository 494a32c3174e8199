// Starts nginx, HAProxy and Caddy as reverse proxies with one worker each, as their own manuals advise.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { startHaproxyWith } from "./haproxy.ts";
import type { ProxyName } from "./options.ts";
import { type Certificate, writeNginx } from "./origin.ts";
import { freePort, PROXY_CORE, type RunningProgram, startProgram } from "./processes.ts";

export interface RunningProxy {
  readonly name: ProxyName;
  readonly version: string;
  readonly httpPort: number;
  readonly httpsPort: number;
  readonly program: RunningProgram;
}

export interface PeerInput {
  readonly scratch: string;
  readonly originPort: number;
  readonly certificate: Certificate;
}

/** The two lines of nginx differ in nothing but the size of the buffers for an answer. */
export function startNginx(input: PeerInput, name: "nginx" | "nginx-64k"): RunningProxy {
  const { folder, httpPort, httpsPort } = prepare(input, name);
  const { certificateFile, keyFile } = input.certificate;
  const buffers = name === "nginx-64k" ? "proxy_buffers 16 64k;" : "";
  const config = writeNginx(
    folder,
    `${buffers}
  keepalive_requests 1000000000;
  upstream origin { server 127.0.0.1:${input.originPort}; keepalive 512; }
  server {
    listen 127.0.0.1:${httpPort} backlog=4096;
    listen 127.0.0.1:${httpsPort} ssl http2 backlog=4096;
    ssl_certificate ${certificateFile}; ssl_certificate_key ${keyFile};
    location / {
      proxy_pass http://origin; proxy_http_version 1.1;
      proxy_set_header Connection ""; proxy_set_header Host $host;
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
    }
  }
`,
  );
  const command = ["nginx", "-p", folder, "-c", config];
  const program = startProgram({ command, core: PROXY_CORE, logFile: join(folder, "out.log") });
  return { name, version: versionOf(["nginx", "-v"]), httpPort, httpsPort, program };
}

export function startHaproxy(input: PeerInput): RunningProxy {
  const { folder, httpPort, httpsPort } = prepare(input, "haproxy");
  const pem = join(folder, "both.pem");
  const { certificateFile, keyFile } = input.certificate;
  writeFileSync(pem, readFileSync(certificateFile, "utf8") + readFileSync(keyFile, "utf8"));
  const program = startHaproxyWith(
    folder,
    "http",
    `  option forwardfor
  http-reuse always
frontend all
  bind 127.0.0.1:${httpPort}
  bind 127.0.0.1:${httpsPort} ssl crt ${pem} alpn h2,http/1.1
  default_backend origin
backend origin
  server one 127.0.0.1:${input.originPort}
`,
  );
  return { name: "haproxy", version: versionOf(["haproxy", "-v"]), httpPort, httpsPort, program };
}

export function startCaddy(input: PeerInput): RunningProxy {
  const { folder, httpPort, httpsPort } = prepare(input, "caddy");
  const { certificateFile, keyFile } = input.certificate;
  const config = join(folder, "Caddyfile");
  writeFileSync(
    config,
    `{
  admin off
  auto_https off
}
http://:${httpPort} {
  bind 127.0.0.1
  reverse_proxy 127.0.0.1:${input.originPort}
}
https://:${httpsPort} {
  bind 127.0.0.1
  tls ${certificateFile} ${keyFile}
  reverse_proxy 127.0.0.1:${input.originPort}
}
`,
  );
  const program = startProgram({
    command: ["caddy", "run", "--config", config, "--adapter", "caddyfile"],
    core: PROXY_CORE,
    logFile: join(folder, "out.log"),
    env: { GOMAXPROCS: "1", HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder },
  });
  const version = `Caddy ${versionOf(["caddy", "version"])}`;
  return { name: "caddy", version, httpPort, httpsPort, program };
}

/** No competitor: what Bun alone costs. */
const BARE = { name: "bare", script: join(import.meta.dir, "bare-proxy.ts") } as const;

/** A script of a proxy on Bun; arguments: origin's port, port, port of TLS, certificate, key. */
export function startBare(
  input: PeerInput,
  { name, script }: { readonly name: ProxyName; readonly script: string } = BARE,
): RunningProxy {
  const { folder, httpPort, httpsPort } = prepare(input, name);
  const { certificateFile, keyFile } = input.certificate;
  const ports = [input.originPort, httpPort, httpsPort].map(String);
  const words = [script, ...ports, certificateFile, keyFile];
  const program = startProgram({
    command: [process.execPath, ...words],
    core: PROXY_CORE,
    logFile: join(folder, "out.log"),
  });
  const version = `a ${name} proxy on Bun ${Bun.version}`;
  return { name, version, httpPort, httpsPort, program };
}

function prepare(input: PeerInput, name: ProxyName) {
  const folder = join(input.scratch, name);
  mkdirSync(folder, { recursive: true });
  return { folder, httpPort: freePort(), httpsPort: freePort() };
}

function versionOf(command: readonly string[]): string {
  const { stdout, stderr } = Bun.spawnSync([...command]);
  const printed = `${stdout.toString()}${stderr.toString()}`;
  return (printed.split("\n")[0] ?? "")
    .replace("nginx version: nginx/", "nginx ")
    .replace(/HAProxy version (\S+).*/, "HAProxy $1")
    .trim();
}
