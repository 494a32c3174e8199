// A real nginx on a free port, serving its own folder, without settings for a gateway in front of it.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, utimesSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { freePort } from "./data-plane.ts";
import { pathOf } from "./needs.ts";
import { eventually } from "./poll.ts";

export interface Nginx {
  readonly port: number;
  stop(): Promise<void>;
}

export interface NginxOptions {
  /** Contents by path below the root, `sub/page.html`. */
  readonly files: Readonly<Record<string, string | Uint8Array>>;
  /** More directives for the server. */
  readonly directives?: string;
  /** More servers beside it, which listen on the same port. */
  readonly servers?: (port: number) => string;
}

/** All files are as old as this, so that validators do not depend on when the test runs. */
const MODIFIED = new Date("2026-01-02T03:04:05Z");

/** Resolves when nginx responds; throws with its message when it does not start. */
export async function startNginx({
  files,
  directives = "",
  servers = () => "",
}: NginxOptions): Promise<Nginx> {
  const prefix = mkdtempSync(join(tmpdir(), "sluice-nginx-"));
  for (const [name, content] of Object.entries(files)) {
    const path = join(prefix, "root", name);
    mkdirSync(dirname(path), { recursive: true });
    await Bun.write(path, content);
    utimesSync(path, MODIFIED, MODIFIED);
  }
  const port = freePort();
  await Bun.write(join(prefix, "nginx.conf"), configuration(port, directives, servers(port)));
  const child = Bun.spawn(
    [pathOf("nginx") ?? "nginx", "-p", prefix, "-c", "nginx.conf", "-e", "error.log"],
    {
      stdio: ["ignore", "ignore", "pipe"],
    },
  );
  const stop = async () => {
    child.kill("SIGQUIT");
    await child.exited;
    rmSync(prefix, { recursive: true, force: true });
  };
  try {
    await eventually(async () => child.exitCode !== null || (await isServing(port)));
    if (child.exitCode !== null)
      throw new Error(`nginx ended: ${readFileSync(join(prefix, "error.log"), "utf8")}`);
  } catch (error) {
    await stop();
    throw error;
  }
  return { port, stop };
}

async function isServing(port: number): Promise<boolean> {
  await (await fetch(`http://127.0.0.1:${port}/`)).arrayBuffer();
  return true;
}

/** As root the workers would become another user, who cannot read the temporary folder. */
const user = process.getuid?.() === 0 ? "user root;" : "";

const configuration = (port: number, directives: string, servers: string) => `
daemon off;
${user}
worker_processes 1;
pid nginx.pid;
error_log error.log warn;
events { worker_connections 512; }
http {
  include /etc/nginx/mime.types;
  default_type application/octet-stream;
  access_log off;
  sendfile on;
  client_body_temp_path body;
  proxy_temp_path proxy;
  fastcgi_temp_path fastcgi;
  uwsgi_temp_path uwsgi;
  scgi_temp_path scgi;
  gzip on;
  gzip_vary on;
  gzip_min_length 200;
  gzip_proxied any;
  gzip_types text/css application/javascript image/svg+xml;
  server {
    listen 127.0.0.1:${port};
    root root;
    index index.html;
    ${directives}
  }
  ${servers}
}
`;
