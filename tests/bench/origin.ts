// The server behind every proxy of a benchmark: one nginx worker with static files, and the certificate for all.
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { freePort, LOAD_CORE, type RunningProgram, startProgram, waitFor } from "./processes.ts";

export interface Origin {
  readonly port: number;
  readonly program: RunningProgram;
}

/** Where the origin listens, for those who need several targets: they are different ones to a gateway. */
export const ORIGIN_ADDRESSES: readonly string[] = Array.from(
  { length: 8 },
  (_, index) => `127.0.0.${index + 1}`,
);

/** Words that the nginx files of a benchmark start with. */
export function nginxHead(scratch: string): string {
  const user = process.getuid?.() === 0 ? "user root;" : "";
  return `${user}
daemon off; worker_processes 1; worker_rlimit_nofile 8192;
pid ${scratch}/nginx.pid; error_log ${scratch}/error.log warn;
events { worker_connections 4096; }`;
}

/** Paths of nginx's own files, so that it writes nowhere else. */
export function nginxPaths(scratch: string): string {
  return ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
    .map((name) => `${name}_temp_path ${scratch}/${name};`)
    .join(" ");
}

/** Writes a configuration of nginx with this in its http block; its path. */
export function writeNginx(folder: string, http: string): string {
  const config = join(folder, "nginx.conf");
  writeFileSync(
    config,
    `${nginxHead(folder)}
http {
  access_log off; ${nginxPaths(folder)}
  ${http}}`,
  );
  return config;
}

/** Starts the origin on the load generator's core; each file is named after its size, `/64B`, and is below `/varied/64B/`, too. */
export async function startOrigin(
  scratch: string,
  sizes: Readonly<Record<string, number>>,
): Promise<Origin> {
  const folder = join(scratch, "origin");
  const files = join(folder, "files");
  mkdirSync(files, { recursive: true });
  for (const [name, size] of Object.entries(sizes)) writeFileSync(join(files, name), body(size));
  chmodSync(scratch, 0o755);
  const port = freePort();
  const config = writeNginx(
    folder,
    `default_type application/octet-stream;
  sendfile on; tcp_nopush on; keepalive_requests 1000000000; keepalive_timeout 300s;
  client_max_body_size 0;
  server { ${ORIGIN_ADDRESSES.map((address) => `listen ${address}:${port} backlog=4096;`).join(" ")} root ${files};
    location ~ ^/varied/(\\w+)/ { etag off; add_header ETag '"$request_id"'; try_files /$1 =404; } }
`,
  );
  const program = startProgram({
    command: ["nginx", "-p", folder, "-c", config],
    core: LOAD_CORE,
    logFile: join(folder, "out.log"),
  });
  await waitFor("the origin's first answer", 5_000, async () => {
    const response = await fetch(`http://127.0.0.1:${port}/${Object.keys(sizes)[0]}`);
    return response.ok ? true : undefined;
  });
  return { port, program };
}

/** Bytes that do not compress and are the same in each run. */
export function body(size: number): Uint8Array {
  const bytes = new Uint8Array(size);
  let state = 12_345;
  for (let index = 0; index < size; index += 1) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fff_ffff;
    bytes[index] = state >>> 16;
  }
  return bytes;
}

export interface Certificate {
  readonly certificateFile: string;
  readonly keyFile: string;
}

/** Makes the self-signed certificate that every proxy of the run serves. */
export function makeCertificate(scratch: string): Certificate {
  const certificateFile = join(scratch, "certificate.pem");
  const keyFile = join(scratch, "key.pem");
  const made = Bun.spawnSync([
    ..."openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2".split(" "),
    ..."-subj /CN=localhost -addext subjectAltName=DNS:localhost,IP:127.0.0.1".split(" "),
    ...["-keyout", keyFile, "-out", certificateFile],
  ]);
  if (!made.success) throw new Error(`openssl made no certificate: ${made.stderr.toString()}`);
  return { certificateFile, keyFile };
}
