// A gateway with a configuration file: its certificates survive restarts, and no partial revocation is possible.
import { expect } from "bun:test";
import { X509Certificate } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Gateway, startGateway } from "../support/gateway.ts";
import { needs } from "../support/needs.ts";
import { Pebble } from "../support/pebble.ts";
import { eventually } from "../support/poll.ts";
import { quietPort } from "../support/quiet-port.ts";
import { executable } from "../support/executable.ts";

const { afterEach, beforeEach, test } = needs("executable", "pebble");

let pebble: Pebble;
let gateway: Gateway | null;
let directory: string;

beforeEach(async () => {
  gateway = null;
  directory = mkdtempSync(join(tmpdir(), "sluice-file-"));
  const [httpPort, tlsPort] = [quietPort(), quietPort()];
  pebble = new Pebble({ httpPort, tlsPort });
  await pebble.start();
  const file = join(directory, "sluice.json");
  const at = { directory_url: pebble.directoryUrl, ca_certificates: pebble.trusted };
  const listener = (protocol: string, port: number) => ({
    name: protocol,
    address: "127.0.0.1",
    port,
    protocol,
  });
  writeFileSync(
    file,
    JSON.stringify({
      format: 1,
      listeners: [listener("http", httpPort), listener("https", tlsPort)],
      acme_accounts: [{ name: "pebble", terms_agreed: true, ...at }],
      certificates: [{ name: "own", source: "acme", domains: ["own.test"] }],
      applications: [
        { name: "shop", domains: ["shop.example.com"], upstream: "http://127.0.0.1:1" },
      ],
    }),
  );
  const args = ["--config", file, "--dns-servers", pebble.nameServer];
  gateway = await startGateway({ binary: executable, args });
});
afterEach(async () => {
  await gateway?.stop();
  await pebble?.stop();
  rmSync(directory, { recursive: true, force: true });
});

const find = async (name: string) => {
  const certificate = await gateway?.ok("GET", `/api/v1/certificates/${name}`);
  return certificate?.status === "valid" ? certificate : null;
};
const isSecured = async () => {
  const application = await gateway?.ok("GET", "/api/v1/applications/shop");
  return application?.routes[0]?.https_redirect === 308;
};

test("a restart requests no new certificate, and a revocation is rejected before it reaches the CA", async () => {
  const own = await eventually(() => find("own"));
  const shop = await eventually(() => find("shop"));
  await eventually(isSecured);

  const answer = await gateway?.api("POST", "/api/v1/certificates/own/revoke", {});
  expect(answer?.status).toBe(409);
  expect(await answer?.json()).toEqual({ error: "configuration is read-only" });
  expect(await pebble.statusOf(new X509Certificate(own.certificate).serialNumber)).toBe("Valid");

  await gateway?.restart();
  expect(await isSecured()).toBe(true);
  expect((await find("own"))?.fingerprint).toBe(own.fingerprint);
  expect((await find("shop"))?.fingerprint).toBe(shop.fingerprint);
  expect(pebble.output.match(/Added order/g)).toHaveLength(2);
});
