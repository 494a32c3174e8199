// Certificates from a real authority: each challenge, what can go wrong, and what happens to them afterwards.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { type Gateway, startGateway } from "../support/gateway.ts";
import { hasPebble, type Pebble, startPebble } from "../support/pebble.ts";
import { eventually } from "../support/poll.ts";
import { executable } from "../support/variants.ts";

let gateway: Gateway;
let pebble: Pebble;

beforeAll(async () => {
  if (!hasPebble) throw new Error("pebble is not installed: apt-get install pebble");
  gateway = await startGateway({ workers: 2 });
  const { httpPort, httpsPort } = gateway;
  pebble = await startPebble({ httpPort, tlsPort: httpsPort, badNonces: 15 });
  await gateway.ok("POST", "/api/v1/acme/accounts", {
    name: "pebble",
    directory_url: pebble.directoryUrl,
    ca_certificates: pebble.trusted,
    terms_agreed: true,
  });
});
afterAll(async () => {
  await gateway?.stop();
  await pebble?.stop();
});

/** Orders a certificate and waits until it is there. */
async function order(name: string, fields: object) {
  await gateway.ok("POST", "/api/v1/certificates", { name, source: "acme", ...fields });
  return await issued(name);
}

const issued = (name: string) =>
  eventually(
    async () => {
      const certificate = await gateway.ok("GET", `/api/v1/certificates/${name}`);
      if (certificate.status === "failed") throw new Error(certificate.last_error);
      return certificate.status === "valid" ? certificate : null;
    },
    { deadlineMs: 20_000, intervalMs: 50 },
  );

test("a certificate is issued by http-01", async () => {
  const certificate = await order("by-http", { domains: ["by-http.test"] });
  expect(certificate.domains).toEqual(["by-http.test"]);
  expect(certificate.issuer).toContain("Pebble");
}, 30_000);

test("a certificate is issued by tls-alpn-01", async () => {
  const certificate = await order("by-tls", {
    domains: ["by-tls.test"],
    challenge: "tls-alpn-01",
  });
  expect(certificate.issuer).toContain("Pebble");
}, 30_000);
