// Imports that are refused: nothing has changed afterwards, and the response names collection, object, field and line.
import { describe, expect, test } from "bun:test";
import { useGateway } from "../api/client.ts";

const client = useGateway();
const yaml = { "content-type": "application/yaml" };
const LIMIT = 67_108_864;

const send = (raw: string | Uint8Array<ArrayBuffer>, headers: Record<string, string>, query = "") =>
  client.call(`POST /import${query}`, { raw, headers });

const state = async () => [
  (await client.callRoot("GET /api/v1/export?format=yaml")).body,
  (await client.call("GET /revisions")).body.length,
];

const broken = `format: 1
services:
  - name: web
    targets_are_not_here: 1
routes:
  - name: shop
    service_id: web
`;

describe("a broken document", () => {
  test.each([
    {
      why: "an unknown field",
      text: broken,
      says: "services[0].targets_are_not_here: is not a known field (line 4, column 5)",
    },
    {
      why: "a service that is not there",
      text: "format: 1\nroutes:\n  - name: shop\n  - name: blog\n    service_id: nowhere\n",
      says: 'routes[1].service_id: service "nowhere" does not exist (line 5, column 5)',
    },
    {
      why: "two objects of one name",
      text: "format: 1\nservices:\n  - name: web\n  - name: web\n",
      status: 409,
      says: 'services[1].name: service "web" exists already (line 4, column 5)',
    },
    {
      why: "a wrong setting",
      text: "format: 1\nservices:\n  - name: web\nsettings:\n  limits:\n    shutdown_timeout: soon\n",
      says: "settings.limits.shutdown_timeout: must be an integer from 0 to 86400000 (line 6, column 5)",
    },
    {
      why: "a rule for a setting",
      text: "format: 1\nsettings:\n  trusted_proxies:\n    - 10.0.0.0/99\n",
      says: /^settings\.trusted_proxies\[0\]: .* \(line 4, column 5\)$/,
    },
    {
      why: "a mask for a secret that is not there",
      text: 'format: 1\nsecrets:\n  - name: kept\n    sealed_value: "***"\n',
      says: /^secrets\[0\]\.sealed_value: is masked, .* \(line 4, column 5\)$/,
    },
    {
      why: "a value under another key",
      text: "format: 1\nsecrets:\n  - name: kept\n    sealed_value: sealed:1:00000000:AAAA\n",
      says: "secrets[0].sealed_value: is not encrypted with the key of this gateway (line 4, column 5)",
    },
    {
      why: "no YAML",
      text: "format: 1\nroutes: [\nservices: []\n",
      says: /^the configuration file is not valid YAML at line 3, column 1: /,
    },
    {
      why: "a nest",
      text: `format: 1\nservices: ${"[".repeat(20_000)}`,
      says: "the configuration file is nested deeper than 64 levels",
    },
    { why: "nothing", text: "", says: "the configuration file must be an object" },
  ])("with $why changes nothing", async ({ text, says, status = 400 }) => {
    const before = await state();
    const answer = await send(text, yaml, "?mode=replace");
    expect([answer.status, answer.body]).toEqual([
      status,
      { error: typeof says === "string" ? says : expect.stringMatching(says) },
    ]);
    expect(await state()).toEqual(before);
  });

  test("as JSON has lines as well", async () => {
    const answer = await send('{\n  "format": 1,\n  "routes": [{\n    "hosts": 5\n  }]\n}', {});
    expect(answer.body.error).toBe("routes[0].hosts: must be a list (line 4, column 5)");
    const malformed = await send('{\n  "format": 1,\n  routes: []\n}', {});
    expect(malformed.body.error).toMatch(/line 3/);
  });
});

describe("a dry run", () => {
  test("shows the changes and makes none", async () => {
    await client.create("/services", { name: "dry", tags: ["a"] });
    const before = await state();
    const document = {
      format: 1,
      services: [{ name: "dry", tags: ["b"] }, { name: "new" }],
    };
    const answer = await client.call("POST /import?dry_run=1", { body: document });
    expect(answer.headers.get("x-dry-run")).toBe("true");
    expect(answer.body.changes).toMatchObject([
      {
        action: "update",
        kind: "service",
        name: "dry",
        diff: [{ path: "tags", before: ["a"], after: ["b"] }],
      },
      { action: "create", kind: "service", name: "new" },
    ]);
    expect(await state()).toEqual(before);
  });

  test.each(["?dry=1", "?mode=overwrite", "?dry_run=2"])("%s is not understood", async (query) => {
    expect((await client.call(`POST /import${query}`, { body: { format: 1 } })).status).toBe(400);
  });
});

describe("the body", () => {
  test("may have 64 MiB, and not a byte more", async () => {
    const bytes = new Uint8Array(LIMIT + 1).fill(32);
    bytes.set(new TextEncoder().encode('{"format":1}'));
    const right = await send(bytes.subarray(0, LIMIT), {});
    expect([right.status, right.body]).toEqual([200, { changes: [] }]);
    const wrong = await send(bytes, {});
    expect([wrong.status, wrong.body]).toEqual([
      413,
      { error: `the body is larger than ${LIMIT} bytes` },
    ]);
  });

  test("of another type is refused", async () => {
    expect((await send("format: 1", { "content-type": "text/plain" })).status).toBe(415);
  });
});
