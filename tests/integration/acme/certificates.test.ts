// What the management API takes of accounts and of certificates that are to be ordered, and what it shows of them.
import { expect, test } from "bun:test";
import { useGateway } from "../api/client.ts";

const client = useGateway();

/** Nobody listens there, so nothing is issued. */
const directory_url = "https://127.0.0.1:1/dir";

test("an account shows none of its keys, and they stay when it is changed", async () => {
  const account = await client.create("/acme/accounts", {
    ...{ name: "bound", directory_url, terms_agreed: true, email: "ann@example.test" },
    ...{ eab_key_id: "kid", eab_hmac_key: "c2VjcmV0LWhtYWMta2V5" },
  });
  expect(JSON.stringify(account)).not.toMatch(/sealed|c2VjcmV0|PRIVATE/);
  const patched = await client.call("PATCH /acme/accounts/bound", { body: { email: null } });
  expect(patched.body).toMatchObject({ email: null, eab_key_id: "kid" });
  const same = await client.call("PUT /acme/accounts/bound", { body: patched.body });
  expect(same.status).toBe(200);
  expect(same.body.updated_at).toBe(patched.body.updated_at);
});

test.each([
  {
    why: "terms that are not agreed to",
    body: { name: "no", directory_url },
    error: "terms_agreed: must be true: certificates are issued only to those who agree",
  },
  {
    why: "a directory without TLS",
    body: { name: "no", directory_url: "http://ca.test/dir", terms_agreed: true },
    error: "directory_url: must be an https:// address",
  },
  {
    why: "half of a binding",
    body: { name: "no", directory_url, terms_agreed: true, eab_key_id: "kid" },
    error: "eab_hmac_key: is required with eab_key_id",
  },
  {
    why: "authorities that cannot be read",
    body: { name: "no", directory_url, terms_agreed: true, ca_certificates: "hello" },
    error: "ca_certificates: must hold a PEM certificate",
  },
  {
    why: "a name that is taken",
    body: { name: "bound", directory_url, terms_agreed: true },
    error: 'name: ACME account "bound" exists already',
  },
])("an account with $why is refused", async ({ body, error }) => {
  const answer = await client.call("POST /acme/accounts", { body });
  expect(answer.status).toBeOneOf([400, 409]);
  expect(answer.body.error).toStartWith(error);
});

test.each([
  { why: "no names", fields: {}, error: "domains: is required" },
  {
    why: "a wildcard by http-01",
    fields: { domains: ["a.test", "*.a.test"] },
    error: 'domains[1]: a wildcard needs the challenge "dns-01"',
  },
  {
    why: "a name without a dot",
    fields: { domains: ["localhost"] },
    error: "domains[0]: must be a name with a dot",
  },
  {
    why: "an address",
    fields: { domains: ["a.test", "192.0.2.1"] },
    error: "domains[1]: must be a name: none is ordered for addresses",
  },
  {
    why: "an account that does not exist",
    fields: { domains: ["a.test"], acme_account_ids: ["nobody"] },
    error: 'acme_account_ids[0]: ACME account "nobody" does not exist',
  },
  {
    why: "a provider that does not exist",
    fields: { domains: ["a.test"], dns_provider_id: "nobody" },
    error: 'dns_provider_id: DNS provider "nobody" does not exist',
  },
  {
    why: "a key of its own",
    fields: { domains: ["a.test"], private_key: "x" },
    error: 'private_key: is made by the gateway when source is "acme"',
  },
  {
    why: "a status",
    fields: { domains: ["a.test"], attempts: 0 },
    error: "attempts: is set by the gateway and cannot be chosen",
  },
])("a certificate to order with $why is refused", async ({ fields, error }) => {
  const body = { name: "no", source: "acme", ...fields };
  const answer = await client.call("POST /certificates", { body });
  expect(answer.status).toBe(400);
  expect(answer.body.error).toStartWith(error);
});

test("a certificate that has not been issued is shown as such, can be sent back, and has no chain", async () => {
  const body = {
    name: "open",
    source: "acme",
    domains: ["Open.TEST"],
    acme_account_ids: ["bound"],
  };
  const created = await client.create("/certificates", body);
  expect(created).toMatchObject({
    ...{ domains: ["open.test"], certificate: null, not_after: null, fingerprint: null },
    ...{ challenge: "http-01", key_type: "ecdsa", reuse_key: false, renewal_window: null },
  });
  const same = await client.call("PUT /certificates/open", { body: created });
  expect(same.status).toBe(200);
  expect(same.body.updated_at).toBe(created.updated_at);
  const chain = await client.call("GET /certificates/open/pem");
  expect(chain).toMatchObject({
    ...{ status: 409, body: { error: 'certificate "open" has not been issued yet' } },
  });
  const revoked = await client.call("POST /certificates/open/revoke", { body: {} });
  expect(revoked.status).toBe(409);
});

test("an account that certificates are ordered with cannot be deleted alone", async () => {
  const answer = await client.call("DELETE /acme/accounts/bound");
  expect(answer).toMatchObject({
    ...{ status: 409, body: { error: 'ACME account "bound" is used by certificate "open"' } },
  });
});

test("a certificate that was made here is neither renewed nor revoked by an authority", async () => {
  await client.create("/certificates", {
    ...{ name: "self", source: "self_signed", domains: ["self.test"] },
  });
  for (const action of ["renew", "revoke"]) {
    const answer = await client.call(`POST /certificates/self/${action}`);
    expect(answer.status).toBe(409);
    expect(answer.body.error).toContain('has source "self_signed" and cannot be');
  }
  const body = { reason: "boredom" };
  const wrong = await client.call("POST /certificates/self/revoke", { body });
  expect(wrong.status).toBe(400);
});

test("a stream route and a service may name one that has not been issued", async () => {
  const service = { name: "tls", protocol: "tcp", targets: [{ host: "127.0.0.1", port: 9 }] };
  await client.create("/services", service);
  const tls = { client_certificate_id: "open" };
  await client.create("/services", { name: "mutual", protocol: "https", tls });
});
