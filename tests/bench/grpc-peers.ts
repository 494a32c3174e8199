// Starts nginx, Caddy and HAProxy as proxies of HTTP/2 over TLS, and nginx as a gRPC server; one thread each.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { startHaproxyWith } from "./haproxy.ts";
import { makeCertificate, nginxHead, nginxPaths, writeNginx } from "./origin.ts";
import { freePort, LOAD_CORE, PROXY_CORE, type RunningProgram, startProgram } from "./processes.ts";

/** One proxy of a comparison. */
export interface Contestant {
  readonly name: string;
  readonly httpsPort: number;
  readonly program: RunningProgram;
}

/** A message of 100 bytes: its flag and its length precede it. */
export const MESSAGE = Buffer.concat([Buffer.from([0, 0, 0, 0, 100]), Buffer.alloc(100, "m")]);

/** nginx as a gRPC server: every call gets one message of 100 bytes, with its status in trailers. */
export function startGrpcTarget(scratch: string): {
  readonly port: number;
  readonly program: RunningProgram;
} {
  const folder = join(scratch, "target");
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "message"), MESSAGE);
  const port = freePort();
  const config = writeNginx(
    folder,
    `default_type application/grpc;
  keepalive_requests 1000000000; keepalive_timeout 300s; http2_max_concurrent_streams 1000;
  server {
    listen 127.0.0.1:${port} http2 backlog=4096; root ${folder};
    location / { error_page 405 =200 /message; add_trailer grpc-status 0; try_files /message =404; }
  }
`,
  );
  const command = ["nginx", "-p", folder, "-c", config];
  const program = startProgram({ command, core: LOAD_CORE, logFile: join(folder, "out.log") });
  return { port, program };
}

interface PeerTarget {
  readonly port: number;
  readonly protocol: "h2c" | "http";
}

/** Those that are installed, nginx first. */
export function startPeers(scratch: string, target: PeerTarget): Contestant[] {
  const peers = [startNginxPeer(scratch, target)];
  if (Bun.which("caddy") !== null) peers.push(startCaddyPeer(scratch, target));
  if (Bun.which("haproxy") !== null) peers.push(startHaproxyPeer(scratch, target));
  return peers;
}

function folderOf(scratch: string, name: string) {
  const folder = join(scratch, name);
  mkdirSync(folder, { recursive: true });
  return { folder, httpsPort: freePort(), ...makeCertificate(folder) };
}

function startNginxPeer(scratch: string, { port, protocol }: PeerTarget): Contestant {
  const { folder, httpsPort, certificateFile, keyFile } = folderOf(scratch, `nginx-${protocol}`);
  const config = join(folder, "nginx.conf");
  const pass =
    protocol === "h2c"
      ? "grpc_pass grpc://target;"
      : 'proxy_pass http://target; proxy_http_version 1.1; proxy_set_header Connection "";';
  writeFileSync(
    config,
    `${nginxHead(folder)}
http {
  access_log off; ${nginxPaths(folder)} keepalive_requests 1000000000;
  upstream target { server 127.0.0.1:${port}; keepalive 512; keepalive_requests 1000000000; }
  server {
    listen 127.0.0.1:${httpsPort} ssl http2 backlog=4096;
    ssl_certificate ${certificateFile}; ssl_certificate_key ${keyFile};
    location / { ${pass} }
  }
}`,
  );
  const command = ["nginx", "-p", folder, "-c", config];
  const program = startProgram({ command, core: PROXY_CORE, logFile: join(folder, "out.log") });
  return { name: "nginx", httpsPort, program };
}

function startCaddyPeer(scratch: string, { port, protocol }: PeerTarget): Contestant {
  const { folder, httpsPort, certificateFile, keyFile } = folderOf(scratch, `caddy-${protocol}`);
  const config = join(folder, "Caddyfile");
  writeFileSync(
    config,
    `{
  admin off
  auto_https off
}
https://:${httpsPort} {
  bind 127.0.0.1
  tls ${certificateFile} ${keyFile}
  reverse_proxy ${protocol}://127.0.0.1:${port}
}
`,
  );
  const program = startProgram({
    command: ["caddy", "run", "--config", config, "--adapter", "caddyfile"],
    core: PROXY_CORE,
    logFile: join(folder, "out.log"),
    env: { GOMAXPROCS: "1", HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder },
  });
  return { name: "caddy", httpsPort, program };
}

function startHaproxyPeer(scratch: string, { port, protocol }: PeerTarget): Contestant {
  const { folder, httpsPort, certificateFile, keyFile } = folderOf(scratch, `haproxy-${protocol}`);
  const pem = join(folder, "both.pem");
  writeFileSync(pem, readFileSync(certificateFile, "utf8") + readFileSync(keyFile, "utf8"));
  const program = startHaproxyWith(
    folder,
    "http",
    `  http-reuse always
frontend all
  bind 127.0.0.1:${httpsPort} ssl crt ${pem} alpn h2,http/1.1
  default_backend target
backend target
  server one 127.0.0.1:${port}${protocol === "h2c" ? " proto h2" : ""}
`,
  );
  return { name: "haproxy", httpsPort, program };
}
