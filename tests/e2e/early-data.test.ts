// Observers can replay early data (0-RTT, CVE-2024-39321): neither TLS nor QUIC may accept it. Needs openssl and gtlsclient.
import { expect } from "bun:test";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Gateway, startGateway } from "../support/gateway.ts";
import { needs } from "../support/needs.ts";
import { eventually } from "../support/poll.ts";

const { afterAll, beforeAll, test } = needs("openssl", "gtlsclient");

let gateway: Gateway;
let scratch = "";

beforeAll(async () => {
  scratch = mkdtempSync(join(tmpdir(), "sluice-early-"));
  gateway = await startGateway();
  const { id } = (await gateway.ok("GET", "/api/v1/listeners")).find(
    ({ name }: { name: string }) => name === "https",
  );
  await gateway.ok("PATCH", `/api/v1/listeners/${id}`, { http3: true });
});
afterAll(async () => {
  await gateway?.stop();
  rmSync(scratch, { recursive: true, force: true });
});

/**
 * Output of a program, both streams together; its input ends once the file `awaited` is there: a session ticket follows the handshake,
 * and without input the client would exit before it arrives.
 */
async function said(command: readonly string[], input: string, awaited?: string): Promise<string> {
  const child = Bun.spawn(["timeout", "100", ...command], {
    stdin: "pipe",
    stdout: "pipe",
    stderr: "pipe",
    cwd: scratch,
  });
  child.stdin.write(input);
  await child.stdin.flush();
  let output = "";
  const collect = async (stream: ReadableStream<Uint8Array>) => {
    for await (const chunk of stream) output += Buffer.from(chunk).toString();
  };
  const ended = Promise.all([collect(child.stdout), collect(child.stderr)]);
  if (awaited !== undefined)
    await eventually(() => existsSync(join(scratch, awaited)) || child.exitCode !== null);
  await child.stdin.end();
  await ended;
  return output;
}

const request = "GET / HTTP/1.1\r\nHost: early.test\r\n\r\n";

test("a TLS session does not allow early data", async () => {
  const client = ["openssl", "s_client", "-connect", `127.0.0.1:${gateway.httpsPort}`, "-tls1_3"];
  const first = await said([...client, "-sess_out", "session"], request, "session");
  expect(first).toContain("Max Early Data: 0");
  expect(first).not.toMatch(/Max Early Data: [1-9]/);
  writeFileSync(join(scratch, "request"), request);
  const resumed = await said(
    [...client, "-sess_in", "session", "-early_data", "request"],
    "",
    "Early data was",
  );
  expect(resumed).toContain("Early data was not sent");
});

test("QUIC rejects early data that a client sends nevertheless", async () => {
  const { httpsPort: port } = gateway;
  const client = [
    "gtlsclient",
    ...["--session-file=quic-session", "--tp-file=quic-parameters"],
    ...["--exit-on-all-streams-close", "127.0.0.1", String(port), `https://localhost:${port}/`],
  ];
  expect(await said(client, "")).toContain("Negotiated ALPN is h3");
  const resumed = await said(client, "");
  expect(resumed).toContain("type=0RTT");
  expect(resumed).toContain("Early data was rejected by server");
  expect(resumed).toMatch(/:status: \d+/);
});
