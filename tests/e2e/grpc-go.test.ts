// gRPC through the compiled executable between a client and a server of grpc-go, the implementation that most servers use.
import { expect } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Authority } from "../support/authority.ts";
import { freePort } from "../support/data-plane.ts";
import { type Gateway, startGateway } from "../support/gateway.ts";
import { needs } from "../support/needs.ts";
import { executable } from "../support/executable.ts";

const { afterAll, beforeAll, test } = needs("executable", "go", "grpc-go");

const folder = mkdtempSync(join(tmpdir(), "sluice-grpc-go-"));
const program = join(folder, "grpc-go");
const NAME = "go.test";

let gateway: Gateway | null = null;
let server: Bun.Subprocess<"pipe", "pipe", "inherit"> | null = null;
const ports = { tls: freePort(), plain: freePort() };

/** With Debian's packages only, as nothing is downloaded. */
async function build(): Promise<void> {
  const compile = Bun.spawn(
    ["go", "build", "-o", program, join(import.meta.dir, "../support/grpc/go/main.go")],
    {
      env: {
        ...process.env,
        GO111MODULE: "off",
        GOPATH: "/usr/share/gocode",
        GOCACHE: join(folder, "cache"),
        CGO_ENABLED: "0",
      },
      stdout: "inherit",
      stderr: "inherit",
    },
  );
  expect(await compile.exited).toBe(0);
}

beforeAll(async () => {
  await build();
  const authority = await Authority.create("grpc-go");
  writeFileSync(join(folder, "ca.pem"), authority.cert);
  const started = await startGateway({ binary: executable, workers: 2 });
  gateway = started;
  server = Bun.spawn([program], { stdin: "pipe", stdout: "pipe", stderr: "inherit" });
  const { value } = await server.stdout.getReader().read();
  const leaf = await authority.sign({ names: [NAME] });
  const post = (path: string, body: object) => started.ok("POST", `/api/v1/${path}`, body);
  await post("certificates", { name: "go", certificate: leaf.cert, private_key: leaf.key });
  const address = "127.0.0.1";
  const https = { address, protocol: "https" };
  await post("listeners", { ...https, name: "tls", port: ports.tls, engine: "sluice" });
  await post("listeners", { address, name: "plain", port: ports.plain, engine: "sluice" });
  const targets = [{ host: address, port: Number(new TextDecoder().decode(value)) }];
  await post("services", { name: "go", protocol: "grpc", targets });
  const listener_ids = Object.keys(ports);
  await post("routes", { name: "go", service_id: "go", hosts: [NAME], listener_ids });
});
afterAll(async () => {
  await gateway?.stop();
  server?.kill(9);
  rmSync(folder, { recursive: true, force: true });
});

/** The first ones are those of gRPC's doc/interop-test-descriptions.md. */
const CASES = [
  "empty_unary",
  "large_unary",
  "four_megabytes",
  "client_compressed_unary",
  "client_streaming",
  "server_streaming",
  "ping_pong",
  "empty_stream",
  "timeout_on_sleeping_server",
  "cancel_after_begin",
  "cancel_after_first_response",
  "status_code_and_message",
  "special_status_message",
  "custom_metadata",
  "unimplemented_method",
  "unimplemented_service",
  "concurrent_large_unary",
  "health",
  "reflection",
];

test.each(["tls", "plain"] as const)("every case over the listener %s", async (name) => {
  const words = ["-address", `127.0.0.1:${ports[name]}`, "-authority", NAME];
  const ca = name === "plain" ? [] : ["-ca", join(folder, "ca.pem")];
  const client = Bun.spawn([program, ...words, ...ca], { stdout: "pipe", stderr: "inherit" });
  const lines = (await new Response(client.stdout).text()).trim().split("\n");
  expect(lines).toEqual(CASES.map((one) => `pass ${one}`));
});
